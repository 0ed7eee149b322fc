"""What a sequence consists of: GC, N, ambiguity codes and soft-masked bases, counted in blocks."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

IUPAC = b"ACGTNRYSWKMBDHVacgtnryswkmbdhv"
"""The letters of DNA."""
_GC, _N, _PLAIN = b"GCgc", b"Nn", b"ACGTNacgtn"
_UPPER = bytes(range(65, 91))


@dataclass
class Composition:
    """Counts of letters, over a record or a file."""

    length: int = 0
    gc: int = 0
    n: int = 0
    """N alone; ambiguity codes, which are read as N, stand in `codes`."""
    soft_masked: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """IUPAC codes other than A, C, G, T and N, in upper case."""

    def add(self, letters: bytes) -> None:
        """Count the IUPAC letters of a piece, without line ends."""
        size = len(letters)
        self.length += size
        self.gc += size - len(letters.translate(None, _GC))
        self.n += size - len(letters.translate(None, _N))
        self.soft_masked += len(letters.translate(None, _UPPER))
        self.codes.update(letters.translate(None, _PLAIN).decode("ascii").upper())

    def merge(self, other: "Composition") -> None:
        """Count what `other` counted."""
        self.length += other.length
        self.gc += other.gc
        self.n += other.n
        self.soft_masked += other.soft_masked
        self.codes.update(other.codes)

    def shares(self) -> dict[str, Any]:
        """GC among A, C, G and T (None without any); N and soft-masked bases among all; codes."""
        ambiguous = self.codes.total()
        known = self.length - self.n - ambiguous
        return {
            "gc": round(self.gc / known, 6) if known else None,
            "n": round((self.n + ambiguous) / self.length, 6) if self.length else 0.0,
            "soft_masked": round(self.soft_masked / self.length, 6) if self.length else 0.0,
            "codes": dict(sorted(self.codes.items())),
        }

    def describe(self) -> str:
        """The shares in words."""
        of = self.shares()
        gc = "no A, C, G or T" if of["gc"] is None else f"GC {of['gc']:.1%}"
        words = [f"{gc}, N {of['n']:.1%}, soft-masked {of['soft_masked']:.1%}"]
        if self.codes:
            each = ", ".join(f"{code} {n:,}" for code, n in of["codes"].items())
            words.append(f"read as N: {each}")
        return "; ".join(words).replace("%", " %")
