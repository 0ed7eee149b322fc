"""Designs by several methods side by side: `genodiff.compare_designs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.api.scorecard import MOST, check_page, is_run, open_train, read_ids
from genodiff.errors import DataError, UsageError
from genodiff.generate.guide_settings import Form, GuideSettings, is_unit
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_input, check_run
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.reports.design_rows import DesignTable
    from genodiff.studies.design_table import Score

OracleName = str | Path | Callable[..., Any]


@own_defaults()
def compare_designs(
    designs: Mapping[str, Any],
    *,
    real: Any,
    oracle: OracleName | None = None,
    judge: OracleName | None = None,
    run: str | Path | None = None,
    train: Any = None,
    form: Form | None = None,
    label: str | None = None,
    lower: bool = False,
    repeats: int = 8,
    most: int = MOST,
    html: str | Path | None = None,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """A Pareto table of `designs`, sequences by the name of their method, as plain values.

    `oracle` is what guided them and `judge` an oracle that did not: callables,
    "module:function", or folders of fine-tuned models (with `label` for the log-odds of a class;
    `form` is what a callable takes). `lower` says that small scores are wanted. `run` is a model
    that was not guided: its bits per base, an upper bound from `repeats` masks, are the
    naturalness. `real` are natural sequences, of the designs' length or longer, and `train` what
    is searched for copies: sequences or a run. Of each set, `most` are drawn by `seed`.

    `rows` has a row for each method, then "real". `html` is a page to write. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`.
    """
    from genodiff.io.containers import read_columns

    if not isinstance(designs, Mapping):  # a frame has a column for each method
        designs = read_columns(designs) or {}
    if not designs:
        raise UsageError("no designs to compare", fix="give --designs NAME=FASTA")
    if "real" in designs:
        raise UsageError("'real' is the row of --real", fix="give the designs another name")
    if most < 2:
        raise UsageError(f"--most {most} is below 2", fix="give 1000, say")
    if repeats < 1:
        raise UsageError(f"--repeats {repeats} is below 1", fix="give 1 or more")
    if judge is not None and (judge is oracle or judge == oracle):
        raise UsageError(
            f"--judge and --oracle are both {_name(judge)}",
            fix="give a judge that guided none of the designs, or leave it out",
        )
    if label is not None and not any(is_unit(one) for one in (oracle, judge)):
        what = f"--oracle-label {label} is of a fine-tuned oracle, and there is none"
        raise UsageError(what, fix="leave it out")
    if run is not None:
        check_run(run)
    for given in (*designs.values(), real, train):
        if isinstance(given, Path):
            check_input(given)
    if html is not None:
        check_page(html, (*designs.values(), real, train), force=force)
    device = choose_device(device)
    import numpy as np

    from genodiff.io.progress import ProgressDisplay
    from genodiff.studies.design_table import DesignJudges, compare_methods
    from genodiff.studies.real_sequence import cut_windows, draw_some

    sets = {}
    for name, given in designs.items():
        sets[name], _ = draw_some((ids for ids in read_ids(given) if len(ids)), most, seed)
        if len(sets[name]) < 2:
            raise DataError(f"{name}: fewer than two designs", fix="give two or more")
    length = int(np.median([len(ids) for some in sets.values() for ids in some]))
    natural, total = draw_some(cut_windows(read_ids(real), length), most, seed)
    if len(natural) < 2:
        what = f"real sequence has {total} windows without N of {length:,} bases"
        raise DataError(what, fix="give more of it, as long as the designs or longer")

    def open_score(one: OracleName | None, flag: str) -> Score | None:
        if one is None:
            return None
        settings = GuideSettings("", oracle=one, form=form, label=label if is_unit(one) else None)
        return _open_score(settings, device, flag)

    with ProgressDisplay() as display:
        display.show("scoring designs")
        text = open_train(train, None, offline)[0] if train is not None else None
        by = DesignJudges(
            guided=open_score(oracle, "--oracle"),
            judge=open_score(judge, "--judge"),
            bits=None if run is None else _open_bits(run, device, repeats, seed),
            train=text,
            sign=-1 if lower else 1,
            seed=seed,
        )
        rows = compare_methods(sets, natural, by)
    found = {
        "genodiff": __version__,
        "length": length,
        "oracle": _name(oracle),
        "judge": _name(judge),
        "model": None if run is None else str(run),
        "train": str(train) if is_run(train) or isinstance(train, Path) else None,
        "lower": lower,
        "rows": rows,
    }
    if html is not None:
        from genodiff.io import atomic
        from genodiff.io.target import seal_page
        from genodiff.reports.design_page import render_designs

        atomic.write_text(Path(html), seal_page(render_designs(found)))
    return found


def list_design_cells(found: Mapping[str, Any]) -> DesignTable:
    """The columns and rows of a table, with their digits."""
    from genodiff.reports.design_rows import make_design_table

    return make_design_table(found)


def _name(oracle: OracleName | None) -> str | None:
    if oracle is None or isinstance(oracle, str | Path):
        return None if oracle is None else str(oracle)
    return str(getattr(oracle, "__qualname__", type(oracle).__name__))


def _open_score(settings: GuideSettings, device: str, flag: str) -> Score:
    """An oracle as a function of sequences of any lengths."""
    import numpy as np

    from genodiff.data.stretches import encode_bases
    from genodiff.generate.guided_model import open_oracle

    oracle = open_oracle(settings, device, flag)
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


def _open_bits(run: str | Path, device: str, repeats: int, seed: int) -> Score:
    """Bits per base of sequences under a run."""
    import math

    import numpy as np

    from genodiff.evaluation.generative import bound_nats, check_judge, token_nats
    from genodiff.runs.model import load_model

    model = load_model(Path(run), device=device)
    if model.alphabet.domain != "dna":
        raise UsageError("designs are of DNA, and this is a run of text", fix="give a run of DNA")
    check_judge(model)

    def score(sequences: Sequence[Any]) -> Any:
        if model.objective.kind == "causal":
            nats = np.array([part.sum() for part in token_nats(model, sequences)])
        else:
            nats = bound_nats(model, sequences, repeats=repeats, seed=seed)
        return nats / np.array([len(ids) for ids in sequences]) / math.log(2)

    return score
