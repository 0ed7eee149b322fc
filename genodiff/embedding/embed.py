"""Embeddings of DNA: what a network knows about each base of a window, or about the window as a
whole.

Layers are numbered as published: 0 is the embedding, n_layer (or −1) what the head reads; those
between are what `hidden_states` gives. A window is read on the strands that are asked for, always
laid out along the given one:

    forward   what the network gives for the window as it stands; with paired strands [s(x), R s(rc
              x)] side by side, as published
    both      s(x) and s(rc x) apart, base by base, channels in the same order
    average   their mean: of x and of rc x it is the same

With relatives, four channels stand behind those of the network, the same on both strands and of all
layers: which share of the relatives' votes has the window's own base, its transition, a
transversion, or nothing (`RelatedBackbone.describe_places`). The network's own do not change.

Pooling is over the bases of the window alone. Padding and the number of windows at a time change
nothing but the last bits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone, flip_positions, stack_strands
from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io.faidx import Genome
from genodiff.io.features import read_features
from genodiff.io.input_file import is_file
from genodiff.io.places import list_places
from genodiff.io.regions import read_round
from genodiff.io.sequences import Sequences, read_sequences
from genodiff.runs.related_backbone import PLACE_CHANNELS, RelatedBackbone
from genodiff.scoring.variant_windows import Contigs, HeldContigs

LONGEST = 1 << 20
"""Bases of a window."""
_MOST_BASES = 1 << 18  # of a batch, padding included
# What is read ahead to be sorted by length: bases, windows, and numbers of their embeddings.
_HELD_BASES, _HELD_WINDOWS, _HELD_NUMBERS = 1 << 22, 4096, 1 << 25

Array = NDArray[np.float32]
Cut = Callable[[int, int], tuple[int, int]]
Fetch = Callable[[int, int], bytes]


class Window(NamedTuple):
    """contig[start:end] (0-based, half-open) and its letters, which `-` reads from the other end.

    `strand` is `.` for a spliced feature with parts on both.
    """

    contig: str
    start: int
    end: int
    name: str
    letters: bytes
    strand: str = "+"


class Reading(NamedTuple):
    """What is kept of each window."""

    layers: tuple[int, ...]  # from 0 to n_layer
    pool: str
    strand: str
    beside: int = 0  # channels of relatives

    def shape(self, width: int, paired: bool) -> tuple[int, ...]:
        """The axes behind that of windows (or of bases, unpooled): strands if both, layers if
        several, channels.
        """
        axes: tuple[int, ...] = (2,) if self.strand == "both" else ()
        axes += (len(self.layers),) if len(self.layers) > 1 else ()
        own = width // 2 if paired and self.strand != "forward" else width
        return (*axes, own + self.beside)

    def axes(self) -> list[str]:
        """Their names."""
        strands, layers = ["strand"] * (self.strand == "both"), ["layer"] * (len(self.layers) > 1)
        return ["base" if self.pool == "none" else "window", *strands, *layers, "channel"]


def make_reading(
    backbone: Backbone, alphabet: Alphabet, layers: Sequence[int], pool: str, strand: str
) -> Reading:
    """The choices, resolved for a network. Raises `UsageError` for one that it does not have."""
    n = backbone.settings.n_layer
    for layer in layers:
        if not -n - 1 <= layer <= n:
            what = f"layer {layer} is not among 0 to {n} (or -1 to {-n - 1} from the end)"
            raise UsageError(what, fix="give one of these")
    if not layers or len({layer % (n + 1) for layer in layers}) < len(layers):
        raise UsageError("no layer, or one of them twice", fix="give each layer once")
    if alphabet.domain != "dna":
        fix = "give a run of DNA"
        raise UsageError(f"the model is of {alphabet.domain}, and embeddings are of DNA", fix=fix)
    if strand != "forward" and alphabet.complement is None:
        raise UsageError("the alphabet has no second strand", fix="give --strand forward")
    beside = PLACE_CHANNELS if isinstance(backbone, RelatedBackbone) else 0
    return Reading(tuple(layer % (n + 1) for layer in layers), pool, strand, beside)


def cut_windows(
    fasta: Sequences,
    *,
    bed: str | Path | None = None,
    regions: Sequence[str] = (),
    features: Sequence[str] = (),
    window: int | None = None,
    stride: int | None = None,
) -> Iterator[Window]:
    """The windows of a FASTA, GenBank or EMBL file ("-" is stdin), or of sequences in memory.

    They are its records, the rows of a BED file, regions or features, each cut into pieces: with
    `window`, pieces of that many bases begin every `stride` (default: `window`) bases; the last may
    be shorter. `fasta` is what `read_sequences` accepts. A row on - is read as its reverse
    complement, and its pieces run in its direction. Features (`CDS`, `CDS=dnaA`) are read in their
    own direction, their parts joined; with `bed`, which is then GTF or GFF3, they are its rows.
    Raises `DataError`, `UsageError`.
    """
    if stride is not None and window is None:
        raise UsageError("--stride without --window", fix="give both")
    if regions and features:
        raise UsageError("--region and --features exclude each other", fix="give one of them")
    if features and bed is None:
        for feature in read_features(fasta, features):
            strands = {strand for _, _, strand in feature.parts}
            strand = "." if len(strands) > 1 else "-" if -1 in strands else "+"
            whole = Window(feature.contig, 0, len(feature.letters), feature.name, b"", strand)
            yield from _pieces(whole, window, stride, feature.span, _letters_of(feature.letters))
        return
    if bed is None and not regions:
        for record in read_sequences(fasta):
            whole = Window(record.name, 0, len(record.sequence), record.name, b"")
            letters = _letters_of(record.sequence)
            yield from _pieces(whole, window, stride, lambda a, b: (a, b), letters)
        return
    contigs, fetch = _random_access(fasta)
    for place in list_places(contigs, regions, bed, features=features, over_origin=True):
        whole = Window(place.contig, place.start, place.end, place.name, b"", place.strand)
        yield from _pieces(whole, window, stride, place.cut, partial(place.read, fetch))


def _random_access(given: Sequences) -> tuple[dict[str, int], Callable[[str, int, int], bytes]]:
    """Lengths of the contigs, and a function that gives the letters of contig, start and end."""
    if str(given) == "-":
        fix = "give the file itself"
        raise UsageError("--bed and --region need a FASTA file, not a stream", fix=fix)
    genome: Contigs
    if is_file(given):
        genome = Genome(given)
    else:
        genome = HeldContigs({record.name: record.sequence for record in read_sequences(given)})
    lengths = dict(genome.contigs)

    def fetch(contig: str, a: int, b: int) -> bytes:
        if b <= lengths[contig]:
            return genome.fetch(contig, a, b)
        # An annotation may let a feature end beyond the origin of a circle.
        return read_round(partial(genome.fetch, contig), lengths[contig], a, b)

    return lengths, fetch


def _letters_of(letters: bytes) -> Fetch:
    return lambda first, last: letters[first:last]


def _pieces(
    whole: Window, window: int | None, stride: int | None, cut: Cut, fetch: Fetch
) -> Iterator[Window]:
    """The pieces of a window; `cut` and `fetch` take letters [first, last) of it as it is read."""
    length = whole.end - whole.start
    window = window or max(length, 1)
    if min(window, length) > LONGEST:
        where = f"{whole.contig}:{whole.start + 1:,}-{whole.end:,}"
        what = f"{where} has {length:,} bases, and a window at most {LONGEST:,}"
        raise UsageError(what, fix=f"cut it with --window {LONGEST} or less, and --stride")
    for first in range(0, max(length, 1), stride or window):
        last = min(first + window, length)
        start, end = cut(first, last) if last else (whole.start, whole.end)
        yield whole._replace(start=start, end=end, letters=fetch(first, last))
        if last == length:
            return


def embed(
    backbone: Backbone,
    alphabet: Alphabet,
    windows: Iterable[Window],
    how: Reading,
    *,
    batch_size: int = 32,
    tick: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[Window, Array]]:
    """Each window with its embedding, in order: (*axes) of `Reading.shape`, with a first axis of
    bases unpooled.

    At most `batch_size` windows are computed at a time, fewer where they are long. Windows of
    similar length are computed together: a stretch of the input is read, sorted by length, and
    given in its order when it is done. `tick` is told how many windows and bases each batch had.
    Raises `DataError` for letters that are no DNA, `GenodiffError` for a network whose values are
    not finite.
    """
    shape = how.shape(backbone.d_out, bool(backbone.paired))
    for stretch in _stretches(windows, how, shape):
        found: dict[int, Array] = {}
        order = sorted(range(len(stretch)), key=lambda i: -len(stretch[i].letters))
        for some in _batches(stretch, order, batch_size):
            group = [stretch[i] for i in some]
            found.update(zip(some, _embed_batch(backbone, alphabet, group, how), strict=True))
            if tick is not None:
                tick(len(group), sum(len(window.letters) for window in group))
        for i, window in enumerate(stretch):
            yield window, found.pop(i)


def _embed_batch(
    backbone: Backbone, alphabet: Alphabet, group: list[Window], how: Reading
) -> Iterator[Array]:
    if empty := next((window for window in group if not window.letters), None):
        fix = "give sequences of at least one base"
        raise DataError("has no base", record=empty.contig, fix=fix)
    ids = [torch.from_numpy(alphabet.encode(w.letters).astype(np.int64)) for w in group]
    lengths = torch.tensor([len(row) for row in ids])
    device = next(backbone.parameters()).device
    xt = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=alphabet.pad_id).to(
        device
    )
    even = bool((lengths == xt.shape[1]).all())
    states = read_states(backbone, alphabet, xt, None if even else lengths.to(device), how)
    if not bool(torch.isfinite(states).all()):
        what = f"the network's values are not finite for {group[0].contig} or a window beside it"
        raise GenodiffError(what, fix="use another checkpoint")
    if isinstance(backbone, RelatedBackbone):
        places = backbone.describe_rows(xt, lengths).to(states)[:, :, None, None]
        states = torch.cat([states, places.expand(*states.shape[:4], PLACE_CHANNELS)], -1)
    return _pooled(states, lengths, how)


def _stretches(
    windows: Iterable[Window], how: Reading, shape: tuple[int, ...]
) -> Iterator[list[Window]]:
    """The windows in lists, each of which holds a bounded amount of letters and of results."""
    held: list[Window] = []
    letters = numbers = 0
    for window in windows:
        letters += len(window.letters)
        numbers += prod(shape) * (len(window.letters) if how.pool == "none" else 1)
        full = letters > _HELD_BASES or numbers > _HELD_NUMBERS or len(held) == _HELD_WINDOWS
        if held and full:
            yield held
            held, letters = [], len(window.letters)
            numbers = prod(shape) * (letters if how.pool == "none" else 1)
        held.append(window)
    if held:
        yield held


def _batches(stretch: list[Window], order: list[int], batch_size: int) -> Iterator[list[int]]:
    """`order`, longest first, in groups that fit into memory."""
    held: list[int] = []
    for i in order:
        width = len(stretch[held[0] if held else i].letters)
        if held and (len(held) == batch_size or width * (len(held) + 1) > _MOST_BASES):
            yield held
            held = []
        held.append(i)
    if held:
        yield held


@torch.no_grad()
def read_states(
    backbone: Backbone,
    alphabet: Alphabet,
    xt: Int[Tensor, "B L"],
    lengths: Int[Tensor, " B"] | None,
    how: Reading,
) -> Float[Tensor, "B L S N D"]:
    """States of S strands and N layers, base by base along the given strand."""
    if how.strand == "forward":
        return torch.stack([_states(backbone, xt, lengths, how.layers)], 2)
    if backbone.settings.paired:
        given, other = _states(backbone, xt, lengths, how.layers).chunk(2, -1)
        other = other.flip(-1)  # R has turned the positions already
    else:
        complement = torch.tensor(alphabet.complement, device=xt.device)
        twice = None if lengths is None else torch.cat([lengths, lengths])
        given, turned = _states(
            backbone, stack_strands(xt, complement, lengths), twice, how.layers
        ).chunk(2)
        other = flip_positions(turned, lengths)
    if how.strand == "both":
        return torch.stack([given, other], 2)
    return ((given + other) / 2)[:, :, None]


def _states(
    backbone: Backbone, xt: Tensor, lengths: Tensor | None, layers: tuple[int, ...]
) -> Float[Tensor, "B L N D"]:
    sigma = torch.zeros(xt.shape[0], device=xt.device)
    if layers == (backbone.settings.n_layer,):
        return backbone.features(xt, sigma, lengths)[:, :, None]
    found = backbone.hidden_states(xt, sigma, lengths)
    return torch.stack([found[layer] for layer in layers], 2)


def _pooled(states: Tensor, lengths: Tensor, how: Reading) -> Iterator[Array]:
    """The rows of a batch, without axes of one strand and of one layer."""
    shape = (*(n for n in states.shape[2:4] if n > 1), states.shape[4])
    for row, length in zip(states, lengths.tolist(), strict=True):
        bases = row[:length]
        if how.pool == "mean":
            bases = bases.double().mean(0)
        elif how.pool == "max":
            bases = bases.amax(0)
        elif how.pool == "center":  # two bases of an even number: rc x has the same
            bases = bases[(length - 1) // 2 : length // 2 + 1].double().mean(0)
        out = bases.float().cpu().numpy()
        yield out.reshape(length, *shape) if how.pool == "none" else out.reshape(shape)
