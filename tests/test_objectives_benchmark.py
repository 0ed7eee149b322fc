"""A comparison: equal tokens for all rows, differences by windows; a second call only reads."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from genodiff.errors import UsageError
from genodiff.statistics.interval import BITS, compare_models, estimate_ratio, ratio

HERE = Path(__file__).resolve().parent.parent / "benchmarks" / "objectives"
sys.path.insert(0, str(HERE))

from trial_page import write_page  # noqa: E402
from trials import compare_schedules, plan, read_spec, run_comparison  # noqa: E402

TINY = yaml.safe_load(
    "{seq_len: 64, d_model: 16, n_layer: 1, d_state: 4, validate_every: 4, validate_windows: 8,"
    " lr: 0.01}"
)
SPEC: dict[str, Any] = yaml.safe_load("""
title: Toy <tiny>
recipe: toy
tokens: 2048
rows:
- {name: MDLM, published: 3.199, settings: {preset: caduceus-ph-tiny, batch_size: 4}}
- {name: AR, published: 3.067, settings: {preset: mamba-tiny, objective: ar, batch_size: 8}}
windows: 12
schedules: [linear, cosine]
schedule_repeats: 4
""") | {"settings": TINY}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(SPEC | changes))
    return path


def test_rows_see_equal_tokens_and_a_second_call_only_reads(tmp_path):
    path = written(tmp_path)
    spec = read_spec(path, {})
    out = tmp_path / "out"
    entries = run_comparison(spec, path, out)
    assert [entry.config.train.max_steps for entry in entries] == [8, 4]
    assert [entry.figure for entry in entries] == ["bound", "exact"]
    tried = compare_schedules(spec, entries)
    assert {figure.row for figure in tried} == {"MDLM"}
    rows = write_page(spec, entries, tried, out)
    assert [row["tokens"] for row in rows] == [2048, 2048]
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*.safetensors")}
    again = run_comparison(spec, path, out)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    for first, second in zip(entries, again, strict=True):
        assert np.array_equal(first.scores[0].nats, second.scores[0].nats)
    mine, other = entries[1].scores[0], entries[0].scores[0]
    gap = ratio(mine.nats - other.nats, mine.size).scaled(1 / math.log(2))
    assert rows[1]["minus"]["bits"] == pytest.approx(gap.value)
    assert rows[1]["minus"]["ci95"] == pytest.approx(gap.ci95)
    assert rows[1]["minus"]["p"] == rows[1]["minus"]["p_holm"]
    assert rows[0]["minus"] is None
    published = pytest.approx(math.log2(3.067) - math.log2(3.199))
    assert [row["published_minus_bits"] for row in rows] == [None, published]
    bits = float(other.nats.sum() / other.tokens.sum()) / math.log(2)
    assert rows[0]["bits"] == pytest.approx(bits)
    table, page = (out / "table.md").read_text(), (out / "compare.html").read_text()
    for word in ("| MDLM |", "3.067", "exact count", "cosine", "minus MDLM", "| -0.0608 |"):
        assert word in table
    assert "<svg" in page
    assert "Toy &lt;tiny&gt;" in page
    assert "://" not in page
    figures = json.loads((out / "results.json").read_text())["schedules"]
    assert [f["name"] for f in figures] == ["linear", "cosine", "exact count"]
    assert figures[2]["variance"] < figures[0]["variance"]


@pytest.mark.slow
def test_several_seeds_are_judged_over_seeds_and_windows_together(tmp_path):
    path = written(tmp_path, schedules=[], against="AR")
    spec = read_spec(path, {"seeds": [1, 2, 3], "tokens": 512})
    entries = run_comparison(spec, path, tmp_path / "out")
    rows = write_page(spec, entries, [], tmp_path / "out", margin=1.0)
    nats = {e.row.name: np.stack([s.nats for s in e.scores]) for e in entries}
    size = entries[0].scores[0].size
    (judged,) = compare_models(nats, size, margin=1.0)
    assert judged.estimate.seeds == 3
    (pair,) = json.loads((tmp_path / "out" / "results.json").read_text())["pairs"]
    assert pair["verdict"] == judged.describe(higher_is_better=False)
    assert pair["bits"] == pytest.approx(rows[0]["minus"]["bits"])
    assert rows[0]["minus"]["ci95"] == pytest.approx(pair["ci95"])
    wanted = estimate_ratio(nats["MDLM"], size).scaled(BITS).ci95
    assert rows[0]["ci95_bits"] == pytest.approx(wanted)
    table = (tmp_path / "out" / "table.md").read_text()
    assert "Intervals are over training seeds and blocks of windows together" in table
    assert "| MDLM | AR |" in table
    assert "within ±1 |" in table


@pytest.mark.slow
def test_rows_may_have_tokens_of_their_own_and_their_compute_is_counted(tmp_path):
    """Paired strands and D3PM's loss run the network twice on every window."""
    small = {"preset": "caduceus-ps-tiny", "batch_size": 4}
    rows = [
        {"name": "PH", "settings": small | {"preset": "caduceus-ph-tiny"}},
        {"name": "PS", "settings": small},
        {"name": "PS half", "settings": small, "tokens": 256},
        {"name": "D3PM", "settings": small | {"preset": "caduceus-ph-tiny", "objective": "d3pm"}},
    ]
    path = written(tmp_path, rows=rows, schedules=[], tokens=512)
    spec = read_spec(path, {})
    entries = run_comparison(spec, path, tmp_path / "out")
    found = {row["name"]: row for row in write_page(spec, entries, [], tmp_path / "out")}
    assert [row["tokens"] for row in found.values()] == [512, 512, 256, 512]
    assert [row["passes"] for row in found.values()] == [1, 2, 2, 2]
    assert found["PS"]["compute"] == pytest.approx(2 * found["PS half"]["compute"])
    assert found["D3PM"]["compute"] == 2
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| compute |" in table
    assert "published" not in table


