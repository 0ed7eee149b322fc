"""Sweeps: what is done stays done, side by side or alone, killed or not; the test part is opened
once; searches see validation only.
"""

import json
import math
import os
from pathlib import Path

import pytest

from genodiff.errors import CheckpointError, DataError, GenodiffError, UsageError
from genodiff.finetuning.choosing import take_best
from genodiff.finetuning.estimate import estimate, format_estimate
from genodiff.finetuning.fitted_model import load_fitted
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.protocol import FitSettings, list_protocol_settings
from genodiff.finetuning.sweep import SweepPlan, choose_settings, sweep, warn_of_guesses
from genodiff.finetuning.unit import FILE, TIMES, add_rows, read_results, strip_variable_keys
from genodiff.finetuning.unit_selection import UnitChoice
from genodiff.reports.sweep_results import group_rows, name_groups
from genodiff.tasks.data_request import DataRequest, TableFiles
from genodiff.tasks.metrics import is_better
from genodiff.tasks.suite import load_suite
from tests.commands import SERVER
from tests.finetuning.motif_task import write_tables
from tests.tiny_run import write_run

BASELINES = list_baselines("dna")

OVER = {"epochs": 2, "batch_size": 16, "lr": 1e-2}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    write_tables(folder, 40, 20, (30, 40), ("without", "with"))
    write_run(folder)
    return folder


def request_of(home: Path) -> DataRequest:
    table = TableFiles(name="motif", train=str(home / "train.csv"), test=str(home / "test.csv"))
    return DataRequest(suite="table", split="own", table=table)


def plan_of(home: Path, words: list[str], **more: object) -> SweepPlan:
    values: dict[str, object] = {"seeds": 2, "over": OVER} | more
    return SweepPlan(request_of(home), ["motif"], parse_models(words, BASELINES), **values)  # type: ignore[arg-type]


def rows_of(out: Path) -> list[dict[str, object]]:
    return [strip_variable_keys(row) for row in read_results(out)]


@pytest.fixture(scope="module")
def calm(home):
    """A sweep that nothing disturbed."""
    out = home / "calm"
    sweep(plan_of(home, [f"ours={home / 'run'}", "scratch", "majority"]), out)
    return out


def test_every_unit_has_one_row_with_what_it_takes_to_run_it_again(calm):
    rows = read_results(calm)
    assert [(r["model"], r["seed"]) for r in rows] == [
        (m, s) for m in ("majority", "ours", "scratch") for s in (1, 2)
    ]
    keys = {"suite", "task", "split", "model", "seed", "metric", "value", "n_test"}
    assert keys <= rows[0].keys()
    for row in rows:
        assert row["metric"] == "accuracy"
        assert 0 <= row["value"] <= 1
        assert row["n_train"] + row["n_valid"] == 40
        assert row["n_test"] == 20
    ours = rows[2]
    assert ours["settings"]["rc"] == "conjoin"
    assert ours["settings"]["epochs"] == 2
    assert ours["checkpoint"] == ours["digest"]
    assert not list(calm.glob("units/*/state.safetensors"))


def test_scratch_is_the_network_of_the_checkpoint_with_other_weights(home, calm):
    ours, scratch = parse_models([str(home / "run"), "scratch"], BASELINES)
    (a, _), (b, _) = ours.network(1), scratch.network(1)
    both = zip(a.named_parameters(), b.named_parameters(), strict=True)
    assert all((n, p.shape) == (m, q.shape) for (n, p), (m, q) in both)
    assert any((p != q).any() for p, q in zip(a.parameters(), b.parameters(), strict=True))
    sizes = {r["parameters"] for r in read_results(calm) if r["model"] != "majority"}
    width = a.d_out // 2  # one strand's features go into the head, which counts too
    assert sizes == {sum(p.numel() for p in a.parameters()) + 2 * (width + 1)}


