"""Which contig is this? It is told by its bases, whatever the file, the name and the case.

A contig of a training genome is a name, a length and the sha256 of its letters, upper case A, C, G,
T and N. The hash comes from a store, when it is first asked for, or from a published list.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, Self

import numpy as np

from genodiff.alphabet import DNA, SOFT
from genodiff.data.store import Store

_PIECE = 1 << 22  # letters that are hashed at a time
_HARD = np.uint8(0xFF ^ SOFT)
ContigRows = list[tuple[str, int, str]]
"""Name, length and sha256 of contigs."""


class LetterSource(Protocol):
    """Random access to letters, as `io.faidx.Genome` gives it."""

    @property
    def contigs(self) -> Mapping[str, int]: ...

    def fetch(self, contig: str, start: int, end: int, /) -> bytes: ...


class StoreLetters:
    """The letters of a store of DNA, without the case."""

    def __init__(self, store: Store) -> None:
        self._store, self.contigs = store, store.contigs
        self.content = str(store.manifest["key"])

    def fetch(self, contig: str, start: int, end: int, /) -> bytes:
        """The letters of contig[start:end]."""
        return DNA.decode(self._store.ids(contig)[start:end] & _HARD).encode("ascii")


class KnownContigs:
    """The contigs of a training genome; a source of the same `content` has the same, unhashed."""

    def __init__(
        self,
        names: Sequence[str],
        lengths: Sequence[int],
        hash_one: Callable[[str], str],
        content: str | None = None,
    ) -> None:
        """`hash_one` gives the sha256 of a contig by its name; it is asked once for each."""
        self._hash_one, self.content = hash_one, content
        self.lengths = dict(zip(names, lengths, strict=True))
        self._hashes: dict[str, str] = {}
        self._by_length: dict[int, list[str]] = {}
        self._by_hash: dict[int, dict[str, list[str]]] = {}
        for name, length in self.lengths.items():
            self._by_length.setdefault(length, []).append(name)

    @classmethod
    def of_store(cls, store: Store) -> Self:
        """Those of a store of DNA."""
        letters = StoreLetters(store)
        names, lengths = [*letters.contigs], [*letters.contigs.values()]
        return cls(names, lengths, lambda name: hash_contig(letters, name), letters.content)

    @classmethod
    def of_rows(cls, rows: ContigRows, content: str | None = None) -> Self:
        """Those of a list of name, length and sha256."""
        hashes = {name: digest for name, _, digest in rows}
        return cls([r[0] for r in rows], [r[1] for r in rows], hashes.__getitem__, content)

    def list_rows(self, names: Collection[str]) -> ContigRows:
        """Name, length and sha256 of some; all that is not hashed yet is read."""
        return [(name, n, self._hash(name)) for name, n in self.lengths.items() if name in names]

    def find(self, source: LetterSource, contig: str) -> str | None:
        """The name of a contig of the same bases here, of several the same one; None for none."""
        if self.content is not None and getattr(source, "content", None) == self.content:
            return contig
        if source.contigs[contig] not in self._by_length:
            return None
        digest = hash_contig(source, contig)
        same = self._group(source.contigs[contig]).get(digest, [])
        return contig if contig in same else next(iter(same), None)

    def _group(self, length: int) -> dict[str, list[str]]:
        """The contigs of one length by their hash: scaffolds are many."""
        if length not in self._by_hash:
            found: dict[str, list[str]] = {}
            for name in self._by_length[length]:
                found.setdefault(self._hash(name), []).append(name)
            self._by_hash[length] = found
        return self._by_hash[length]

    def _hash(self, name: str) -> str:
        if name not in self._hashes:
            self._hashes[name] = self._hash_one(name)
        return self._hashes[name]


def hash_contig(source: LetterSource, contig: str) -> str:
    """The sha256 of a contig's letters in upper case, other codes of IUPAC being N."""
    digest, length = hashlib.sha256(), source.contigs[contig]
    for start in range(0, length, _PIECE):
        letters = source.fetch(contig, start, min(start + _PIECE, length))
        digest.update(DNA.decode(DNA.encode(letters)).encode("ascii"))
    return digest.hexdigest()


def hash_letters(contigs: ContigRows) -> str:
    """The sha256 of what a genome spells: of its contigs' hashes, sorted, a line each.

    So it is the same whatever the names, the order, the case and the width of lines; what is no A,
    C, G or T counts as N, and contigs without letters do not count.
    """
    lines = "".join(f"{digest}\n" for digest in sorted(digest for _, _, digest in contigs))
    return hashlib.sha256(lines.encode()).hexdigest()
