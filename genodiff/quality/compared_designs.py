"""Designs by several methods side by side: the work of `compare_designs`."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.data.stretches import encode_bases
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.generative import bound_nats, check_judge, token_nats
from genodiff.generate.guide_settings import GuideSettings, is_unit
from genodiff.generate.guided_model import open_oracle
from genodiff.io import atomic
from genodiff.io.progress import ProgressDisplay, say_slow
from genodiff.io.target import seal_page
from genodiff.jobs.machine import choose_device
from genodiff.jobs.request import find_named
from genodiff.quality.design_table import DesignJudges, Score, compare_methods
from genodiff.quality.measured_scorecard import open_train, read_ids
from genodiff.quality.real_sequence import cut_windows, draw_some
from genodiff.quality.requests import DesignsRequest, OracleName, is_run, name_oracle
from genodiff.runs.model import load_model
from genodiff.version import __version__

_PAGE = "genodiff.reports.design_page:render_designs"


def compare_designs(asked: DesignsRequest) -> dict[str, Any]:
    """What `genodiff.compare_designs` returns."""
    device, train = choose_device(asked.device), asked.train
    sets = {}
    for name, given in asked.sets.items():
        some = (ids for ids in read_ids(given) if len(ids))
        sets[name], _ = draw_some(some, asked.most, asked.seed)
        if len(sets[name]) < 2:
            raise DataError(f"{name}: fewer than two designs", fix="give two or more")
    length = int(np.median([len(ids) for some in sets.values() for ids in some]))
    natural, total = draw_some(cut_windows(read_ids(asked.real), length), asked.most, asked.seed)
    if len(natural) < 2:
        what = f"real sequence has {total} windows without N of {length:,} bases"
        raise DataError(what, fix="give more of it, as long as the designs or longer")
    with ProgressDisplay() as display:
        display.show("scoring designs")
        text = open_train(train, None, asked.offline)[0] if train is not None else None
        by = DesignJudges(
            guided=_open_score(asked, asked.oracle, device, "--oracle"),
            judge=_open_score(asked, asked.judge, device, "--judge"),
            bits=None if asked.run is None else _open_bits(asked, device),
            train=text,
            sign=-1 if asked.lower else 1,
            seed=asked.seed,
        )
        rows = compare_methods(sets, natural, by)
    found = {
        "genodiff": __version__,
        "length": length,
        "oracle": name_oracle(asked.oracle),
        "judge": name_oracle(asked.judge),
        "model": None if asked.run is None else str(asked.run),
        "train": str(train) if is_run(train) or isinstance(train, Path) else None,
        "lower": asked.lower,
        "rows": rows,
    }
    if asked.html is not None:
        with say_slow(f"drawing {asked.html}"):
            atomic.write_text(Path(asked.html), seal_page(find_named(_PAGE)(found)))
    return found


def _open_score(
    asked: DesignsRequest, one: OracleName | None, device: str, flag: str
) -> Score | None:
    """An oracle as a function of sequences of any lengths."""
    if one is None:
        return None
    label = asked.label if is_unit(one) else None
    oracle = open_oracle(GuideSettings("", oracle=one, form=asked.form, label=label), device, flag)
    assert oracle is not None

    def score(sequences: Sequence[Any]) -> Any:
        found = np.zeros(len(sequences))
        lengths = np.array([len(ids) for ids in sequences])
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            codes = np.stack([encode_bases(sequences[i]) for i in rows.tolist()])
            found[rows] = oracle(codes.astype(np.int64))
        return found

    return score


def _open_bits(asked: DesignsRequest, device: str) -> Score:
    """Bits per base of sequences under a run."""
    model = load_model(Path(str(asked.run)), device=device)
    if model.alphabet.domain != "dna":
        raise UsageError("designs are of DNA, and this is a run of text", fix="give a run of DNA")
    check_judge(model)

    def score(sequences: Sequence[Any]) -> Any:
        if model.objective.kind == "causal":
            nats = np.array([part.sum() for part in token_nats(model, sequences)])
        else:
            nats = bound_nats(model, sequences, repeats=asked.repeats, seed=asked.seed)
        return nats / np.array([len(ids) for ids in sequences]) / math.log(2)

    return score
