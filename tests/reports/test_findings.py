"""Findings: what makes a figure impossible, worthless or stale is said, and nothing else is."""

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import CONFIG, evaluation, fasta, make_run, metrics

from genodiff.reports.evaluation import Evaluation
from genodiff.reports.findings import is_below_source, list_findings, measure_gap_closed
from genodiff.reports.folder import read_folder


def of(run: Path) -> list[str]:
    return [f"{f.level}: {f.text}" for f in list_findings(read_folder(run))]


def score(**changed: Any) -> str:
    return json.dumps({"test": evaluation() | changed})


def test_a_sound_run_has_no_findings(tmp_path):
    assert of(make_run(tmp_path / "run")) == []


def test_a_bound_below_the_source_by_more_than_its_interval_is_impossible(tmp_path):
    value = evaluation(1.1, source=1.2)
    found = of(make_run(tmp_path / "run", eval_json=json.dumps({"test": value})))
    assert len(found) == 1
    assert found[0].startswith(
        "bad: The bound on test (1.1000 bits) is below the source's own (1.2000)"
    )


@pytest.mark.parametrize(
    ("difference", "interval", "impossible"),
    [((-0.1, [-0.12, -0.01]), [1.0, 1.1], True), ((-0.1, [-0.12, 0.01]), [1.0, 1.1], False), (None,
    [1.0, 1.19], True),
     (None, [1.0, 1.21], False), (None, None, True)],
)  # fmt: skip
def test_the_paired_interval_decides_where_there_is_one(difference, interval, impossible):
    paired = None if difference is None else {"bits": difference[0], "ci95": difference[1]}
    value = evaluation(1.1, source=1.2) | {"model_minus_source_bits": paired, "ci95_bits": interval}
    assert is_below_source(Evaluation.model_validate(value)) is impossible


def test_the_gap_is_measured_from_order_0_to_the_source():
    for value, closed in (
        (evaluation(1.45, source=1.0) | {"markov_bits": {"0": 1.9}}, pytest.approx(0.5)),
        (evaluation(1.5, source=None), None),
        (evaluation(1.5, source=1.0) | {"markov_bits": None}, None),
    ):
        assert measure_gap_closed(Evaluation.model_validate(value)) == closed


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"bits_per_base": 1.994},
            "composition alone has no higher figure than the model (order 0: 1.993 bits)",
        ),
        (
            {"markov_minus_model_bits": {"0": {"bits": 0.01, "ci95": [-0.01, 0.03]}}},
            "composition alone cannot be told apart from the model",
        ),
        (
            {"bits_per_base": 1.62},
            "On test Markov 7 has no higher figure than the model (1.618 bits)",
        ),
        (
            {"markov_minus_model_bits": {"7": {"bits": -0.02, "ci95": [-0.03, -0.01]}}},
            "On test Markov 7 is ahead of the model (1.618 bits)",
        ),
        (
            {
                "adaptive_mixture": {"bits": 1.3}
                | {"minus_model_bits": {"bits": -0.01, "ci95": [-0.03, 0.01]}}
            },
            "the adaptive mixture cannot be told apart from the model (1.300 bits)",
        ),
        ({"ci95_bits": None}, "has no interval"),
        ({"windows": 100}, "Only 100 of 391 windows"),
        ({"repeat_share": 0.07}, "7% of the windows of test share a 24-mer"),
    ],
)
def test_a_figure_that_needs_care_is_named(tmp_path, changed, said):
    found = of(make_run(tmp_path / "run", eval_json=score(**changed)))
    assert len(found) == 1
    assert found[0].startswith("warn: ")
    assert said in found[0]


def test_a_run_that_stopped_early_or_overfits_is_named(tmp_path):
    early = of(make_run(tmp_path / "early", config_yaml=CONFIG.replace("300", "400")))
    assert early == ["warn: Training is at step 300 of 400: the same command resumes it."]
    limited = of(
        make_run(tmp_path / "limited", config_yaml=CONFIG.replace("300", "400\n  max_minutes: 3"))
    )
    assert limited == ["warn: Training is at step 300 of 400: a limit of time may have ended it."]
    lines = metrics().splitlines()
    cells = lines[-1].split(",")
    cells[7] = "1.9"
    over = of(
        make_run(tmp_path / "over", metrics_csv="\n".join([*lines[:-1], ",".join(cells)]) + "\n")
    )
    assert len(over) == 1
    assert "ends at 1.900 after a best of 1.3" in over[0]


def test_a_loss_that_is_not_finite_is_bad(tmp_path):
    lines = metrics().splitlines()
    lines[5] = ",".join([*lines[5].split(",")[:3], "inf", *lines[5].split(",")[4:]])
    found = of(make_run(tmp_path / "run", metrics_csv="\n".join(lines) + "\n"))
    assert found == ["bad: 1 training steps have a loss that is not finite."]


def test_samples_that_repeat_or_hold_other_letters_are_named(tmp_path):
    text = fasta(2) + ">a\nACGN\n>b\nACGN\n"
    found = of(make_run(tmp_path / "run", samples_fa=text))
    assert found == [
        "warn: 2 samples hold letters other than A, C, G and T.",
        "warn: 1 samples are copies of others.",
    ]


def test_what_is_wrong_comes_before_what_needs_care(tmp_path):
    value = evaluation(1.1, source=1.2) | {"windows": 3}
    found = of(make_run(tmp_path / "run", eval_json=json.dumps({"test": value})))
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
