"""Help and usage errors of every verb come before torch and other heavy libraries are imported."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from genodiff.jobs.verbs import list_verbs
from genodiff.runs.resolve import resolve_config
from genodiff.settings import to_yaml

HEAVY = ("torch", "lightning", "polars", "sklearn", "scipy", "matplotlib", "transformers")

# A child of the test runs all lines of words in turn: what one of them loads stays loaded, so the
# first line that tells of a heavy module is the one that loads it.
CHILD = """
import contextlib, io, json, sys
from genodiff.cli import main
HEAVY = json.loads(sys.argv[1])
for words in json.loads(sys.argv[2]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            code = end.code or 0
    loaded = [name for name in HEAVY if name in sys.modules]
    print(json.dumps([words, code, loaded, err.getvalue()]))
"""


def run_all(
    lines: list[list[str]], folder: Path, heavy: tuple[str, ...] = HEAVY
) -> list[tuple[list[str], int, list[str], str]]:
    """(words, exit code, which of the `heavy` modules are then loaded, stderr) of each line."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(heavy), json.dumps(lines)],
        capture_output=True, text=True, check=True, timeout=300, cwd=folder,
    )  # fmt: skip
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return found  # type: ignore[return-value]


def test_help_and_unknown_flags_of_every_verb_load_nothing_heavy(tmp_path):
    commands = [name.replace("*", "gue").split() for name in list_verbs()]
    lines = [[*c, word] for c in commands for word in ("--help", "--bogus-flag")]
    wrong = [
        f"{' '.join(words)}: exit {code}, {', '.join(loaded)}"
        for words, code, loaded, _ in run_all(lines, tmp_path)
        if code != (0 if words[-1] == "--help" else 2) or loaded
    ]
    assert not wrong, "\n".join(wrong)


ERRORS: list[tuple[Any, ...]] = [
    ("train toy --lr x", 2, "optim.lr"),
    ("train toy --preset caduceus-ps-470", 2, "caduceus-ps-470k"),
    ("train hg83", 2, "hg38"),
    ("train gone.fa", 3, "gone.fa: no such file"),
    ("train toy --fasta gone.fa", 3, "gone.fa"),
    ("train toy --config gone.yaml", 2, "gone.yaml"),
    ("train toy --threads 0", 2, "threads"),
    ("train toy --logger bogus", 2),
    ("train toy --resume a --out b", 2),
    ("train toy --out done --seed 7", 2, "holds a run with another configuration"),
    ("train toy --out done --lr 0.5", 2, "another configuration", "optim.lr: 0.5, not 0.001"),
    ("train", 2, "no recipe"),
    ("config check gone.yaml", 2, "gone.yaml"),
    ("data get bogus", 2),
    ("data check", 2),
    ("data check gone.fa", 3),
    ("data build gone.fa", 3),
    ("data build wikitext2 --tokenizer bogus", 2),
    ("data list --domain bogus", 2),
    ("checkpoint export run --format bogus", 2),
    ("checkpoint import gone --out x --seq-len 1.5", 2),
    ("predict", 2),
    ("predict fit gone.fa", 3),
    ("predict . x.fa", 4),
    ("finetune table --train one.csv --test-share 2", 2),
    ("finetune table --train gone.csv --test one.csv", 3),
    ("sample one two -o new.fa", 2),
    ("sample gone -o new.fa", 4, "gone"),
    ("sample -o new.fa", 4, "runs/a", "runs/b", "--checkpoint"),
    ("embed gone --fasta x.fa -o new.npz", 4),
    ("tracks gone --fasta x.fa -o new", 4),
    ("ism gone --fasta x.fa -o new.tsv", 4),
    ("dependencies gone --fasta x.fa -o new.tsv", 4),
    ("checkpoint export gone", 4),
]


def test_usage_errors_load_nothing_heavy(tmp_path):
    (tmp_path / "one.csv").write_text("sequence,label\nACGT,0\n")
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit" / "results.jsonl").write_text("")
    for name in ("a", "b"):  # which of the runs?
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.yaml").write_text("")
    text = to_yaml(resolve_config({"recipe": "toy"}, over={"optim.lr": 1e-3}, together=False))
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "config.yaml").write_text(text)
    found = run_all([line.split() for line, *_ in ERRORS], tmp_path)
    for (line, code, *said), (_, got, loaded, err) in zip(ERRORS, found, strict=True):
        assert (got, loaded) == (code, []), f"{line}: {got} {loaded} {err}"
        assert err.count("\n") == 1, line
        assert all(part in err for part in said), err


def test_verbs_with_a_model_load_no_trainer_and_nothing_of_published_folders(run, tmp_path):
    fasta = str(run.parent / "genome.fa")
    lines = [
        ["sample", str(run), "-n", "1", "--length", "12", "-o", "s.fa", "-q"],
        ["embed", str(run), "--fasta", fasta, "-o", "e.npz", "-q"],
        ["tracks", str(run), "--fasta", fasta, "--region", "c1:1-9", "-o", "t", "--format", "npz"],
    ]
    slow = ("lightning", "torchmetrics", "torch._dynamo", "transformers", "sklearn", "matplotlib")
    slow += ("pandas", "scipy.signal", "genodiff.hub.adopt")
    for words, code, loaded, err in run_all(lines, tmp_path, slow):
        assert (code, loaded) == (0, []), (words, err)
