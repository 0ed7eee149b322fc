"""Every kind of piece, written in one file of a plug-in, is reached from the command line.

A new kind adds its file to `PIECES` and, where the probe does not say enough, a test of its own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from benchmarks.fork_server import PRELOADED

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "how-to" / "plug-ins.md").read_text()


def read_block(heading: str, language: str = "python") -> str:
    """Return the code in a language below a heading of the page."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, flags=re.M | re.S)
    assert found, heading
    return found[1]


class Piece(NamedTuple):
    """One file of the plug-in and a quick command that needs what the file registers."""

    heading: str  # on the page
    probe: str
    said: str  # by the probe where the piece is there
    missing: str  # by the probe where it is not
    beside: tuple[tuple[str, str], ...] = ()  # (name, content) of data files


PIECES = {
    "toy_schedule": Piece(
        "A schedule", "config show toy --schedule cubic", "schedule: cubic", "unknown schedule"
    ),
    "toy_sampler": Piece(
        "A sampler", "sample --sampler right-to-left", "no file to write", "no sampler"
    ),
    "toy_objective": Piece(
        "An objective",
        "config show toy --objective scaled --objective-options.factor 2.5",
        "factor: 2.5",
        "unknown objective",
    ),
    "toy_suite": Piece(
        "A suite of tasks",
        "finetune list toysuite",
        "words",
        "no suite 'toysuite'",
        (("toysuite.yaml", read_block("A suite of tasks", "yaml")),),
    ),
    "toy_verb": Piece("A verb", "hello world", "hello, world", "unknown command 'hello'"),
    "toy_backbone": Piece(
        "A backbone", "config show toy --model context", "context-tiny", "unknown 'context'"
    ),
    "toy_score_method": Piece(
        "A method of scoring variants",
        "score run in.vcf --fasta ref.fa --out o.tsv --method flanks",
        "ref.fa",
        "no method 'flanks'",
    ),
    "toy_track_format": Piece(
        "A format of tracks",
        "tracks run --fasta ref.fa --out tracks --format wiggle",
        "run: is not there",
        "'wiggle' is no format",
    ),
    "toy_baseline": Piece(
        "A baseline",
        "finetune gue --task EMP/H3 --model gc-share --data nowhere --offline --out o",
        "nowhere: the data of gue are not here",
        "no model 'gc-share'",
    ),
}


def plug_in(folder: Path, *names: str) -> Path:
    """Install the named pieces as a distribution in `folder`, which is to stand in sys.path."""
    about = folder / "toy-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 0.1\n")
    points = "".join(f"{name} = {name}\n" for name in names)
    (about / "entry_points.txt").write_text(f"[genodiff.plugins]\n{points}")
    for name in names:
        (folder / f"{name}.py").write_text(read_block(PIECES[name].heading))
        for file, content in PIECES[name].beside:
            (folder / file).write_text(content)
    return folder


# Each line of stdin is (folder of plug-ins, folder to work in, commands). They run one after the
# other in a process that parts from this one, which has imported what commands need from elsewhere,
# but has looked for no plug-in. A line of stdout answers each; it is null where the process died.
SERVER = """
import contextlib, importlib, io, json, os, sys
from genodiff.cli import main

for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    plug_ins, folder, commands = json.loads(line)
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            print("null", flush=True)
        continue
    sys.path[:0] = [plug_ins]
    os.chdir(folder)
    answers = []
    for words in commands:
        said, code = io.TextIOWrapper(io.BytesIO(), write_through=True), 0
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                main(words)
            except SystemExit as end:
                code = end.code or 0
        answers.append([code, said.buffer.getvalue().decode()])
    print(json.dumps(answers), flush=True)
    os._exit(0)
"""

SHORT = "--max-steps 2 --validate-windows 0 --out run -q"
Run = Callable[..., list[tuple[int, str]]]


@pytest.fixture(scope="module")
def genodiff_each(tmp_path_factory):
    """(exit code, stdout and stderr) of `genodiff WORDS` for each command, with plug-ins of a
    folder, in a new process that works in another.
    """
    cache = {"GENODIFF_CACHE": str(tmp_path_factory.mktemp("cache"))}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, "polars", *PRELOADED],
        env=os.environ | cache,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        ask, answer = server.stdin, server.stdout

        def run(plug_ins: Path, folder: Path, *commands: list[str]) -> list[tuple[int, str]]:
            print(json.dumps([str(plug_ins), str(folder), commands]), file=ask, flush=True)
            found = json.loads(answer.readline())
            assert found is not None, "the process died"
            return [(code, said) for code, said in found]

        yield run


