"""The laws of a method of scoring variants, tried on an untrained network of both strands."""

import math

import numpy as np
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.laws.law import demand
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod, ScoreOptions, Widths
from genodiff.scoring.methods import check_method as find
from genodiff.scoring.span_scores import Estimate, run_steps
from genodiff.scoring.spelling_pair import SpellingPair
from genodiff.scoring.variant_scores import start_score

WIDTHS: tuple[Widths, ...] = ((1, 1), (2, 0), (0, 3), (3, 3), (2, 5), (12, 0))
"""Bases of REF and ALT: a substitution, a deletion, an insertion and longer ones."""


def check_method(name: str) -> None:
    """Raises `BrokenLaw` for a method of scoring that breaks a law, `UsageError` for none.

    A score is a number, or NaN with a word that says why. It is the same from either strand, and
    the opposite where REF and ALT change places. It takes as many windows as announced. With
    `takes_sites`, the score of one base is log p(alt) - log p(ref), since sites that share windows
    are scored so. Of a `visible` one, the way back is
    another score. A method that needs relatives is judged by what it says of itself alone.
    """
    find(name)
    method = SCORE_METHODS[name]()
    demand(method.help.strip(), f"the method {name} has a `help`")
    for widths in WIDTHS:
        demand(method.windows(*widths) >= 0, f"{name}: `windows` of {widths} is not below 0")
    if method.needs_relatives:
        return
    for strands in ("paired", "single"):
        for widths in WIDTHS:
            reader = _make_reader(strands, method.visible)
            _check_pair(name, method, reader, make_pair(4, widths))


def _check_pair(name: str, method: ScoreMethod, reader: MaskedReader, pair: SpellingPair) -> None:
    options = ScoreOptions(method=name, se=9.0, max_evaluations=256)
    of = f"{name}: the score of {pair.widths} bases"

    def score(some: SpellingPair) -> Estimate:
        return run_steps(start_score(reader, some, options, ("c1", 0, len(some.ref))), reader)

    one = score(pair)
    asked = reader.evaluations
    if math.isnan(one.value):
        demand(one.note.strip(), f"{of} is NaN, and its note says why")
        return
    demand(math.isfinite(one.value) and one.se >= 0, f"{of} is finite")
    most = options.max_evaluations if method.until_se else method.windows(*pair.widths)
    demand(asked <= most * (2 if reader.both_strands else 1), f"{of} takes {most} windows at most")
    assert reader.complement is not None
    turned, back = score(pair.turn(reader.complement)), score(pair.swap())
    demand(turned == one, f"{of} is the same on either strand")
    opposite = method.visible or (back.value, back.se) == (-one.value, one.se)
    demand(opposite, f"{of} changes its sign with ALT and REF")
    if method.takes_sites and pair.widths == (1, 1):
        wanted = _score_site(reader, pair)
        law = f"{of}, with `takes_sites`, is log p(alt) - log p(ref)"
        demand(abs(one.value - wanted) < 1e-5, f"{law}: {wanted:.6f}, not {one.value:.6f}")


def _score_site(reader: MaskedReader, pair: SpellingPair) -> float:
    pair = pair.orient(reader.complement)
    (logs,) = reader.read([reader.hide(pair.ref, pair.ref_span)])
    ref, alt = (int(reader.columns(ids)[pair.ref_span][0]) for ids in (pair.ref, pair.alt))
    return float(logs[0, alt] - logs[0, ref])


def _make_reader(strands: str, visible: bool = False) -> MaskedReader:
    complement = np.array(DNA.complement, np.uint8)
    shape = {"d_model": 12, "n_layer": 2, "d_state": 4, "strands": strands}
    network = CaduceusSettings.parse(shape).build(len(complement), DNA.complement, seed=0).eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():  # weights that hide nothing: norms away from one, biases from zero
        for name, weight in network.named_parameters():
            noise = torch.randn(weight.shape, generator=draw)
            weight.add_(noise * (0.5 if name == "embedding" else 0.1))
    process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    both = strands == "single"
    return MaskedReader(network, process, complement=complement, both_strands=both, visible=visible)


def make_pair(seed: int, widths: Widths, flank: int = 8) -> SpellingPair:
    """A random pair whose spans differ in every base that they share."""
    rng = np.random.default_rng(seed)
    left, right, first = (rng.choice(DNA.targets, n) for n in (flank, flank, max(widths)))
    second = np.array([rng.choice([i for i in DNA.targets if i != one]) for one in first])
    spans = [np.repeat([False, True, False], [flank, n, flank]) for n in widths]
    ref, alt = (
        np.concatenate([left, some[:n], right]).astype(np.uint8)
        for some, n in zip((first, second), widths, strict=True)
    )
    return SpellingPair(ref, alt, *spans)