def test_more_seeds_are_more_runs_and_their_spread_is_shown(tmp_path):
    path = written(tmp_path, rows=SPEC["rows"][:1], schedules=[])
    spec = read_spec(path, {"seeds": [1, 2], "tokens": 256})
    entries = run_comparison(spec, path, tmp_path / "out")
    rows = write_page(spec, entries, [], tmp_path / "out")
    assert len(entries[0].runs) == len(rows[0]["seeds_bits"]) == 2
    assert rows[0]["seeds_bits"][0] != rows[0]["seeds_bits"][1]
    assert rows[0]["bits"] == pytest.approx(sum(rows[0]["seeds_bits"]) / 2)
    assert "over seeds" in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": []}, "rows"),
        ({"rows": [{"name": "A"}, {"name": "a"}]}, "twice"),
        ({"rows": [{"name": "../x"}]}, "folder"),
        ({"against": "MDML"}, "did you mean 'MDLM'"),
        ({"schedules": ["lineal"]}, "did you mean 'linear'"),
        ({"tokenz": 3}, "did you mean 'tokens'"),
        ({"settings": TINY | {"max_steps": 3}}, "follow from tokens"),
        ({"rows": [{"name": "A"}, {"name": "B", "settings": {"seq_len": 32}}]}, "32 and 64"),
        ({"rows": [{"name": "A", "settings": {"objective": "ar"}}]}, "reads one way"),
        ({"rows": SPEC["rows"][1:]}, "no row is MDLM in continuous time"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused_before_any_work(tmp_path, changes, said):
    path = written(tmp_path, **changes)
    with pytest.raises(UsageError, match=said):
        plan(read_spec(path, {}), path)


def test_the_committed_specs_can_be_planned():
    for path in sorted(HERE.glob("*.yaml")):
        assert plan(read_spec(path, {}), path)
