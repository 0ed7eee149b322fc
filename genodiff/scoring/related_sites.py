"""What relatives say at the sites of variants, from one pass over a window for all its sites.

Each place of a window is told what all other places say of it (`memory/relatives.py`). So a window
that hides nothing gives what relatives say of all its places at once: the likelihood and the votes.
With L from such a window, and p of the network alone,

    score = log p(alt) − log p(ref) + log L(alt) − log L(ref)

A contig is cut into the tiles of `variant_windows`, with a window around each. So what is said of a
site depends on its place in the contig alone.

It is near to the score as it is defined, and not equal: what lies over the places around a site has
been told the site's own base, and the site is not in the middle. With `exact`, a site is masked in
the middle of a window of its own. Then the sum above is what the network with relatives says.
`benchmarks/relatives/fast_scores.py` shows how near the two are.
"""

from typing import NamedTuple

import numpy as np

from genodiff.alphabet import Alphabet, encode_bases
from genodiff.io.variants import Allele
from genodiff.memory.column_rates import Ancestral
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, turn_codes
from genodiff.runs.related_reader import RelatedReader
from genodiff.scoring.methods import ScoreMethod
from genodiff.scoring.variant_windows import Contigs, find_tile, place_window

_BYTES = 1 << 26  # of what lies over a batch of windows
_CODE_OF = {base: code for code, base in enumerate("ACGT")}

Tile = tuple[str, int, int]
"""A contig, and the first place and the last + 1 of a tile."""


class _Site(NamedTuple):
    """What was read of a site: the factors (4,), what each genome has over it (G, 4), the part of
    it that is homologous, and what the method reads of the positions around (`read_around`).
    """

    factors: Floats
    over: Floats
    homologous: Floats
    around: Floats | None


class RelatedSites:
    """What the relatives of `network` say of substitutions, each window cut and read once.

    `method` is asked what it needs of the positions around each (`read_around`).
    """

    def __init__(
        self, genome: Contigs, alphabet: Alphabet, network: RelatedReader, context: int,
        *, exact: bool = False, method: ScoreMethod | None = None,
    ) -> None:  # fmt: skip
        self._genome, self._alphabet, self._network = genome, alphabet, network
        self._context, self._exact, self._method = context, exact, method
        self._sites: dict[Tile, set[int]] = {}
        self._said: dict[tuple[str, int], _Site] = {}

    def __len__(self) -> int:
        return len(self._sites)

    def prepare(self, allele: Allele) -> tuple[int, int]:
        """Start and end of the window of a substitution, which the next `read` reads."""
        contig, site = allele.chrom, allele.start
        first, last = site, site + 1
        if not self._exact:
            first, last = find_tile(self._genome.contigs[contig], self._context, site)
        self._sites.setdefault((contig, first, last), set()).add(site)
        return self._place((contig, first, last))

    def read(self) -> None:
        """Read all windows that were prepared."""
        alike: dict[int, list[tuple[Tile, int]]] = {}
        for tile in self._sites:
            start, end = self._place(tile)
            alike.setdefault(end - start, []).append((tile, start))
        each = 32 * max(1, len(self._network.relatives.genomes))
        for length, windows in sorted(alike.items()):
            rows = max(1, _BYTES // (length * each))
            for first in range(0, len(windows), rows):
                self._read(windows[first : first + rows], length)

    def compare(self, allele: Allele) -> float:
        """log L(alt) − log L(ref) of a prepared substitution, after `read`, in nats."""
        factors = self._said[allele.chrom, allele.start].factors
        ref, alt = _CODE_OF[allele.ref], _CODE_OF[allele.alt]
        return float(np.log(factors[alt]) - np.log(factors[ref]))

    def count(self, allele: Allele, method: ScoreMethod) -> float:
        """What `method` counts for a prepared substitution, after `read`, in nats."""
        site = self._said[allele.chrom, allele.start]
        ref, alt = _CODE_OF[allele.ref], _CODE_OF[allele.alt]
        return float(method.count(self._network, site.over, ref, site.around)[alt])

    def judge(self, allele: Allele) -> Ancestral | None:
        """Which base of a prepared substitution is ancestral, after `read`; None: not known."""
        site = self._said[allele.chrom, allele.start]
        bases = _CODE_OF[allele.ref], _CODE_OF[allele.alt]
        return self._network.ancestry.judge(site.factors, site.homologous, *bases)

    def clear(self) -> None:
        """Forget the windows."""
        self._sites, self._said = {}, {}

    def _place(self, tile: Tile) -> tuple[int, int]:
        contig, first, last = tile
        length = self._genome.contigs[contig]
        return place_window(first, last, last - first, self._context, length)

    def _read(self, some: list[tuple[Tile, int]], length: int) -> None:
        """A window of a site alone is read on the strand whose bases come first: so a substitution
        and the same of the other strand have the same bits.
        """
        letters = (self._genome.fetch(tile[0], start, start + length) for tile, start in some)
        windows = np.stack([encode_bases(self._alphabet.encode(one)) for one in letters])
        turned = np.zeros(len(some), np.bool_)
        if self._exact:
            for i, ((_, site, _), start) in enumerate(some):
                windows[i, site - start] = NONE
                other = turn_codes(windows[i])
                turned[i] = other.tobytes() < windows[i].tobytes()
                windows[i] = other if turned[i] else windows[i]
        over, factors, homologous = self._network.read_windows(windows)
        around = None
        if self._method is not None:
            around = self._method.read_around(self._network, over, windows)
        for i, (tile, start) in enumerate(some):
            for site in self._sites[tile]:
                at = length - 1 - (site - start) if turned[i] else site - start
                bases = slice(None, None, -1 if turned[i] else 1)
                said = factors[i, at, bases].copy(), over[:, i, at, bases].copy()
                own = homologous[:, i, at, bases].copy()
                beside = None if around is None else around[i, at, bases].copy()
                self._said[tile[0], site] = _Site(*said, own, beside)
