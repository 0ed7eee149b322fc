"""How a head pools the features of a sequence's positions: the registry, and one file each.

A head is a pooling and a linear layer. `FitSettings.head` names it, and `--head auto` tries all of
them, from the simplest to the least simple. A file that is put here is found. No torch.
"""

from typing import TYPE_CHECKING

from genodiff.registry import Registry

if TYPE_CHECKING:
    from genodiff.finetuning.pooling.pooling import Pooling

HEADS: "Registry[type[Pooling]]" = Registry("head", package=__name__)
"""The heads by name."""
