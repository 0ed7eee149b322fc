"""Scores of variants: `genodiff.score` writes a file, `genodiff.score_variants` gives a frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.jobs.request import verb
from genodiff.variants.request import ScoreRequest

if TYPE_CHECKING:
    import polars as pl

score = verb("score", ScoreRequest)


def score_variants(
    run: str | Path, variants: Any, *, device: str = "auto", **options: Any
) -> pl.DataFrame:
    """A row for each ALT of a file or table of variants, with its score, as a polars frame.

    It is `genodiff.load(run).score_variants(variants, fasta=fasta, ...)`.
    """
    from genodiff.api.load import load

    frame: pl.DataFrame = load(run, device=device).score_variants(variants, **options)
    return frame
