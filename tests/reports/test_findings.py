"""Findings: what makes a figure impossible, worthless or stale is said, and nothing else is."""

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import CONFIG, evaluation, fasta, make_run, metrics

from genodiff.reports.evaluation import Evaluation
from genodiff.reports.findings import is_below_source, list_findings, measure_gap_closed
from genodiff.reports.folder import read_folder


def of(folder: Path, **changed: str) -> list[str]:
    """The findings of a run of which some parts are others."""
    run = make_run(folder / "run", **changed)
    return [f"{f.level}: {f.text}" for f in list_findings(read_folder(run))]


def test_a_sound_run_has_no_findings(tmp_path):
    assert of(tmp_path) == []


def test_a_bound_below_the_source_by_more_than_its_interval_is_impossible(tmp_path):
    (found,) = of(tmp_path, eval_json=json.dumps({"test": evaluation(1.1, source=1.2)}))
    said = "bad: The bound on test (1.1000 bits) is below the source's own (1.2000)"
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("difference", "interval", "impossible"),
    [
        ([-0.12, -0.01], [1.0, 1.1], True), ([-0.12, 0.01], [1.0, 1.1], False),
        (None, [1.0, 1.19], True), (None, [1.0, 1.21], False), (None, None, True),
    ],
)  # fmt: skip
def test_the_paired_interval_decides_where_there_is_one(difference, interval, impossible):
    paired = None if difference is None else {"bits": -0.1, "ci95": difference}
    value = evaluation(1.1, source=1.2) | {"model_minus_source_bits": paired, "ci95_bits": interval}
    assert is_below_source(Evaluation.model_validate(value)) is impossible


def test_the_gap_is_measured_from_order_0_to_the_source():
    for value, closed in (
        (evaluation(1.45, source=1.0) | {"markov_bits": {"0": 1.9}}, pytest.approx(0.5)),
        (evaluation(1.5, source=None), None),
        (evaluation(1.5, source=1.0) | {"markov_bits": None}, None),
    ):
        assert measure_gap_closed(Evaluation.model_validate(value)) == closed


def gap(bits: float, low: float, high: float) -> dict[str, Any]:
    return {"bits": bits, "ci95": [low, high]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bits_per_base": 1.994},
         "composition alone has no higher figure than the model (order 0: 1.993 bits)"),
        ({"markov_minus_model_bits": {"0": gap(0.01, -0.01, 0.03)}},
         "composition alone cannot be told apart from the model"),
        ({"bits_per_base": 1.62},
         "On test Markov 7 has no higher figure than the model (1.618 bits)"),
        ({"markov_minus_model_bits": {"7": gap(-0.02, -0.03, -0.01)}},
         "On test Markov 7 is ahead of the model (1.618 bits)"),
        ({"adaptive_mixture": {"bits": 1.3, "minus_model_bits": gap(-0.01, -0.03, 0.01)}},
         "the adaptive mixture cannot be told apart from the model (1.300 bits)"),
        ({"ci95_bits": None}, "has no interval"),
        ({"windows": 100}, "Only 100 of 391 windows"),
        ({"repeat_share": 0.07}, "7% of the windows of test share a 24-mer"),
    ],
)  # fmt: skip
def test_a_figure_that_needs_care_is_named(tmp_path, changed, said):
    (found,) = of(tmp_path, eval_json=json.dumps({"test": evaluation() | changed}))
    assert found.startswith("warn: ")
    assert said in found


def test_a_run_that_stopped_early_or_overfits_is_named(tmp_path):
    for limit, why in (
        ("400", "the same command resumes it"),
        ("400\n  max_minutes: 3", "a limit of time may have ended it"),
    ):
        found = of(tmp_path / str(len(limit)), config_yaml=CONFIG.replace("300", limit))
        assert found == [f"warn: Training is at step 300 of 400: {why}."]
    (over,) = of(tmp_path / "over", metrics_csv=change(-1, 7, "1.9"))
    assert "ends at 1.900 after a best of 1.3" in over


def change(line: int, column: int, value: str) -> str:
    """metrics.csv with another value in one cell."""
    rows = [row.split(",") for row in metrics().splitlines()]
    rows[line][column] = value
    return "\n".join(map(",".join, rows)) + "\n"


def test_a_loss_that_is_not_finite_is_bad(tmp_path):
    found = of(tmp_path, metrics_csv=change(5, 3, "inf"))
    assert found == ["bad: 1 training steps have a loss that is not finite."]


def test_samples_that_repeat_or_hold_other_letters_are_named(tmp_path):
    assert of(tmp_path, samples_fa=fasta(2) + ">a\nACGN\n>b\nACGN\n") == [
        "warn: 2 samples hold letters other than A, C, G and T.",
        "warn: 1 samples are copies of others.",
    ]


def test_what_is_wrong_comes_before_what_needs_care(tmp_path):
    value = evaluation(1.1, source=1.2) | {"windows": 3}
    found = of(tmp_path, eval_json=json.dumps({"test": value}))
    assert [f.split(":")[0] for f in found] == ["bad", "warn"]


def test_the_fitted_markov_line_counts_where_it_is_better():
    fitted = {"order": 9, "pseudo": [1.0], "bits": 1.4, "perplexity": 2.6, "minus_model_bits": None}

    def best(**changed: Any) -> tuple[str, float] | None:
        line = Evaluation.model_validate(evaluation() | changed).best_line()
        return None if line is None else (line.kind.title, line.bits)

    assert best() == ("Markov 7", 1.618)
    assert best(markov_fitted=fitted) == ("tuned Markov model", 1.4)
    assert best(markov_fitted=fitted | {"bits": 1.7}) == ("Markov 7", 1.618)
    assert best(markov_bits={"0": 1.9}) is None
