"""No verb overwrites what genodiff did not write, and none writes over its input."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from genodiff.jobs.request import list_fields
from genodiff.jobs.verbs import list_verbs
from genodiff.tasks.suite_files import describe_suites
from tests.commands import command, exit_code
from tests.conservation.constraint_world import write_world
from tests.jobs.usual_words import list_usual_words
from tests.labelled_files import random_dna

FOREIGN = b"\x1f\x8bnot written by genodiff\n"
Scene = tuple[list[object], Path]
"""Words of a command, and the file that it would overwrite."""


def _sample(run: Path, here: Path) -> Scene:
    return ["sample", "--checkpoint", run, "--fasta", "o.fa", "--n", 1, "--steps", 2], here / "o.fa"


def _embed(run: Path, here: Path) -> Scene:
    (here / "in.fa").write_text(">a\nACGTACGT\n")
    return ["embed", run, "in.fa", "-o", "o.npz"], here / "o.npz"


def _eval(run: Path, here: Path) -> Scene:
    words = ["eval", run, "--max-windows", 2, "--no-baselines", "--no-mixture"]
    return words, run / "eval.json"


def _report(run: Path, here: Path) -> Scene:
    return ["report", run, "--out", "o.html"], here / "o.html"


def _train(run: Path, here: Path) -> Scene:
    words = "train toy --out mine --max-steps 1 --seq-len 64 --preset caduceus-ps-tiny".split()
    words += "--batch-size 4 --validate-windows 4 --threads 1 -q".split()
    return [*words], here / "mine" / "metrics.csv"


def _demo(run: Path, here: Path) -> Scene:
    return ["demo", "--out", "mine"], here / "mine" / "samples.fa"


def _compare(run: Path, here: Path) -> Scene:
    shutil.copytree(run, here / "other")
    return ["compare", run, "other", "--max-windows", 2, "--out",
            "mine"], here / "mine" / "table.md"  # fmt: skip


def _export(run: Path, here: Path) -> Scene:
    return ["checkpoint", "export", run, "--out", "mine"], here / "mine" / "config.json"


def _fit_memory(run: Path, here: Path) -> Scene:
    words = ["checkpoint", "fit-memory", run, "--windows", 2, "--draws", 1, "--threads", 1]
    return words, run / "memory.json"


def _import(run: Path, here: Path) -> Scene:
    assert exit_code("checkpoint", "export", run, "--out", here / "published") == 0
    return ["checkpoint", "import", "published", "--out", "mine"], here / "mine" / "config.yaml"


def _genomes(run: Path, here: Path) -> Scene:
    rows = ["path\tsplit"]
    for name, split in (("a", "train"), ("b", "valid"), ("c", "test")):
        (here / f"{name}.fa").write_text(f">chr\n{'ACGTTGCAAC' * 200}\n")
        rows.append(f"{name}.fa\t{split}")
    (here / "list.tsv").write_text("\n".join(rows) + "\n")
    words = ["data", "genomes", "list.tsv", "--out", "mine", "--jobs", 1]
    return words, here / "mine" / "manifest.json"


def _relatives(run: Path, here: Path) -> Scene:
    (here / "near.fa").write_text(f">chr\n{'ACGTTGCAAC' * 200}\n")
    words = ["data", "relatives", "near.fa", "--out", "mine", "--threads", 1]
    return words, here / "mine" / "relatives.json"


def _table(run: Path, here: Path) -> Scene:
    for name, seed in (("train", 1), ("test", 2)):
        rows = [f"{dna},{'TA' in dna[:9]:d}\n" for dna in random_dna(60, 40, seed)]
        (here / f"{name}.csv").write_text("sequence,label\n" + "".join(rows))
    words = ["finetune", "table", "--train", "train.csv", "--test", "test.csv"]
    words += ["--model", "majority"]
    return [*words, "--seeds", 1, "--out", "mine"], here / "mine" / "results.jsonl"


def _bases(run: Path, here: Path) -> Scene:
    (here / "g.fa").write_text(f">c1\n{'ACGTTGCAAC' * 20}\n>c2\n{'ACGGTGCTAC' * 12}\n")
    rows = [f"{c}\t{at}\t{at + 9}\ta\n" for c in ("c1", "c2") for at in range(0, 100, 20)]
    (here / "a.bed").write_text("".join(rows))
    words = ["finetune", "bases", run, "g.fa", "--classes", "a.bed", "--core", 40, "--epochs", 1]
    return [*words, "--context", 10, "--threads", 1, "-o", "mine"], here / "mine" / "labeller.json"


def _sweep_report(run: Path, here: Path) -> Scene:
    words, _ = _table(run, here)
    assert exit_code(*words) == 0
    (here / "mine" / "report.html").unlink()
    return ["finetune", "report", "mine"], here / "mine" / "report.html"


def _predict(run: Path, here: Path) -> Scene:
    words, _ = _table(run, here)
    words[words.index("majority")] = f"mine={run}"
    words += ["--method", "frozen", "--head", "mean", "--max-steps", 2, "--threads", 1]
    assert exit_code(*words) == 0
    words = ["predict", "mine", "test.csv", "--out", "o.csv", "--threads", 1]
    return words, here / "o.csv"


def _redesign(run: Path, here: Path) -> Scene:
    (here / "ref.fa").write_text(">chr1\n" + "ACGTTGCAAC" * 20 + "\n")
    words = ["redesign", "--model", run, "--fasta", "ref.fa", "--region", "chr1:9-20"]
    return [*words, "-o", "o.fa", "--steps", 2, "--threads", 1], here / "o.fa.vcf"


def _score(run: Path, here: Path) -> Scene:
    (here / "ref.fa").write_text(">chr1\n" + "ACGTTGCAAC" * 20 + "\n")
    (here / "in.csv").write_text("chrom,pos,ref,alt\nchr1,5,T,A\n")
    words = ["score", "in.csv", "--model", run, "--fasta", "ref.fa", "-o", "o.tsv"]
    return [*words, "--threads", 1], here / "o.tsv"


def _merge(run: Path, here: Path) -> Scene:
    words, _ = _score(run, here)
    assert exit_code(*words, "--shard", "1/1") == 0
    return ["merge", "o.tsv", "-o", "whole.tsv"], here / "whole.tsv"


def _ism(run: Path, here: Path) -> Scene:
    (here / "in.fa").write_text(">a\nACGTACGT\n")
    return ["ism", "--model", run, "--fasta", "in.fa", "-o", "o.npz"], here / "o.npz"


def _dependencies(run: Path, here: Path) -> Scene:
    (here / "in.fa").write_text(">a\nACGTAC\n")
    return ["dependencies", "--model", run, "--fasta", "in.fa", "-o", "o.html"], here / "o.html"


def _scorecard(run: Path, here: Path) -> Scene:
    (here / "in.fa").write_text("".join(f">s{i}\nACGTACGTACGGTTACAGTC\n" for i in range(3)))
    (here / "real.fa").write_text(f">r\n{'ACGTTGCAAC' * 12}\n")
    words = ["scorecard", "in.fa", "--real", "real.fa", "--html", "o.html", "--threads", 1]
    return words, here / "o.html"


def _tracks(run: Path, here: Path) -> Scene:
    (here / "in.fa").write_text(">a\nACGTAC\n")
    words = ["tracks", "--model", run, "--fasta", "in.fa", "-o", "mine", "--threads", 1]
    return words, here / "mine" / "hub.txt"


def _constraint(run: Path, here: Path) -> Scene:
    world = write_world(here)
    words = ["constraint", world.genome, "--relatives", world.relatives[0], "-o", "mine"]
    return [*words, "--region", "chr1:1-300", "--threads", 1], here / "mine" / "hub.txt"


def _align(run: Path, here: Path) -> Scene:
    world = write_world(here)
    words = ["align", world.genome, "--relatives", world.relatives[0], "-o", "mine.paf"]
    return [*words, "--region", "chr1:1-300", "--threads", 1], here / "mine.paf"


def _get(run: Path, here: Path) -> Scene:
    return ["data", "get", "example"], here / "example" / "genome.fa"


def _suite(name: str) -> Callable[[Path, Path], Scene]:
    def scene(run: Path, here: Path) -> Scene:
        return ["finetune", name, "--out", "mine"], here / "mine" / "RESULTS.md"

    return scene


WRITERS: dict[str, Callable[[Path, Path], Scene]] = {
    "sample": _sample,
    "embed": _embed,
    "eval": _eval,
    "report": _report,
    "train": _train,
    "demo": _demo,
    "compare": _compare,
    "checkpoint export": _export,
    "checkpoint fit-memory": _fit_memory,
    "checkpoint import": _import,
    "predict": _predict,
    "redesign": _redesign,
    "score": _score,
    "merge": _merge,
    "ism": _ism,
    "dependencies": _dependencies,
    "tracks": _tracks,
    "align": _align,
    "constraint": _constraint,
    "scorecard": _scorecard,
    "data genomes": _genomes,
    "data get": _get,
    "data relatives": _relatives,
    "finetune bases": _bases,
    "finetune table": _table,
    "finetune report": _sweep_report,
    **{f"finetune {name}": _suite(name) for name in describe_suites()},
}
CACHE = {"data build"}
"""They write into genodiff's own cache, and nowhere else."""