@pytest.fixture(scope="module")
def probed(genodiff_each, tmp_path_factory):
    """Run the probe of each piece where all pieces are installed, and where none is."""
    folder = tmp_path_factory.mktemp("probes")
    probes = [piece.probe.split() for piece in PIECES.values()]
    both = (plug_in(folder / "whole", *PIECES), plug_in(folder / "none"))
    found = (genodiff_each(plug_ins, folder, *probes) for plug_ins in both)
    return dict(zip(PIECES, zip(*found, strict=True), strict=True))


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_is_reached_where_its_file_is_installed_and_not_elsewhere(name, probed):
    (_, found), (code, without) = probed[name]
    assert PIECES[name].said in found
    assert code == 2
    assert PIECES[name].missing in without


def test_a_toy_schedule_objective_and_sampler_train_a_model_and_sample_it(tmp_path, genodiff_each):
    plug_ins = plug_in(tmp_path / "plug_in", *PIECES)
    train = f"train toy --preset caduceus-ps-tiny --seq-len 64 {SHORT}"
    ours = "--schedule cubic --objective scaled --objective-options.factor 2.5"
    sample = "sample --checkpoint run --fasta - --n 1 --length 20 --sampler right-to-left -q"
    both = genodiff_each(plug_ins, tmp_path, f"{train} {ours}".split(), sample.split())
    assert [code for code, _ in both] == [0, 0], both
    said = both[1][1]
    assert "sampler=right-to-left steps=20 nfe=20" in said


