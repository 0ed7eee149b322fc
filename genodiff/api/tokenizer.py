"""A tokenizer of one's own text: `genodiff.train_tokenizer`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.data.text_recipe import (
    load_text_recipe,
    make_text_recipe,
)
from genodiff.errors import UsageError, printable
from genodiff.io import atomic
from genodiff.io.target import check_target
from genodiff.jobs.options import OUT, Force, Offline
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

_FEWEST, _MOST = 260, 1 << 20  # tokens of a vocabulary: the bytes, three special ones, one more


@dataclass(frozen=True)
class TrainedTokenizer:
    """A tokenizer on disk; its folder can be given as `tokenizer`."""

    path: Path
    n_tokens: int


@verb(
    "data tokenizer",
    function="train_tokenizer",
    help="Train a byte-level BPE tokenizer on text.",
)
@dataclass(frozen=True, kw_only=True)
class TokenizerRequest(Request[TrainedTokenizer]):
    """Train a byte-level BPE on `texts`, write `out`/tokenizer.json; return its path and size.

    `texts` are files and folders. A text `recipe` defines how they are read, and only its train
    files are used. `vocab_size` includes the 256 bytes and three special tokens. Raises
    `UsageError`, `DataError` for texts that cannot be read, `MachineError` without the package
    tokenizers.
    """

    json_help: ClassVar[str] = ""

    texts: Annotated[
        str | Path | Sequence[str | Path],
        Option("Text files or folders to train on.", ("TEXTS",), is_word=True),
    ] = field(kw_only=False)
    out: Annotated[Path | str, Option("Folder for tokenizer.json; pass it to --tokenizer.", OUT)]
    vocab_size: Annotated[
        int, Option("Number of tokens, including the 256 bytes and three special ones.")
    ] = 8192
    recipe: Annotated[
        str | Path | None,
        Option("Text recipe that defines how the files are read; its train files are used."),
    ] = None
    force: Force = False
    offline: Offline = False

    def answer(self, *given: Any) -> TrainedTokenizer:
        """The tokenizer."""
        names = [
            str(name)
            for name in ([self.texts] if isinstance(self.texts, str | Path) else self.texts)
        ]
        path = Path(self.out) / "tokenizer.json"
        check_target(path, force=self.force, inputs=names)
        if not _FEWEST <= self.vocab_size <= _MOST:
            raise UsageError(
                f"--vocab-size {self.vocab_size} is not between {_FEWEST} and {_MOST}",
                fix="give 8192, for example",
            )
        if not names:
            raise UsageError("no text to learn from", fix="give a file or a folder")
        stated = None if self.recipe is None else load_text_recipe(self.recipe)
        from genodiff.data.file_tokenizer import train_bpe
        from genodiff.data.text_build import deal_texts, list_sources

        def pieces() -> Iterator[str]:
            for name in names:
                chosen = make_text_recipe(name) if stated is None else stated
                files, _ = list_sources(chosen, name, offline=self.offline)
                kept = [item for item in files if item[0] in ("train", "all")] or files
                for piece, part, _, _ in deal_texts(chosen, kept, cut_anywhere=False):
                    if part in ("train", "all") or kept is files:
                        yield piece

        content = train_bpe(pieces(), self.vocab_size)
        atomic.write_bytes(path, content)
        return TrainedTokenizer(path, len(json.loads(content)["model"]["vocab"]))

    def show(self, answer: Any) -> None:
        """Where it is, and its size."""
        print(f"{printable(answer.path)}: {answer.n_tokens:,} tokens")
