"""Every piece of ours holds the laws of its registry, and a piece that breaks one is told which."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from genodiff.diffusion.sampler import SAMPLERS, Filling, Sampled, Sampler, one_per_mask
from genodiff.diffusion.samplers.first_hitting import first_hitting
from genodiff.diffusion.schedule import (
    SCHEDULES,
    Cosine,
    CosineSquared,
    Geometric,
    Linear,
    OneMinusCosine,
    Polynomial,
    SigmaLinear,
)
from genodiff.errors import UsageError
from genodiff.laws import BrokenLaw, check_format, check_method, check_sampler, check_schedule
from genodiff.maps.track_files import FORMATS
from genodiff.maps.track_formats.bedgraph import BedGraph
from genodiff.scoring.methods import SCORE_METHODS
from genodiff.scoring.methods.llr import Llr
from genodiff.scoring.span_scores import Estimate


@pytest.mark.parametrize("name", SCORE_METHODS)
def test_methods_of_scoring(name):
    check_method(name)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    check_sampler(name)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_of_tracks(name):
    check_format(name)


@pytest.mark.parametrize(
    "given",
    [
        *SCHEDULES, Cosine(eps=1e-3), CosineSquared(eps=1e-3), OneMinusCosine(eps=0.01),
        Polynomial(power=0.5), Polynomial(power=3.0, eps=0.1), SigmaLinear(0.0, 10.0),
        Geometric(1e-3, 1.0),
    ],
    ids=repr,
)  # fmt: skip
def test_schedules(given):
    check_schedule(given)


class Halved(Llr):
    """Its number for sites would be that of llr."""

    def start(self, reader, pair, options, place):  # type: ignore[no-untyped-def]
        found = yield from super().start(reader, pair, options, place)
        return found._replace(value=found.value / 2)


class OneStrand(Llr):
    takes_sites = False

    def start(self, reader, pair, options, place):  # type: ignore[no-untyped-def]
        found = yield from super().start(reader, pair, options, place)
        return found._replace(value=found.value + 1)


class Silent(Llr):
    def start(self, reader, pair, options, place):  # type: ignore[no-untyped-def]
        yield from ()
        return Estimate(float("nan"), 0.0)


def leave_one(diffusion: Any, denoiser: Any, xt: Any, options: Any) -> Sampled:
    filling = Filling(diffusion, denoiser, xt, options)
    return Sampled(filling.x, filling.masked.sum(-1))


def look_aside(diffusion: Any, denoiser: Any, xt: Any, options: Any) -> Sampled:
    done = first_hitting(diffusion, denoiser, xt, options)
    moved = (done.x0 - 7 + len(xt)) % 4 + 7
    return done._replace(x0=torch.where(xt == diffusion.mask_id, moved, done.x0))


@dataclass(frozen=True)
class Steep(Linear):
    def dalpha(self, t: torch.Tensor) -> torch.Tensor:
        return -2 * torch.ones_like(t)


class Stray(BedGraph):
    def write(self, folder: Any, content: Any) -> None:
        super().write(folder, content)
        (folder / "notes.txt").write_text("more")


@pytest.mark.parametrize(
    ("registry", "piece", "check", "law"),
    [
        (SCORE_METHODS, Halved, check_method, "with `takes_sites`, is log p(alt)"),
        (SCORE_METHODS, OneStrand, check_method, "changes its sign with ALT and REF"),
        (SCORE_METHODS, Silent, check_method, "is NaN, and its note says why"),
        (SAMPLERS, Sampler(leave_one, ("masked",), one_per_mask, False), check_sampler,
         "no mask is left"),
        (SAMPLERS, Sampler(look_aside, ("masked",), one_per_mask, False), check_sampler,
         "whatever is drawn beside it"),
        (SAMPLERS, Sampler(first_hitting, ("masked",), lambda n, share: n / 2.0, False),
         check_sampler, "`evaluations` is the mean"),
        (SCHEDULES, Steep, check_schedule, "dalpha is the derivative of alpha"),
        (FORMATS, Stray, check_format, "writes the files that it lists"),
    ],
)  # fmt: skip
def test_a_piece_that_breaks_a_law_is_told_which(monkeypatch, registry, piece, check, law):
    list(registry)
    monkeypatch.setitem(registry._pieces, "toy", piece)
    with pytest.raises(BrokenLaw, match=re.escape(law)):
        check("toy")
    with pytest.raises(UsageError, match="no "):
        check("absent")