def test_a_toy_suite_with_a_layout_of_its_own_is_fine_tuned_on(tmp_path, genodiff_each):
    plug_ins = plug_in(tmp_path / "plug_in", *PIECES)
    letters = [("ACGT"[i % 4] + "ACGT"[i // 4 % 4]) * 4 for i in range(16)]
    lines = [
        f"{part} {label} {letter}{'GATTACA' if label else 'CCCGGGC'}{letter}"
        for part in ("train", "test")
        for letter in letters
        for label in (0, 1)
    ]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    words = "finetune toysuite --task words --data . --model baselines --seeds 1 --out sweep --json"
    fitted, helped = genodiff_each(
        plug_ins, tmp_path, [*words.split(), "--threads", "1"], ["finetune", "--help"]
    )
    assert fitted[0] == 0, fitted
    rows = (tmp_path / "sweep" / "results.jsonl").read_text().splitlines()
    assert {json.loads(row)["suite"] for row in rows} == {"toysuite"}
    (ours,) = (row for row in map(json.loads, rows) if row["model"] == "gc-share")
    assert ours["method"] == "baseline"
    assert re.search(r"toysuite +Two words to be distinguished", helped[1])


def test_a_toy_method_scores_all_kinds_and_a_toy_format_holds_the_tracks(tmp_path, genodiff_each):
    letters = "".join("ACGT"[i * i % 7 % 4] for i in range(400))
    (tmp_path / "ref.fa").write_text(f">c1\n{letters}\n")
    rows = [(100, 1, "N"), (110, 3, "NN"), (200, 3, ""), (205, 1, "NNN"), (300, 15, "")]
    lines = ["##fileformat=VCFv4.2", "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT child"]
    for pos, n, more in rows:  # an SNV, an MNV, a deletion, an insertion and a long deletion
        ref = letters[pos - 1 : pos - 1 + n]
        other = "".join("ACGT"[("ACGT".index(x) + 1) % 4] for x in (ref * 3)[: len(more)])
        alt = other if n == 1 == len(more) else ref[0] + other
        lines.append(f"c1 {pos} . {ref} {alt} . . . GT 1|0")
    (tmp_path / "in.vcf").write_text("\n".join("\t".join(x.split(" ")) for x in lines) + "\n")
    score = "score run in.vcf --fasta ref.fa --haplotypes -q --threads 1"
    commands = f"""
        train toy --preset caduceus-ps-tiny --seq-len 64 {SHORT}
        {score} --background 100 --method flanks --out o.vcf
        {score} --method llr --out llr.vcf
        {score} --method flanks --plan --json
        score --help
        score run in.vcf --fasta ref.fa --out x.vcf --method flnks
        tracks run --fasta ref.fa --region c1:11-30 --format wiggle --format npz --out tracks -q
    """
    each = [line.split() for line in commands.strip().splitlines()]
    plug_ins = plug_in(tmp_path / "plug_in", "toy_score_method", "toy_track_format")
    found = genodiff_each(plug_ins, tmp_path, *each)
    assert [code for code, _ in found] == [0, 0, 0, 0, 0, 2, 0], found
    ours, others = (read_fields(tmp_path / f"{name}.vcf") for name in ("o", "llr"))
    assert [one["GD_METHOD"] for one in ours] == ["flanks"] * len(rows)
    assert [one["GD_N"] for one in ours] == ["2"] * len(rows)
    assert all(a["GD_SCORE"] != b["GD_SCORE"] for a, b in zip(ours, others, strict=True))
    assert ours[0]["GD_BG"]
    assert {one["GD_HAPM"] for one in ours} == {"flanks,."}
    assert ours[0]["GD_HAP"] != others[0]["GD_HAP"]
    assert "method: flanks" in (tmp_path / "o.vcf").read_text()
    (planned, helped, near) = (said for _, said in found[3:6])
    assert json.loads(planned)["evaluations"] == 2 * len(rows)
    assert "flanks: every fourth base around" in re.sub(r"[\s│]+", " ", helped)
    assert "did you mean 'flanks'" in near
    arrays = np.load(tmp_path / "tracks" / "tracks.npz")
    head, *values = (tmp_path / "tracks" / "p_C.wiggle").read_text().splitlines()
    assert head == "variableStep chrom=c1"
    assert [int(one.split()[0]) for one in values] == list(range(11, 31))
    assert [float(one.split()[1]) for one in values] == pytest.approx(arrays["p"][:, 1], abs=1e-6)


def read_fields(path: Path) -> list[dict[str, str]]:
    """INFO and the fields of the only sample of each record of a VCF."""
    lines = [line.split("\t") for line in path.read_text().splitlines() if line[0] != "#"]
    return [
        dict(part.partition("=")[::2] for part in line[7].split(";"))
        | dict(zip(line[8].split(":"), line[9].split(":"), strict=True))
        for line in lines
    ]


def test_a_toy_verb_is_listed_with_its_help(tmp_path, genodiff_each):
    folder = plug_in(tmp_path / "plug_in", *PIECES)
    path = os.pathsep.join(one for one in (str(folder), os.environ.get("PYTHONPATH")) if one)
    help_ = [sys.executable, "-m", "genodiff", "--help"]  # as a user starts it
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(help_, env=environment, capture_output=True, text=True, timeout=300)
    assert re.search(r"hello +Greet somebody by name\.", done.stdout + done.stderr)
    ((_, said),) = genodiff_each(plug_in(tmp_path / "none"), tmp_path, ["--help"])
    assert "hello" not in said


def test_two_pieces_of_one_name_are_an_error(tmp_path, genodiff_each):
    plug_ins = plug_in(tmp_path / "plug_in", "toy_verb", "toy_suite")
    verb, suite = tmp_path / "plug_in" / "toy_verb.py", tmp_path / "plug_in" / "toy_suite.py"
    verb.write_text(verb.read_text().replace('"hello"', '"train"'))
    ((code, said),) = genodiff_each(plug_ins, tmp_path, ["doctor"])
    assert (code, "two verbs are called 'train'" in said) == (2, True), said
    verb.write_text("")
    suite.write_text(suite.read_text().replace("toysuite.yaml", "gue.yaml"))
    ((code, said),) = genodiff_each(plug_ins, tmp_path, ["finetune", "list"])
    assert (code, "two suites of tasks are called 'gue'" in said) == (2, True), said


def test_a_toy_backbone_is_listed_trained_sampled_and_evaluated(tmp_path, genodiff_each):
    commands = f"""
        train toy --model context --reach 5 --seq-len 32 --batch-size 2 {SHORT}
        sample --checkpoint run --fasta out.fa --n 1 --length 20 --steps 2 -q
        eval run --max-windows 4 --no-baselines -q
        config presets
        config schema
        train toy --preset contxt-tiny --out other
    """
    each = [line.split() for line in commands.strip().splitlines()]
    found = genodiff_each(plug_in(tmp_path / "plug_in", "toy_backbone"), tmp_path, *each)
    assert [code for code, _ in found] == [0, 0, 0, 0, 0, 2], found
    saved = json.loads((tmp_path / "run" / "model.json").read_text())["config"]["backbone"]
    assert saved == {"kind": "context", "d_model": 8, "n_layer": 1, "reach": 5}
    listed, schema, near = (said for _, said in found[3:])
    assert "context-tiny" in listed
    assert "ContextSettings" in json.loads(schema)["$defs"]
    assert "did you mean 'context-tiny'" in near


def test_a_plug_in_that_cannot_be_imported_is_named(tmp_path, genodiff_each):
    plug_ins = plug_in(tmp_path / "plug_in", "toy_schedule")
    (tmp_path / "plug_in" / "toy_schedule.py").write_text("import no_such_module\n")
    words = ["config", "show", "toy", "--schedule", "cubic"]
    ((code, said),) = genodiff_each(plug_ins, tmp_path, words)
    assert code == 5
    assert "the plug-in toy_schedule of toy cannot be loaded" in said
