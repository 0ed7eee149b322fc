"""The report of a sweep: complete, offline, with the audit and what is published; it says what is
not comparable.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from genodiff.finetuning.scored_unit import read_predictions
from genodiff.finetuning.sweep import TASKS
from genodiff.finetuning.unit import RESULT, TEST, UNITS, add_rows
from genodiff.io import atomic
from genodiff.reports.benchmark import render_page, write_benchmark
from genodiff.reports.benchmark_tables import (
    clip_interval,
    describe_comparisons,
    format_markdown,
    make_table_rows,
)
from genodiff.reports.sweep_results import format_summary, read_sweep
from genodiff.runs.sealed_files import encode_tensors
from genodiff.tasks.audit import audit_lines

NAME = "human_enhancers_cohn"
LEAKS = ("same", "reverse_complement", "shared_kmers", "same_place", "overlap")
AUDIT = {
    "suite": "genomic-benchmarks", "task": NAME, "split": "official", "classes": ["negative",
    "positive"],
    "counts": {"train": {"negative": 20, "positive": 20}, "test": {"negative": 10, "positive": 10}},
    "lengths": {"train": [500, 500.0, 500], "test": [300, 400.0, 500]},
    "leaks": {name: {"all": [3, 20], "negative": [1, 10], "positive": [2, 10]} for name in LEAKS},
    "repeats": {"train": 0, "test": 0}, "blank": {"train": 0, "test": 0}, "conflicts": 0,
    "accuracy": {"majority": 0.5, "lookup_overlap": 0.775}, "notes": ["<b>note</b>"],
}  # fmt: skip


def write_sweep(out: Path, split: str = "official") -> None:
    """Two models with two seeds and a baseline on one task, without fitting anything."""
    rng = np.random.default_rng(1)
    truth = np.arange(20) % 2
    rows = []
    models = (("pretrained", "checkpoint", 0.9), ("scratch", "scratch", 0.3))
    for model, kind, skill in (*models, ("majority", "baseline", 0.0)):
        for seed in (1, 2):
            p = np.clip(0.5 + skill * (truth - 0.5) + 0.2 * rng.normal(size=20), 0.01, 0.99)
            folder = out / UNITS / f"{model}{seed}"
            folder.mkdir(parents=True)
            predicted = np.stack([1 - p, p], 1).astype(np.float32)
            tensors = {"predicted": torch.from_numpy(predicted), "truth": torch.from_numpy(truth)}
            tensors["lengths"] = torch.from_numpy(np.linspace(300, 500, 20).astype(np.int64))
            atomic.write_bytes(folder / TEST, encode_tensors(tensors))
            value = float((predicted.argmax(1) == truth).mean())
            network = kind != "baseline"
            settings = {"rc": "conjoin", "max_steps": None, "epochs": 10}
            settings |= {"batch_size": 256, "lr": 1e-3}
            row = {
                "suite": "genomic-benchmarks", "task": NAME, "split": split, "model": model,
                "kind": kind,
                "method": "full" if network else "baseline", "setting": "paper" if network else "",
                "seed": seed, "key": f"{model}{seed}",
                "digest": model, "settings": settings if network else None,
                "metric": "accuracy", "value": value,
                "metrics": {"accuracy": value, "mcc": None},
                "valid": 0.5, "n_test": 20, "data": "d", "seconds": 3.0, "parameters": 470_702,
                "cut_train": 4, "cut_test": 2, "max_length": 400,
            }  # fmt: skip
            rows.append(row)
            epoch = {"step": 3, "train_loss": 0.7, "valid": 0.5}
            history = [
                epoch | {"epoch": 0, "valid_loss": 0.6},
                epoch | {"epoch": 1, "valid_loss": 0.5, "valid": None},
            ]
            result = {"row": row} | ({"history": history} if network else {})
            atomic.write_json(folder / RESULT, result)
    add_rows(out, rows)
    about = {
        "suite": "genomic-benchmarks", "task": NAME, "split": split, "kind": "binary",
        "classes": ["negative", "positive"],
        "metric": "accuracy", "metrics": ["accuracy", "mcc"], "notes": [],
        "audit": AUDIT | {"split": split},
    }  # fmt: skip
    atomic.write_json(out / TASKS, {f"genomic-benchmarks {NAME} {split} d": about})


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_sweep(folder / "a & <b>")
    return folder / "a & <b>"


def test_the_page_is_one_file_that_asks_for_nothing_and_escapes_what_it_is_given(out):
    results, html = write_benchmark(out)["files"]
    text = html.read_text()
    assert results.read_text().startswith("# Fine-tuning results")
    assert not re.findall(r"(?:src|href)=\"(?!#)", text)
    assert "<script" not in text
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert "<b>note</b>" not in text
    assert "a &amp; &lt;b&gt;" in text
    # places, learning, calibration, lengths; the first two also for phones
    assert text.count("<svg") == 6
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert write_benchmark(out)["files"][1].read_text() == text


def test_the_table_holds_our_rows_the_published_ones_and_the_audit(out):
    session = {"command": "genodiff finetune", "git": "abc", "threads": 2}
    text = "\n".join(format_markdown(read_sweep(out), [session]))
    assert "| Caduceus-PS 470k (published) | 0.745 ± 0.007 |" in text
    assert "MDLM 467k" in text
    assert all(line in text for line in audit_lines(AUDIT))
    assert "4 train and 2 of 20 test sequences were cut to 400 bases" in text
    assert "`genodiff finetune`: commit abc" in text
    order = [text.index(f"\n| {name} |") for name in ("majority", "scratch", "pretrained")]
    assert order == sorted(order)


def test_published_values_stand_beside_the_official_split_only(tmp_path):
    write_sweep(tmp_path, "local")
    text = "\n".join(format_markdown(read_sweep(tmp_path), []))
    assert "published" not in text
    assert "not comparable with published numbers" in render_page(read_sweep(tmp_path), [], "x")


def test_an_interval_ends_where_its_metric_does():
    assert clip_interval((0.87, 1.08), "accuracy") == (0.87, 1.0)
    assert clip_interval((-1.2, 0.3), "mcc") == (-1.0, 0.3)
    assert clip_interval((-0.1, 7.0), "mse") == (0.0, 7.0)
    assert clip_interval((-3.0, 9.0), "of-its-own") == (-3.0, 9.0)


def test_means_and_spans_are_those_of_the_rows(out):
    (panel,) = read_sweep(out)
    for line in panel.lines:
        values = [row["value"] for row in line.rows]
        assert line.mean == pytest.approx(np.mean(values))
        assert line.range == pytest.approx(max(values) - min(values))
        assert line.estimate.value == pytest.approx(line.mean)
    words = [line.split()[0] for line in format_summary([r for x in panel.lines for r in x.rows])]
    told = "it"  # is not known what pretraining saw: rows of an older session
    assert words == [f"{NAME},", "pretrained", "scratch", "majority", told]  # best first


def test_comparisons_are_paired_corrected_together_and_said_in_their_words(out):
    (panel,) = read_sweep(out)
    pairs = [("pretrained", "scratch"), ("pretrained", "majority")]
    assert [(gap.a, gap.b) for gap in panel.comparisons] == pairs
    means = {line.name: line.mean for line in panel.lines}
    for gap in panel.comparisons:
        assert gap.estimate.value == pytest.approx(means[gap.a] - means[gap.b])
        assert gap.estimate.ci95 is not None
    p = sorted(gap.estimate.p or 0 for gap in panel.comparisons)
    holm = sorted(gap.p_holm or 0 for gap in panel.comparisons)
    assert holm == pytest.approx([min(1, 2 * p[0]), max(min(1, 2 * p[0]), p[1])])
    text = "\n".join(format_markdown([panel], []))
    assert "Holm's correction is over 2 comparisons" in text
    assert "Near-duplicates among the test examples were not determined." in text
    for gap in panel.comparisons:
        cells = f"| {gap.a} | {gap.b} | {gap.estimate.value:+.4f} |"
        (line,) = [row for row in text.splitlines() if row.startswith(cells)]
        assert line.endswith(f"| {gap.describe()} |")
    assert "equivalent" not in text
    few = describe_comparisons(panel._replace(n_judged=0))
    assert "No comparison was tested: that needs several seeds." in few
    page = render_page([panel], [], "x")
    assert "Comparisons</h3>" in page
    assert page.count("cannot be told apart") + page.count('<td class="text">ahead</td>') == 2


def test_equivalence_is_said_only_of_a_margin_and_copies_are_one_test(out):
    (wide,) = read_sweep(out, margin=5.0)
    for gap in wide.comparisons:
        assert gap.describe().endswith("within ±5")
    (plain,) = read_sweep(out)
    known = wide.about | {"test_clusters": [[0, 2], [1, 3, 5]]}
    name = f"genomic-benchmarks {NAME} official d"
    try:
        atomic.write_json(out / TASKS, {name: known})
        (panel,) = read_sweep(out)
        assert "3 near-duplicate test examples" in "\n".join(format_markdown([panel], []))
        one, other = (p.comparisons[1].estimate.parts for p in (panel, plain))
        assert one[0][1] == pytest.approx(400 / (4 + 9 + 15) - 1)
        assert other[0][1] == 19
    finally:
        atomic.write_json(out / TASKS, {name: plain.about})


def test_a_summary_for_the_terminal_has_the_comparisons_below_each_task(out):
    comparisons = write_benchmark(out)["comparisons"]
    rows = [row for panel in read_sweep(out) for line in panel.lines for row in line.rows]
    lines = [line for line in format_summary(rows, comparisons) if "Holm p" in line]
    assert len(lines) == 2
    assert lines[0].startswith("  pretrained minus scratch: +0.")


def test_an_ensemble_of_seeds_is_a_line_of_its_own_and_in_no_comparison(out):
    (panel,) = read_sweep(out)
    lines = {line.name: line for line in panel.lines}
    more = {f"{name}, ensemble of seeds" for name in ("scratch", "pretrained")}
    assert set(lines) == {"majority", "scratch", "pretrained", *more}
    given = [read_predictions(out / UNITS / f"scratch{seed}") for seed in (1, 2)]
    mean = (given[0][0] + given[1][0]) / 2
    ensemble = lines["scratch, ensemble of seeds"]
    assert ensemble.mean == (mean.argmax(1) == given[0][1]).mean()
    assert ensemble.rows[0]["seconds"] == sum(r["seconds"] for r in lines["scratch"].rows)
    assert ensemble.estimate.seeds == 1
    assert not any("ensemble" in gap.a + gap.b for gap in panel.comparisons)
    (row,) = [r for r in make_table_rows(panel) if r["name"] == ensemble.name]
    assert row["seeds"] == "2, averaged"
    assert "(this ensemble)" in row["interval"]
    assert row["valid"] == ""
    table = "\n".join(format_markdown([panel], []))
    assert f"| {ensemble.name} | {ensemble.mean:.4f} |" in table
