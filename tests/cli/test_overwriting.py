"""No verb overwrites what genodiff did not write, and none writes over its input."""

import os
import shutil
from pathlib import Path

import pytest

from genodiff.jobs.request import list_fields
from genodiff.jobs.verbs import list_verbs
from genodiff.tasks.suite_files import describe_suites
from tests.commands import check_refused, command, exit_code, succeed
from tests.conservation.constraint_world import write_world
from tests.jobs.test_jobs import CASES
from tests.jobs.verb_calls import list_usual_words
from tests.labelled_files import random_dna

FOREIGN = b"\x1f\x8bnot written by genodiff\n"
SPLITS = ("train", "valid", "test")
TABLE = "--train train.csv --test test.csv --model majority --seeds 1 --out mine"
PLACE = "--region chr1:1-300 --threads 1"
SUITE, *OTHER_SUITES = (f"finetune {name}" for name in describe_suites())
WRITERS: dict[str, tuple[str, ...]] = {
    "eval": ("run --max-windows 2 --no-baselines --no-mixture", "run/eval.json"),
    "report": ("run --out o.html", "o.html"),
    "train": (
        "toy --out mine --max-steps 1 --seq-len 64 --preset caduceus-ps-tiny --batch-size 4 "
        "--validate-windows 4 --threads 1 -q", "mine/metrics.csv",
    ),
    "demo": ("--out mine", "mine/samples.fa"),
    "compare": ("run other --max-windows 2 --out mine", "mine/table.md"),
    "checkpoint export": ("run --out mine", "mine/config.json"),
    "models export": ("run --out mine", "mine/config.json"),
    "checkpoint fit-memory": ("run --windows 2 --draws 1 --threads 1", "run/memory.json"),
    "checkpoint import": (
        "published --out mine", "mine/config.yaml", "checkpoint export run --out published",
    ),
    "merge": (
        "s.tsv -o whole.tsv", "whole.tsv",
        "score run in.csv --fasta a.fa -o s.tsv --threads 1 --shard 1/1",
    ),
    "align": (f"ref.fa --relatives near.fa -o mine.paf {PLACE}", "mine.paf"),
    "constraint": (f"ref.fa --relatives near.fa -o mine {PLACE}", "mine/hub.txt"),
    "scorecard": ("in.fa --real a.fa --html o.html --threads 1", "o.html"),
    "data genomes": ("list.tsv --out mine --jobs 1", "mine/manifest.json"),
    "data get": ("example", "example/genome.fa"),
    "data relatives": ("a.fa --out mine --threads 1", "mine/relatives.json"),
    "finetune bases": (
        "run g.fa --classes a.bed --core 40 --epochs 1 --context 10 --threads 1 -o mine",
        "mine/labeller.json",
    ),
    "finetune table": (TABLE, "mine/results.jsonl"),
    "finetune report": ("mine", "mine/report.html", f"finetune table {TABLE}"),
    SUITE: ("--out mine", "mine/RESULTS.md"),
}  # fmt: skip
"""Words of a verb, the file that they would overwrite, and a command that goes before them."""
CACHE = {"data build"}
"""They write into genodiff's own cache, and nowhere else."""


def list_writers() -> list[str]:
    """The verbs that write a file, but for jobs, of which tests/jobs asks the same."""
    left_out = {*WRITERS, *CACHE, *OTHER_SUITES, "finetune *", *(case.verb for case in CASES)}
    some = {
        name: {one.name for one in list_fields(verb.open())} for name, verb in list_verbs().items()
    }
    return [*WRITERS, *(n for n in some if some[n] & {"out", "force"} and n not in left_out)]


def write_scene(run: Path, here: Path) -> None:
    """Two runs, and what the words of `WRITERS` name."""
    for name in ("run", "other"):
        shutil.copytree(run, here / name)
    write_world(here)
    rows = "".join(f"{name}.fa\t{split}\n" for name, split in zip("abc", SPLITS, strict=True))
    (here / "list.tsv").write_text(f"path\tsplit\n{rows}")
    for name in "abc":
        (here / f"{name}.fa").write_text(f">chr\n{'ACGTTGCAAC' * 200}\n")
    for name, seed in (("train", 1), ("test", 2)):
        rows = "".join(f"{dna},{'TA' in dna[:9]:d}\n" for dna in random_dna(60, 40, seed))
        (here / f"{name}.csv").write_text(f"sequence,label\n{rows}")
    (here / "g.fa").write_text(f">c1\n{'ACGTTGCAAC' * 20}\n>c2\n{'ACGGTGCTAC' * 12}\n")
    places = [f"{c}\t{at}\t{at + 9}\ta\n" for c in ("c1", "c2") for at in range(0, 100, 20)]
    (here / "a.bed").write_text("".join(places))
    (here / "in.csv").write_text("chrom,pos,ref,alt\nchr,5,T,A\n")
    (here / "in.fa").write_text("".join(f">s{i}\nACGTACGTACGGTTACAGTC\n" for i in range(3)))


LONG = {
    "demo": "genodiff.studies.demo.run_demo",
    "align": "genodiff.conservation.align_job.AlignJob.open",
    "constraint": "genodiff.conservation.job.ConstraintJob.open",
    SUITE: "genodiff.studies.sweeping.choose_device",
}
"""Verbs that take minutes; with `--force` it is seen that the work begins."""


@pytest.mark.few(10)
@pytest.mark.parametrize("verb", list_writers())
def test_a_foreign_file_is_overwritten_by_no_verb_without_force(
    verb, run, here, monkeypatch, capsys
):
    write_scene(run, here)
    if verb in WRITERS:
        given, name, *before_it = WRITERS[verb]
        words: list[object] = [*verb.split(), *given.split()]
        victim = here / name
        for line in before_it:
            assert exit_code(*line.split()) == 0
    else:
        words = [*verb.split(), *list_usual_words(list_verbs()[verb].open(), run, here)]
        victim = here / "mine"
    victim.parent.mkdir(exist_ok=True)
    victim.write_bytes(FOREIGN)
    err = check_refused(capsys, words, 2, "--force")
    assert victim.name in err or victim.parent.name in err
    if verb in LONG:
        monkeypatch.setattr(LONG[verb], lambda *_, **__: pytest.fail("begun"))
        with pytest.raises(pytest.fail.Exception, match="begun"):
            exit_code(*words, "--force")
        return
    succeed(capsys, *words, "--force")
    assert not victim.exists() or victim.read_bytes() != FOREIGN


def test_a_foreign_folder_by_the_name_of_a_genome_is_never_lost(run, here, capsys):
    write_scene(run, here)
    words = "data genomes list.tsv --out mine --jobs 1".split()
    notes = here / "mine" / "b" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    assert "--force" in check_refused(capsys, words, 2, "mine/b")
    succeed(capsys, *words, "--force")
    assert (here / "mine" / "b.1" / "notes.txt").read_text() == "mine"
    succeed(capsys, *words)


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
        succeed(capsys, "checkpoint", "export", run, "--out", out, "--force")
        assert (tmp_path / f"mine.{number + 1}" / "notes.txt").read_text() == str(number)
        assert (out / "config.json").exists()
