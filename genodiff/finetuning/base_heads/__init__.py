"""How the features of positions become scores at each base: the registry, and one file each.

A file that is put here is found. No torch.
"""

from typing import TYPE_CHECKING

from genodiff.registry import Registry

if TYPE_CHECKING:
    from genodiff.finetuning.base_heads.base_head import BaseHead

BASE_HEADS: "Registry[type[BaseHead]]" = Registry("head of bases", package=__name__)
"""The heads by name."""