def list_writers() -> dict[str, Callable[[Path, Path], Scene]]:
    """A scene of each verb that writes a file: the usual words for one that has none of its own."""
    found = dict(WRITERS)
    for name, verb in list_verbs().items():
        names = {one.name for one in list_fields(verb.open())}
        if names & {"out", "force"} and name not in {*WRITERS, *CACHE, "finetune *"}:
            found[name] = make_usual_scene(name) if name != "models export" else _export
    return found


def make_usual_scene(name: str) -> Callable[[Path, Path], Scene]:
    """The scene of a verb that needs no more than its usual words."""

    def scene(run: Path, here: Path) -> Scene:
        words = list_usual_words(list_verbs()[name].open(), run, here)
        return [*name.split(), *words], here / "mine"

    return scene


LONG = {
    "demo": "genodiff.studies.demo.run_demo",
    "align": "genodiff.conservation.align_job.AlignJob.open",
    "constraint": "genodiff.conservation.job.ConstraintJob.open",
    **{f"finetune {name}": "genodiff.studies.sweeping.choose_device" for name in describe_suites()},
}
"""Verbs that take minutes; with `--force` it is seen that the work begins."""


def test_what_has_no_verb_of_its_own_name_is_no_writer():
    suites = {f"finetune {name}" for name in describe_suites()}
    assert set(WRITERS) <= {*list_verbs(), *suites}


