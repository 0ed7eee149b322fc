"""What pretraining saw of the test part stands under every table, and can be left out of it."""

from pathlib import Path

import pytest

from genodiff import finetune
from genodiff.errors import DataError, UsageError
from genodiff.finetuning.sweep import describe_seen_tests
from genodiff.finetuning.unit import read_results
from genodiff.reports.benchmark import write_benchmark
from genodiff.reports.sweep_results import format_summary, group_rows, read_sweep
from genodiff.studies.sweep_request import SweepRequest
from tests.commands import command, exit_code, succeed
from tests.finetuning.motif_task import write_tables
from tests.tiny_run import genome_text, write_run


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run, and labelled sequences: 6 of 20 test sequences are copies of what it trained on, and
    2 have a quarter of it.
    """
    folder = tmp_path_factory.mktemp("seen")
    write_run(folder)
    contig = genome_text().split("\n")[1].upper()
    write_tables(folder, 40, 20, (60, 61), ("without", "with"))
    rows = [row.split(",") for row in (folder / "test.csv").read_text().splitlines()]
    for i, row in enumerate(rows[1:9]):
        copy = contig[700 + 60 * i : 760 + 60 * i]
        row[1] = copy if i < 6 else row[1][:27] + contig[1600:1633]
    (folder / "test.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    return folder


def fit(home: Path, out: str, **more: object) -> list[dict[str, object]]:
    options: dict[str, object] = {
        "test": home / "test.csv", "model": [f"ours={home / 'run'}", "scratch", "kmer-lr"],
        "seeds": 1, "epochs": 1, "batch_size": 16, "out": home / out,
    }  # fmt: skip
    found: list[dict[str, object]] = finetune(home / "train.csv", **(options | more))["rows"]  # type: ignore[arg-type]
    return found


SAW = (
    "of 20 test sequences, 40.0% share at least one 24-mer with the pretraining data of ours, "
    "30.0% at least half of their 24-mers, 30.0% all"
)


def test_terminal_results_pages_and_cards_say_what_pretraining_saw(home):
    rows = fit(home, "told")
    seen = {row["model"]: row.get("pretraining") for row in rows}
    ours = {"some": 8, "half": 6, "all": 6, "of": 20}
    assert seen == {"ours": ours, "scratch": None, "kmer-lr": None}
    assert f"  {SAW}" in format_summary(rows)
    write_benchmark(home / "told")
    for page in ("RESULTS.md", "report.html"):
        assert SAW in (home / "told" / page).read_text()
    for row in rows:
        card = (home / "told" / "units" / str(row["key"]) / "README.md").read_text()
        assert (f"{SAW[0].upper()}{SAW[1:]}." in card) == (row["model"] == "ours")
        assert ("pretraining" in card.lower()) == (row["model"] == "ours")


def test_rows_of_older_sessions_are_told_too_and_until_then_the_table_says_so(home):
    rows = fit(home, "told")
    file = home / "told" / "results.jsonl"
    kept = file.read_text()
    file.write_text(kept.replace(', "pretraining": ', ', "other": '))
    old = describe_seen_tests(read_results(home / "told"))
    assert old == ["it is not known what pretraining of ours saw of the test part: not looked for"]
    again = fit(home, "told")
    assert [row.get("pretraining") for row in again] == [row.get("pretraining") for row in rows]


@pytest.mark.few(1)
@pytest.mark.parametrize(("level", "dropped"), [("some", 8), ("half", 6), ("all", 6)])
def test_what_pretraining_saw_is_left_out_for_all_models_alike(home, level, dropped):
    rows = fit(home, "without", exclude_overlap=level)
    assert {row["n_test"] for row in rows} == {20 - dropped}
    assert {row["split"] for row in rows} == {f"own, {level} seen left out"}
    left = f"  {dropped} of 20 test sequences were left out for all models: {level} of their"
    assert any(line.startswith(left) for line in format_summary(rows))
    ours = next(row for row in rows if row["model"] == "ours")
    assert ours["pretraining"][level] == 0  # type: ignore[index]
    card = (home / "without" / "units" / str(ours["key"]) / "README.md").read_text()
    assert f"\n\n{dropped} of 20 test sequences were left out for all models: " in card


@pytest.mark.slow
def test_results_with_and_without_never_stand_in_one_table(home):
    whole, less = fit(home, "both"), fit(home, "both", exclude_overlap="half")
    assert not {row["key"] for row in whole} & {row["key"] for row in less}
    assert len(group_rows(read_results(home / "both"))) == 2
    panels = read_sweep(home / "both")
    assert sorted(len(panel.lines) for panel in panels) == [3, 3]
    page = (home / "both" / "RESULTS.md").read_text()
    assert "## table, split own, half seen left out" in page
    assert "- 6 of 20 test sequences were left out for all models" in page


def test_what_cannot_be_left_out_is_refused(home):
    with pytest.raises(UsageError, match="needs a pretrained model"):
        fit(home, "refused", model=["scratch", "kmer-lr"], exclude_overlap="half")
    assert not (home / "refused").exists()


def test_the_flag_and_its_word_are_asked_for(home, capsys, monkeypatch):
    asked = []

    def see(one: SweepRequest, _: object) -> dict[str, list[object]]:
        asked.append(one.exclude_overlap)
        return {"rows": [], "comparisons": [], "ensembles": []}

    monkeypatch.setattr("genodiff.studies.sweeping.finetune", see)
    given = f"finetune table --train {home}/train.csv --test {home}/test.csv"
    for words in ("", "--exclude-overlap", "--exclude-overlap all"):
        assert exit_code(*given.split(), *words.split()) == 0
    assert asked == [None, "half", "all"]
    code, _, err = command(capsys, *given.split(), "--exclude-overlap", "all", "half")
    assert (code, "takes one word" in err) == (2, True), err


def test_where_nothing_is_known_nothing_can_be_left_out(home, tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path))
    (home / "genome.fa").rename(home / "moved.fa")
    try:
        rows = fit(home, "unknown", model=[f"ours={home / 'run'}"])
        assert "not on this machine" in rows[0]["pretraining"]["not_known"]  # type: ignore[index]
        with pytest.raises(DataError, match="ours saw of the test part is not known"):
            fit(home, "unknown", exclude_overlap="half")
    finally:
        (home / "moved.fa").rename(home / "genome.fa")


def test_an_audit_measures_it_without_training(home, capsys):
    words = ("finetune", "audit", home / "train.csv", "--test", home / "test.csv")
    shown = succeed(capsys, *words, "--model", home / "run")
    assert SAW.replace("ours", "run") in shown
    assert "pretraining" not in command(capsys, *words)[1]