def test_a_finished_sweep_is_not_run_again(home, calm):
    files = (p for p in calm.rglob("*") if p.is_file() and p.name != "sessions.json")
    before = {p: p.stat().st_mtime_ns for p in files if not p.name.endswith(".lock")}
    rows = sweep(plan_of(home, [f"ours={home / 'run'}", "scratch", "majority"]), calm)
    assert len(rows) == 6
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_an_adapter_is_for_the_weights_of_a_run_and_what_is_kept_is_merged(home):
    words = [f"ours={home / 'run'}", "scratch"]
    plan = plan_of(home, words, seeds=1, over=OVER | {"adapter": "lora:r=2,on=in_proj"})
    rows = {row["model"]: row for row in sweep(plan, home / "adapted")}
    ours, scratch = rows["ours"], rows["scratch"]
    assert ours["settings"]["adapter"] == "lora:r=2,on=in_proj"
    assert ours["trained"] < ours["parameters"] / 3
    assert "adapter" not in scratch["settings"]
    assert scratch["trained"] == scratch["parameters"] == ours["parameters"]
    kept = load_fitted(home / "adapted", UnitChoice(model="ours"))
    assert not any("parametrizations" in name for name in kept.network.state_dict())
    assert len(kept.predict(["ACGT" * 9])) == 1


@pytest.mark.slow
def test_units_side_by_side_give_the_rows_of_units_one_after_another(home, calm):
    out = home / "parallel"
    sweep(plan_of(home, [f"ours={home / 'run'}", "scratch", "majority"]), out, jobs=2)
    assert rows_of(out) == rows_of(calm)


def command(home: Path, out: Path) -> list[str]:
    words = (
        f"finetune table --train {home}/train.csv --test {home}/test.csv --name motif --out {out}"
    )
    words += f" --threads 1 --model ours={home}/run --model scratch --model majority --seeds 2"
    return [*words.split(), *"--head mean --epochs 2 --batch-size 16 --lr 0.01 -q".split()]


def run_killed(home: Path, out: Path, crashes: list[int]) -> int:
    """Run the command with a crash at each of these I/O operations, then once in peace; how often
    it really died.
    """
    died = 0
    for at in crashes:
        env = os.environ | {"GENODIFF_CRASH_AT": str(at)}
        done = SERVER.run(command(home, out), env=env, timeout=300)
        died += done.returncode == -9
    done = SERVER.run(command(home, out), timeout=300)
    assert done.returncode == 0, done.stderr
    return died


@pytest.mark.slow
def test_a_sweep_killed_in_the_midst_of_writing_leaves_the_same_rows(home, calm):
    out = home / "killed"
    assert run_killed(home, out, [23, 64]) == 2
    assert rows_of(out) == rows_of(calm)
    assert not list(out.rglob(".genodiff-*"))


def test_a_search_that_is_killed_asks_the_same_questions_again(home, monkeypatch):
    pytest.importorskip("optuna")
    plan = plan_of(home, [f"ours={home / 'run'}"], search=3, seeds=1, over={"epochs": 1})
    sweep(plan, home / "search")
    whole = (home / "search" / "search.jsonl").read_text()
    assert whole.count("\n") == 3
    part = home / "search-again"
    part.mkdir()
    (part / "search.jsonl").write_text("".join(whole.splitlines(keepends=True)[:2]))
    sweep(plan, part)
    assert (part / "search.jsonl").read_text() == whole
    assert rows_of(part) == rows_of(home / "search")


def test_the_best_setting_is_the_first_of_equals_and_failures_never_win():
    settings = [FitSettings(lr=r) for r in (1e-3, 2e-3, 3e-3)]
    assert take_best(settings, [math.nan, 0.5, 0.5], "accuracy") == settings[1]
    assert take_best(settings, [3.0, 2.0, 2.5], "mse") == settings[1]
    assert is_better("accuracy", 0.6, 0.5)
    with pytest.raises(GenodiffError, match="failed"):
        take_best(settings, [math.nan] * 3, "accuracy")


