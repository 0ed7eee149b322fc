"""What a wrong word is answered with, what help shows, and the last line: what comes next."""

import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from genodiff.conservation.request import AlignRequest, ConstraintRequest
from genodiff.design.request import RedesignRequest
from genodiff.embedding.request import EmbedRequest
from genodiff.generate.request import SampleRequest
from genodiff.jobs.verbs import list_verbs
from genodiff.maps.request import TracksRequest
from tests.commands import check_refused, command, exit_code

WRONG = [
    ("trian", "did you mean 'train'?"),
    ("bogus", f"known: {', '.join(sorted({name.split()[0] for name in list_verbs()}))};"),
    ("embed runs/x", "--out is missing; see `genodiff embed --help`"),
    ("embed runs/x --fasta", "--fasta needs a value; see `genodiff embed --help`"),
    ("data lst", "did you mean 'list'? see `genodiff data --help`"),
    ("data bogus", "known: build, check, genomes, get, list, relatives;"),
    ("eval runs/x --memory Spar.fa.gz", "Genomes of others are read with --relatives Spar.fa.gz;"),
    ("checkpoint bogus", "known: check, export, fit-memory, import;"),
    ("config bogus", "known: check, presets, schema, show;"),
    ("finetune my.csv", "'my.csv' is no suite; sequences of your own: `genodiff finetune table"),
    ("train toy --seeed 1", "Did you mean --seed?"),
    ("train toy --relatives a.fa", "Relatives are read by a trained run: give them to eval,"),
    ("scorecard a.fa --relatives a.fa", "Relatives are read by a trained run"),
    ("train toy --bacth-size 1", "Did you mean --batch-size?"),
    ("data check --jsom a.fa", "Did you mean --json? see `genodiff data check --help`"),
    ("constraint a.fa -o c --feature g.gff3", "Did you mean --features?"),
    ("score none v.vcf --fasta a.fa --gene g.gff3", "Did you mean --genes?"),
    ("redesign none -o d.fa --keep-constrained .9", "Did you mean --keep?"),
    ("data get toy --bogus", "Unknown option: --bogus. Known: --device, "),
    ("checkpoint check A --model B", "unexpected argument A;"),
    ("finetune genomic-benchmarks yeast", "unexpected argument yeast. A model: --model yeast;"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
@pytest.mark.usefixtures("here")
def test_a_wrong_word_is_one_line_with_what_is_near(words, said, capsys):
    assert "Available" not in check_refused(capsys, words.split(), 2, said)


def test_finetune_names_all_that_it_knows(capsys):
    err = command(capsys, "finetune", "bogus")[2]
    for name in ("audit", "check", "gue", "list", "report", "table"):
        assert f" {name}" in err


@pytest.mark.parametrize("flag", ["--wandb", "--logs", "--zzz"])
def test_no_far_name_is_suggested(flag, capsys):
    err = command(capsys, "train", "toy", flag)[2]
    assert "Did you mean" not in err
    assert err.endswith(f"Unknown option: {flag}; see `genodiff train --help`\n")


@pytest.fixture(scope="module")
def train_help():
    """What `genodiff train --help` prints on a wide terminal."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setenv("COLUMNS", "200")
        assert exit_code("train", "--help") == 0
    return out.getvalue()


def test_help_shows_defaults_as_they_are_given(train_help):
    assert "Pydantic" not in train_help
    assert "[0.9 0.999]" in train_help
    assert "[true]" in train_help
    assert "[True]" not in train_help


def test_the_ten_flags_of_a_first_training_stand_first_in_its_help(train_help):
    _, before, rest = train_help.partition("Most used")
    most, others = rest.split("╰", 1)
    first = "fasta bed preset out seq-len lr batch-size max-steps plan device".split()
    assert before
    assert most.count("│ --") == len(first)
    for name in first:
        assert f"--{name} " in most
        assert f"--{name} " not in others.replace("With --plan:", "")


def test_help_names_the_type_of_a_value(train_help):
    for line in (
        "--seq-len INT ", "--dropout FLOAT ", "--rc-augment BOOL|auto ", "--workers INT|auto ",
        "--packing CHOICE ", "--tokenizer STR ", "--no-rotary ",
    ):  # fmt: skip
        assert line in train_help, line


def test_ctrl_c_before_a_verb_watches_for_it_ends_with_a_line(monkeypatch, capsys):
    def stopped(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("genodiff.api.train.TrainRequest.answer", stopped)
    code, out, err = command(capsys, "train", "toy")
    assert (code, out) == (130, "")
    assert err == "genodiff: interrupted: stopped by Ctrl-C; run the same command again\n"


RELATED = {"relatives": ["near.fa"]}
CASES = {
    "page": (ConstraintRequest("g.fa", out="c", **RELATED), {"bases": 9}, "open c/constraint.html"),
    "shard": (ConstraintRequest("g.fa", out="1.npy", shard="1/2", **RELATED), {"bases": 9}, "all"),
    "paf": (
        AlignRequest("g.fa", out="n.paf", **RELATED), {"bases": 9, "aligned": 8},
        "genodiff constraint g.fa --relatives near.fa:n.paf -o constraint",
    ),
    "tracks": (
        TracksRequest("none", "g.fa", out="t"),
        {"intervals": [1], "bases": 9, "files": ["tracks.html"]}, "open t/tracks.html",
    ),
    "embeddings": (
        EmbedRequest("yeast", "g.fa", out="e.npz"), {"windows": 1, "bases": 9},
        "numpy.load('e.npz')['embeddings'] in Python",
    ),
    "samples": (
        SampleRequest("yeast", out="s.fa"), {"records": [], "evaluations": 1},
        "genodiff scorecard s.fa --real GENOME.fa",
    ),
    "filled": (
        SampleRequest("yeast", out="s.fa", template="t.fa"), {"records": [], "evaluations": 1}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_last_line_says_what_comes_next(name, here):
    Path("near.fa").write_text(">a\nACGT\n")
    request, told, wanted = CASES[name]
    said = request.conclude(told).partition("; next: ")
    assert (wanted in said[2]) if wanted else not said[1]
    assert shlex.split(said[2])[:1] != [""]


def test_a_redesign_says_what_was_met_and_what_it_wrote():
    told = {
        "records": [{"length": 60, "edits": 2, "filled": 0}], "evaluations": 57, "run": "none",
        "relatives": {"genomes": []}, "constraints": ["at most 4 edits"],
    }  # fmt: skip
    asked = RedesignRequest("none", out="d.gb", fasta="g.fa", region=["c:1-60"])
    said = asked.conclude(told)
    assert "constraints met: at most 4 edits" in said
    assert "given the related genomes, no score is optimised" in said
    assert said.endswith("edits in d.gb.vcf and d.gb.bed")
    guided = asked.conclude({**told, "run": "yeast", "guidance": "smc"})
    assert "given the model and the related genomes, guided (smc)" in guided
