"""`--screen CMD`: a program sees the samples first, and nothing is written that it refuses."""

import gzip
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
from tiny_run import genome_text

import genodiff
from genodiff.errors import GenodiffError, MachineError, UsageError
from tests.commands import command, succeed

SAMPLE = ["--n", 2, "--length", 16, "--steps", 2]
SCREENER = """
import os, pathlib, sys
*options, file = sys.argv[1:]
here = pathlib.Path(__file__).parent
(here / "seen.fa").write_bytes(pathlib.Path(file).read_bytes())
(here / "there").write_text(" ".join(sorted(os.listdir(here))))
print("looked at", options)
if "refuse" in options:
    print("hazard in genodiff_000001", file=sys.stderr)
    sys.exit(3)
if "die" in options:
    os.kill(os.getpid(), 9)
if "sleep" in options:
    import time
    time.sleep(60)
"""


def screen(*options: str) -> str:
    return " ".join([sys.executable, "screener.py", *options])


@pytest.fixture
def there(here):
    (here / "screener.py").write_text(SCREENER)
    return here


@pytest.mark.parametrize("name", ["o.fa", "o.fa.gz", "-"])
def test_the_screener_sees_what_is_then_written(run, there, sample, name):
    words = ["--model", run, "--fasta", name, *SAMPLE]
    code, out, _ = sample(*words, "--screen", screen("--mode 'a b'"))
    assert code == 0
    seen = (there / "seen.fa").read_bytes()
    assert b" screened=" + Path(sys.executable).name.encode() in seen
    listed = (there / "there").read_text().split()
    assert not [one for one in listed if one.startswith(("o.fa", ".genodiff"))]
    if name == "-":
        assert out.encode() == seen
        return
    written = (there / name).read_bytes()
    assert (gzip.decompress(written) if name.endswith(".gz") else written) == seen
    told = json.loads((there / f"{name}.json").read_text())
    assert told["screen"] == {
        "command": [sys.executable, "screener.py", "--mode", "a b"],
        "status": 0,
        "sha256": hashlib.sha256(seen).hexdigest(),
    }
    assert told["file"]["sha256"] == hashlib.sha256(written).hexdigest()
    assert sample(*words, "--screen", screen("--mode 'a b'"))[0] == 0  # our own file is replaced
    assert (there / name).read_bytes() == written
    assert not (there / f"{name}.partial").exists()


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        ([screen("refuse")], "refused the samples (exit status 3: hazard in genodiff_000001)", 1),
        ([screen("die")], "ended by signal 9", 1),
        ([screen("sleep"), "--screen-timeout", "0.5"], "no answer in 0.5 s", 1),
        (["no-such-program-here --x"], "no such program", 5),
        (["./screener.py"], "no such program, or it cannot be run", 5),
        (["'open"], "no closing quotation", 2),
        ([""], "without a command", 2),
        ([screen(), "--screen-timeout", "0"], "give seconds above 0", 2),
    ],
)
def test_a_refusal_and_a_fault_are_one_line_and_nothing_is_written(
    run, there, sample, words, says, code
):
    before = sorted(os.listdir(there))
    given, out, err = sample("--model", run, "--fasta", "o.fa", *SAMPLE, "--screen", *words)
    assert (given, out) == (code, "")
    assert says in err
    assert err.count("error:") == 1
    assert sorted(set(os.listdir(there)) - {"seen.fa", "there"}) == before


def test_a_refusal_leaves_the_file_that_was_there(run, there, sample):
    words = ["--model", run, "--fasta", "o.fa", *SAMPLE]
    assert sample(*words)[0] == 0
    before = [(there / name).read_bytes() for name in ("o.fa", "o.fa.json")]
    assert sample(*words, "--seed", 2, "--screen", screen("refuse"))[0] == 1
    assert [(there / name).read_bytes() for name in ("o.fa", "o.fa.json")] == before


def test_redesign_writes_none_of_its_files_that_are_refused(run, there, capsys):
    (there / "genome.fa").write_text(genome_text())
    words = ["redesign", run, "--fasta", "genome.fa", "--region", "c1:101-108", "-o", "d.fa"]
    words += ["--steps", 2, "--threads", 1]
    code, _, err = command(capsys, *words, "--screen", screen("refuse"))
    assert (code, "refused" in err) == (1, True)
    assert not list(there.glob("d.fa*"))
    code, _, err = command(capsys, *words, "--vcf", "/dev/stdout", "--screen", screen())
    assert (code, "--vcf to a stream" in err) == (2, True)
    succeed(capsys, *words, "--screen", screen())
    assert sorted(path.name for path in there.glob("d.fa*")) == [
        "d.fa", "d.fa.bed", "d.fa.json", "d.fa.vcf",
    ]  # fmt: skip
    assert (there / "d.fa").read_bytes() == (there / "seen.fa").read_bytes()
    assert json.loads((there / "d.fa.json").read_text())["screen"]["status"] == 0


@pytest.mark.parametrize("only", [True, False])
def test_filled_regions_of_a_genome_are_screened(run, there, only):
    (there / "genome.fa").write_text(genome_text())
    how = {"template": there / "genome.fa", "region": ["c4:11-20"], "only_filled": only}
    with pytest.raises(GenodiffError, match="refused"):
        genodiff.sample(run, out=there / "o.fa", steps=2, screen=screen("refuse"), **how)
    assert not list(there.glob("o.fa*"))
    genodiff.sample(run, out=there / "o.fa", steps=2, screen=screen(), **how)
    assert (there / "o.fa").read_bytes() == (there / "seen.fa").read_bytes()
    assert b" screened=" in (there / "o.fa").read_bytes()


def test_python_is_told_early(run, text_run, there):
    with pytest.raises(MachineError, match="no such program"):
        genodiff.sample(run, out=there / "o.fa", screen="no-such-program-here")
    with pytest.raises(UsageError, match="is for --screen"):
        genodiff.sample(run, out=there / "o.fa", screen_timeout=3)
    with pytest.raises(UsageError, match="--screen is for DNA"):
        genodiff.sample(text_run, out=there / "o.txt", screen=screen())