def test_a_unit_that_fails_is_named_and_the_others_are_kept(home, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise GenodiffError("step 3: the loss or its gradient is not finite", fix="lower --lr")

    monkeypatch.setattr("genodiff.finetuning.fit_loop.FitLoop.run", fail)
    out = home / "failing"
    with pytest.raises(GenodiffError, match=r"1 of 2 units failed.*motif ours seed 1.*not finite"):
        sweep(plan_of(home, ["majority", f"ours={home / 'run'}"], seeds=1), out)
    assert [row["model"] for row in read_results(out)] == ["majority"]


def test_models_are_named_by_paths_presets_and_baselines(home):
    run = str(home / "run")
    tiny = "scratch:caduceus-ps-tiny"
    found = parse_models(["baselines", run, tiny, f"twin={run}", "scratch"], BASELINES)
    assert [c.name for c in found] == [*BASELINES, "run", tiny, "twin", "scratch"]
    assert parse_models(["scratch"], BASELINES)[0].preset == "caduceus-ps-470k"
    for words, message in (
        (["majorty"], "did you mean 'majority'"),
        (["scratch:caduceus-ps-tyny"], "did you mean 'caduceus-ps-tiny'"),
        (["no/such/run"], "not there"),
        ([f"a={run}", "a=scratch"], "two models are called 'a'"),
    ):
        with pytest.raises((UsageError, CheckpointError), match=message):
            parse_models(words, BASELINES)


def test_the_papers_best_settings_follow_the_network_and_the_task():
    for task, rc, wanted in (
        ("human_enhancers_cohn", "conjoin", 2e-3),
        ("human_enhancers_cohn", "average", 1e-3),
        ("demo_human_or_worm", "augment", 1e-3),
        ("drosophila_enhancers_stark", "conjoin", None),
    ):
        assert list_protocol_settings("genomic-benchmarks", task, rc).get("lr") == wanted
    assert list_protocol_settings("nt", "H3", "conjoin")["epochs"] == 20
    usual = FitSettings()
    assert (usual.epochs, usual.batch_size, usual.weight_decay, usual.clip) == (10, 256, 0.1, 1.0)


def test_a_plan_counts_steps_exactly_and_its_time_is_near_the_truth(home):
    plan = plan_of(home, [f"ours={home / 'run'}", "majority"])
    found = estimate(plan, "cpu", 1)
    ours, majority = found["rows"]
    assert ours["steps"] == 2 * math.ceil(36 / 16)
    assert found["units"] == 4
    assert majority.get("seconds") is None
    assert found["downloads"] == []
    assert found["memory_bytes"] > 5 * 4 * ours["parameters"]
    assert format_estimate(found)[-1] == "fetch    nothing"


def test_a_plan_says_what_is_to_be_fetched(tmp_path):
    request = DataRequest(suite="genomic-benchmarks", data=str(tmp_path))
    models = parse_models(["scratch:caduceus-ps-tiny", "baselines"], BASELINES)
    plan = SweepPlan(request, ["human_enhancers_cohn"], models, seeds=5)
    found = estimate(plan, "cpu", 4)
    assert found["rows"][0]["n_train"] == 20_843
    assert found["rows"][0]["steps"] == 10 * math.ceil((20_843 - 2_084) / 256)
    assert any("hg38" in row["what"] for row in found["downloads"])
    assert any(line.startswith("fetch    genome hg38: https://") for line in format_estimate(found))
    lines = [line for line in format_estimate(found) if "human_enhancers_cohn ·" in line]
    assert len(lines) == 2, "the network's, and one of all baselines"
    assert found["seconds"] == pytest.approx(found["cpu_seconds"] / 4)


def test_rows_are_kept_sorted_and_a_damaged_file_is_named(tmp_path):
    row = ROW | {"model": "m", "value": 0.5}
    add_rows(tmp_path, [row | {"seed": 10, "key": "b"}, row | {"seed": 2, "key": "a"}])
    add_rows(tmp_path, [row | {"seed": 1, "key": "c"}])
    assert [r["seed"] for r in read_results(tmp_path)] == [1, 2, 10]
    with (tmp_path / FILE).open("a") as file:
        file.write('{"half a ro')
    with pytest.raises(DataError, match="line 4"):
        read_results(tmp_path)
    assert "seconds" in TIMES


ROW = {"suite": "s", "task": "t", "split": "own", "data": "d", "method": "full", "setting": "own"}


def test_lines_of_one_model_are_named_by_what_sets_them_apart():
    def row(model: str, **settings: object) -> dict[str, object]:
        return ROW | {"model": model, "seed": 1, "settings": settings}

    rows = [row("ours", rc=rc, lr=1e-3) for rc in ("none", "average")]
    rows.append(row("theirs", rc="none", lr=1e-3))
    rows += [row("new", rc=rc, parts=n) for rc, n in (("none", 9), ("none", 1), ("average", 1))]
    (groups,) = group_rows(rows).values()
    assert name_groups(groups) == [
        "ours (rc none)", "ours (rc average)", "theirs", "new (parts 9, rc none)",
        "new (parts 1, rc none)", "new (parts 1, rc average)",
    ]  # fmt: skip


def test_a_seed_counts_once_though_changed_code_measured_it_again():
    def row(seed: int, key: str, created: str) -> dict[str, object]:
        own = {"model": "cnn", "settings": None, "seed": seed, "key": key, "created": created}
        return ROW | own

    old, new = "2026-11-24T05:34:38+00:00", "2026-11-24T09:04:53+00:00"
    rows = [row(1, "a", old), row(1, "b", new), row(2, "c", new), row(2, "d", old)]
    ((kept,),) = (groups.values() for groups in group_rows(rows).values())
    assert [one["key"] for one in kept] == ["b", "c"]


def test_a_network_that_learned_nothing_is_named(home, caplog):
    caplog.set_level("WARNING", "genodiff")
    over = {"max_steps": 1, "batch_size": 16, "lr": 1e-9}
    rows = sweep(plan_of(home, ["scratch", "majority"], over=over, seeds=1), home / "nothing")
    (line,) = [r.getMessage() for r in caplog.records if "nothing was learned" in r.getMessage()]
    assert line.startswith("motif scratch: accuracy 0.")
    assert "' for every sequence has 0." in line
    caplog.clear()
    counts = {"motif": {"with": 10, "without": 10}}
    learned = {"accuracy": 0.55, "mcc": 0.1}, {"accuracy": 0.5, "mcc": 0.2}
    for metrics in learned:
        warn_of_guesses([row | {"metrics": metrics} for row in rows], counts)
    assert not caplog.records


def test_what_was_done_without_weights_says_so_and_is_kept_when_asked(home, caplog):
    out, words = home / "kept", [f"ours={home / 'run'}", "kmer-lr", "majority"]
    plan = plan_of(home, words, seeds=1)
    sweep(plan._replace(keep="none"), out)
    before = (out / FILE).read_bytes()
    assert not list(out.glob("units/*/model.safetensors"))
    with caplog.at_level("INFO", logger="genodiff"):
        sweep(plan, out)
    assert "2 of 3 units were done without" in caplog.text
    assert "--keep-weights" in caplog.text
    assert not list(out.glob("units/*/predictor.json"))
    caplog.clear()
    sweep(plan._replace(keep="all"), out)
    assert (out / FILE).read_bytes() == before
    kept = [json.loads(p.read_text()) for p in out.glob("units/*/predictor.json")]
    assert sorted(card["form"] for card in kept) == ["kmer-lr", "network"]
    rows = {row["model"]: row for row in read_results(out)}
    assert all(c["test"]["accuracy"] == rows[c["unit"]["model"]]["value"] for c in kept)
    assert not caplog.text.count("not the recorded one")


def test_a_plan_says_the_space_of_weights(home):
    plan = plan_of(home, [f"ours={home / 'run'}", "cnn", "kmer-lr", "majority"])
    kept, none = estimate(plan, "cpu", 1), estimate(plan._replace(keep="none"), "cpu", 1)
    sweep(plan_of(home, ["cnn", "kmer-lr"], seeds=1), home / "space")
    there = [p.stat().st_size for p in (home / "space").glob("units/*/model.safetensors")]
    for row in kept["rows"]:
        if row["model"] in ("cnn", "kmer-lr"):
            assert any(0.8 < row["disk_bytes"] / size < 1.2 for size in there)
    assert kept["disk_bytes"] - none["disk_bytes"] > 2 * 4 * kept["rows"][0]["parameters"]
    assert any("--no-keep" in line for line in format_estimate(kept))


@pytest.fixture
def choose(home):
    """Choose settings for the table's task, with changes of the task and of the sweep."""
    plan = plan_of(home, [f"ours={home / 'run'}"], over={})
    task = request_of(home).load("motif").task

    def chosen(
        *n: int, over: dict[str, object] | None = None, suite: str = "table", **of_task: object
    ) -> tuple[str, FitSettings]:
        request = plan.request.model_copy(update={"suite": suite})
        asked = plan._replace(over=over or {}, request=request)
        return choose_settings(asked, task.model_copy(update=of_task), plan.models[0], "full", *n)

    return chosen


@pytest.mark.parametrize(
    ("of_task", "over", "name", "wanted"),
    [
        ({}, {}, "paper", {"rc": "conjoin", "parts": 1}),
        ({}, {"lr": 3e-3}, "own", {"lr": 3e-3}),
        ({"oriented": True}, {}, "paper", {"rc": "none"}),
        ({"oriented": True}, {"rc": "conjoin"}, "paper", {"rc": "conjoin"}),
        ({"parts": 9}, {}, "paper", {"head": "parts", "parts": 9}),
        ({"parts": 9}, {"parts": 4}, "own", {"head": "parts", "parts": 4}),
        ({"parts": 9}, {"parts": 1}, "own", {"head": "mean", "parts": 1}),
        ({"parts": 9}, {"head": "parts"}, "own", {"head": "parts", "parts": 7}),
        ({"parts": 9}, {"head": "conv"}, "own", {"head": "conv", "parts": 1}),
    ],
)
def test_settings_are_the_papers_for_the_task_unless_the_user_gives_others(
    choose, of_task, over, name, wanted
):
    found, settings = choose(over=over, **of_task)
    assert (found, {key: getattr(settings, key) for key in wanted}) == (name, wanted)


def test_a_batch_of_a_small_table_leaves_an_epoch_its_steps(choose):
    for n, size in ((0, 256), (30, 8), (240, 15), (800, 50), (4_096, 256), (99_999, 256)):
        assert choose(n)[1].batch_size == size
    assert choose(300, over={"batch_size": 100})[1].batch_size == 100
    assert choose(300, suite="genomic-benchmarks")[1].batch_size == 256


def test_heads_that_contradict_their_parts_are_refused(choose):
    for over, said in (
        ({"head": "conv", "parts": 3}, "3 parts are of the head parts"),
        ({"head": "cnv"}, "did you mean 'conv'"),
        ({"head": "parts", "parts": 1}, "is the head mean"),
    ):
        with pytest.raises(UsageError, match=said):
            choose(over=over)


def test_tasks_of_gue_have_their_parts_and_orientation():
    tasks = {task.name: task for task in load_suite("gue").tasks}
    assert {x.name: x.parts for x in tasks.values() if x.parts > 1} == {"splice/reconstructed": 9}
    names = ("prom/prom_300_tata", "splice/reconstructed", "mouse/0")
    assert [tasks[name].oriented for name in names] == [True, True, False]