@pytest.mark.parametrize("verb", list_writers())
def test_a_foreign_file_is_overwritten_by_no_verb_without_force(
    verb, run, tmp_path, monkeypatch, capsys
):
    own = tmp_path / "run"
    shutil.copytree(run, own)
    monkeypatch.chdir(tmp_path)
    words, victim = list_writers()[verb](own, tmp_path)
    victim.parent.mkdir(exist_ok=True)
    victim.write_bytes(FOREIGN)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = command(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "--force" in err
    assert victim.name in err or victim.parent.name in err
    assert victim.read_bytes() == FOREIGN
    assert sorted(tmp_path.rglob("*")) == before

    if verb in LONG:
        monkeypatch.setattr(LONG[verb], lambda *_, **__: pytest.fail("begun"))
        with pytest.raises(pytest.fail.Exception, match="begun"):
            exit_code(*words, "--force")
        return
    code, _, err = command(capsys, *words, "--force")
    assert code == 0, err
    assert not victim.exists() or victim.read_bytes() != FOREIGN


def test_a_foreign_folder_by_the_name_of_a_genome_is_never_lost(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, _ = _genomes(run, tmp_path)
    notes = tmp_path / "mine" / "b" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    code, _, err = command(capsys, *words)
    assert (code, err.count("\n")) == (2, 1)
    assert "mine/b" in err
    assert "--force" in err
    assert command(capsys, *words, "--force")[0] == 0
    assert (tmp_path / "mine" / "b.1" / "notes.txt").read_text() == "mine"
    assert command(capsys, *words)[0] == 0


def test_what_genodiff_wrote_itself_may_be_written_again_until_somebody_changes_it(
    run, sample, here
):
    words = ("--checkpoint", run, "--fasta", "o.fa", "--n", 1, "--steps", 2)
    for seed in (1, 2):
        assert sample(*words, "--seed", seed)[0] == 0
    mine = (here / "o.fa").read_bytes()
    (here / "o.fa").write_bytes(mine.replace(b"A", b"C"))
    assert sample(*words)[0] == 2
    (here / "o.fa").write_bytes(mine)
    assert sample(*words)[0] == 0
    (here / "o.fa.json").write_text('{"notes": "mine"}')
    code, _, err = sample(*words)
    assert code == 2
    assert (here / "o.fa.json").read_text() == '{"notes": "mine"}'
    (here / "o.fa").unlink()
    code, _, err = sample(*words)
    assert (code, "o.fa.json" in err) == (2, True)
    assert not (here / "o.fa").exists()


def test_an_input_is_never_the_output_under_any_name_even_with_force(run, sample, here):
    (here / "in.fa").write_text(">a\nACGTNNNNACGT\n")
    before = (here / "in.fa").read_bytes()
    (here / "soft.fa").symlink_to("in.fa")
    os.link(here / "in.fa", here / "hard.fa")
    words = ("--checkpoint", run, "--template", "in.fa", "--force")
    for name in ("in.fa", "./in.fa", "soft.fa", "hard.fa"):
        code, _, err = sample(*words, "--fasta", name)
        assert (code, err.count("\n")) == (2, 1)
        assert "is read" in err
    assert sample(*words, "--fasta", "o.fa", "--sidecar", "hard.fa")[0] == 2
    assert (here / "in.fa").read_bytes() == before


def test_a_link_is_followed_to_what_would_be_overwritten(run, sample, here):
    (here / "genome.fa").write_bytes(FOREIGN)
    (here / "o.fa").symlink_to("genome.fa")
    words = ("--checkpoint", run, "--fasta", "o.fa", "--n", 1, "--steps", 2)
    assert sample(*words)[0] == 2
    assert (here / "genome.fa").read_bytes() == FOREIGN
    assert sample(*words, "--force")[0] == 0
    assert (here / "o.fa").is_symlink()
    assert (here / "genome.fa").read_bytes().startswith(b">genodiff_000001 ")


def test_a_pipe_is_written_to_without_a_question_and_has_no_sidecar(run, sample, here):
    code, out, _ = sample("--checkpoint", run, "--fasta", "/dev/stdout", "--n", 1, "--steps", 2)
    assert code == 0
    assert out.startswith(">genodiff_000001 ")
    assert not Path("/dev/stdout.json").exists()


def test_a_folder_that_is_made_as_a_whole_is_renamed_and_never_lost(run, tmp_path, capsys):
    out = tmp_path / "mine"
    for number in range(3):
        out.mkdir(exist_ok=True)
        (out / "notes.txt").write_text(str(number))
        assert command(capsys, "checkpoint", "export", run, "--out", out)[0] == 2
        assert command(capsys, "checkpoint", "export", run, "--out", out, "--force")[0] == 0
        assert (tmp_path / f"mine.{number + 1}" / "notes.txt").read_text() == str(number)
        assert (out / "config.json").exists()
