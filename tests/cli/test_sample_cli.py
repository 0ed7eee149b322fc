"""`genodiff sample` as a user meets it: FASTA out, one line for what is wrong, nothing
half-written.
"""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from Bio import bgzf
from tiny_run import SEQ_LEN, write_run

from genodiff.alphabet import DNA
from genodiff.cli import main
from genodiff.cli.verbs import sample as verb
from genodiff.io import atomic
from genodiff.io.fasta import read_fasta
from tests.commands import exit_code

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; the number of threads is put back."""
    threads = torch.get_num_threads()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    torch.set_num_threads(threads)


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes], here: Path) -> Call:
    def called(*words: object) -> tuple[int, str, str]:
        arguments = ["sample", *map(str, words)]
        code = exit_code(*arguments if "--threads" in arguments else [*arguments, "--threads", "1"])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return called


def sequences(path: Path) -> list[bytes]:
    return [record.sequence for record in read_fasta(path)]


def test_samples_are_valid_fasta_of_the_length_asked_for_and_say_where_they_come_from(
    run: Path, call: Call, here: Path
) -> None:
    code, out, _ = call(
        "--checkpoint", run, "--fasta", "out.fa", "--n", 5, "--length", 50, "--steps", 8
    )
    assert (code, out) == (0, "")
    records = list(read_fasta(here / "out.fa"))
    told = json.loads((here / "out.fa.json").read_text())
    assert [len(r.sequence) for r in records] == [50] * 5
    assert set(b"".join(r.sequence for r in records)) == set(b"ACGT")
    assert {"seed": 1, "sampler": "ancestral", "steps": 8}.items() <= told.items()
    assert re.fullmatch("[0-9a-f]{12}", told["checkpoint"])
    for i, (record, entry) in enumerate(zip(records, told["records"], strict=True), 1):
        assert entry == {"name": f"genodiff_{i:06d}", "length": 50, "nfe": entry["nfe"]}
        assert 1 <= entry["nfe"] <= 8
        assert f">{record.name} {record.description}" == (
            f">genodiff_{i:06d} length=50 seed=1 sampler=ancestral steps=8 nfe={entry['nfe']} "
            f"checkpoint={told['checkpoint']}"
        )
    assert sorted(p.name for p in here.iterdir()) == ["out.fa", "out.fa.json"]


def test_the_bytes_depend_on_the_seed_and_not_on_batch_size_threads_or_how_many_are_asked_for(
    run: Path, call: Call, here: Path
) -> None:
    def drawn(name: str, *words: object, n: int = 64) -> bytes:
        code, _, err = call(
            "--checkpoint", run, "--fasta", name, "--n", n, "--length", 150, "--steps", 16, *words
        )
        assert code == 0, err
        return (here / name).read_bytes()

    first = drawn("1.fa", "--batch-size", 64)
    assert drawn("2.fa", "--batch-size", 3) == first
    assert first.startswith(drawn("3.fa", "--batch-size", 1, n=9))
    drawn("4.fa", "--seed", 2, n=9)
    assert not set(sequences(here / "4.fa")) & set(sequences(here / "1.fa"))
    words = (
        f"--fasta 5.fa --n 7 --length 150 --steps 16 --batch-size 7 --threads 2 "
        f"--checkpoint '{run}'"
    )
    patient = os.environ | {
        "OMP_WAIT_POLICY": "PASSIVE"
    }  # threads that spin starve each other on a busy machine
    subprocess.run(
        f"{sys.executable} -m genodiff sample {words}",
        shell=True,
        check=True,
        env=patient,
        timeout=300,
    )
    assert first.startswith((here / "5.fa").read_bytes())


@pytest.mark.parametrize("sampler", ["first-hitting", "confidence"])
def test_every_sampler_gives_the_same_bytes_in_any_batch(
    run: Path, call: Call, here: Path, sampler: str
) -> None:
    flags = ("--checkpoint", run, "--sampler", sampler, "--length", 40, "--steps", 10, "--n", 7)
    assert call(*flags, "--fasta", "1.fa", "--batch-size", 7)[0] == 0
    assert call(*flags, "--fasta", "2.fa", "--batch-size", 2)[0] == 0
    assert (here / "1.fa").read_bytes() == (here / "2.fa").read_bytes()
    nfe = {entry["nfe"] for entry in json.loads((here / "1.fa.json").read_text())["records"]}
    assert nfe == ({40} if sampler == "first-hitting" else {10})


def test_the_mean_number_of_evaluations_is_that_of_the_linear_grid(
    run: Path, call: Call, here: Path
) -> None:
    assert (
        call("--checkpoint", run, "--fasta", "out.fa", "--n", 200, "--length", 60, "--steps", 32)[0]
        == 0
    )
    nfe = np.array(
        [entry["nfe"] for entry in json.loads((here / "out.fa.json").read_text())["records"]]
    )
    assert abs(nfe.mean() - 32 * (1 - (1 - 1 / 32) ** 60)) < 4 * nfe.std() / np.sqrt(len(nfe))


def test_without_flags_it_takes_the_only_run_and_the_trained_length(
    run: Path, call: Call, here: Path
) -> None:
    (here / "runs").mkdir()
    (here / "runs" / "mine").symlink_to(run)
    assert call("--fasta", "out.fa", "--steps", 4)[0] == 0
    assert [len(s) for s in sequences(here / "out.fa")] == [SEQ_LEN] * 16


def test_without_a_run_or_with_a_choice_of_runs_it_says_what_to_give(
    run: Path, call: Call, here: Path
) -> None:
    code, _, err = call("--fasta", "out.fa")
    assert (code, err.count("\n")) == (4, 1)
    assert "there is no run" in err
    assert "genodiff train" in err
    for name in ("a", "b"):
        (here / "runs" / name).mkdir(parents=True)
        (here / "runs" / name / "config.yaml").touch()
    code, _, err = call("--fasta", "out.fa")
    assert code == 4
    assert "runs/a" in err
    assert "runs/b" in err
    assert "--checkpoint" in err
    code, _, err = call("--fasta", "out.fa", "--checkpoint", "runs/c")
    assert (code, err.count("\n")) == (4, 1)
    assert "runs/c" in err


def test_a_length_far_beyond_the_trained_one_is_exact_and_starts_as_a_shorter_request_does(
    run: Path, call: Call, here: Path
) -> None:
    flags = ("--checkpoint", run, "--n", 2, "--steps", 4)
    assert call(*flags, "--fasta", "long.fa", "--length", 333)[0] == 0
    assert call(*flags, "--fasta", "short.fa", "--length", SEQ_LEN)[0] == 0
    long, short = sequences(here / "long.fa"), sequences(here / "short.fa")
    assert [len(s) for s in long] == [333, 333]
    assert [s[:SEQ_LEN] for s in long] == short


def test_stdout_carries_fasta_only_and_the_sidecar_goes_where_it_is_told(
    run: Path, call: Call, here: Path
) -> None:
    flags = ("--checkpoint", run, "--n", 3, "--length", 70, "--steps", 4)
    code, out, err = call(*flags, "--fasta", "-")
    assert code == 0
    assert "3 records" in err
    assert list(here.iterdir()) == []
    assert call(*flags, "--fasta", "-", "--json", "told.json", "-q") == (0, out, "")
    assert json.loads((here / "told.json").read_text())["records"][2]["length"] == 70
    assert call(*flags, "--fasta", "file.fa")[0] == 0
    assert (here / "file.fa").read_text() == out
    assert [len(line) for line in out.splitlines() if line[0] != ">"] == [60, 10] * 3


def test_line_width_is_kept_and_0_means_one_line(run: Path, call: Call) -> None:
    for width, lines in ((7, [7] * 4 + [2]), (0, [30])):
        out = call(
            "--checkpoint", run, "--fasta", "-", "--n", 1, "--length", 30, "--line-width", width
        )[1]
        assert [len(line) for line in out.splitlines()[1:]] == lines


def test_a_name_that_ends_in_gz_is_bgzf_with_the_same_content(
    run: Path, call: Call, here: Path
) -> None:
    flags = ("--checkpoint", run, "--n", 3, "--length", 70, "--steps", 4)
    assert call(*flags, "--fasta", "out.fa.gz")[0] == 0
    assert call(*flags, "--fasta", "out.fa")[0] == 0
    assert gzip.decompress((here / "out.fa.gz").read_bytes()) == (here / "out.fa").read_bytes()
    with (here / "out.fa.gz").open("rb") as file:
        assert list(bgzf.BgzfBlocks(file))
    assert (here / "out.fa.gz.json").exists()


def test_a_template_keeps_its_name_and_every_letter_but_n_and_question_marks(
    run: Path, call: Call, here: Path
) -> None:
    (here / "in.fa").write_text(">one of two\nACNNgtnRY??\nacgtK\n>two\nACGTACGT\n")
    assert call("--checkpoint", run, "--fasta", "out.fa", "--template", "in.fa")[0] == 0
    one, two = read_fasta(here / "out.fa")
    assert re.fullmatch(rb"AC[ACGT]{2}gt[acgt]RY[ACGT]{2}acgtK", one.sequence)
    assert two.sequence == b"ACGTACGT"
    assert (one.name, two.name) == ("one", "two")
    assert one.description.endswith(" of two")
    told = json.loads((here / "out.fa.json").read_text())
    assert [(e["name"], e["filled"]) for e in told["records"]] == [("one", 5), ("two", 0)]
    assert told["records"][1]["nfe"] == 0
    assert told["template"] == "in.fa"


def test_a_template_can_be_filled_more_than_once(run: Path, call: Call, here: Path) -> None:
    (here / "in.fa").write_text(f">a\nAC{'N' * 30}GT\n>b\n{'N' * 20}\n")
    assert call("--checkpoint", run, "--fasta", "out.fa", "--template", "in.fa", "--n", 3)[0] == 0
    records = list(read_fasta(here / "out.fa"))
    assert [r.name for r in records] == ["a.1", "a.2", "a.3", "b.1", "b.2", "b.3"]
    assert len({r.sequence for r in records}) == 6
    assert (
        call(
            "--checkpoint",
            run,
            "--fasta",
            "1.fa",
            "--template",
            "in.fa",
            "--n",
            3,
            "--batch-size",
            1,
        )[0]
        == 0
    )
    assert (here / "1.fa").read_bytes() == (here / "out.fa").read_bytes(), (
        "shorter texts were not padded away"
    )


def test_a_thousand_templates_are_filled_with_no_kept_base_changed(
    run: Path, call: Call, here: Path
) -> None:
    rng = np.random.default_rng(5)
    texts = [
        "".join(rng.choice(list("ACGTACGTacgtNNNNn?RYk"), rng.integers(1, 120)))
        for _ in range(1000)
    ]
    (here / "in.fa").write_text("".join(f">t{i}\n{text}\n" for i, text in enumerate(texts)))
    flags = ("--checkpoint", run, "--template", "in.fa", "--steps", 3, "--batch-size", 100)
    assert call(*flags, "--fasta", "out.fa")[0] == 0
    changed = 0
    for before, after in zip(texts, sequences(here / "out.fa"), strict=True):
        assert len(before) == len(after)
        pairs = list(zip(before, after.decode(), strict=True))
        changed += sum(a != b for a, b in pairs if a not in "Nn?")
        assert all(b in "ACGTacgt" for a, b in pairs if a in "Nn?")
    assert changed == 0


REFUSED = [
    (("--num", "0"), 2, "at least"),
    (("--num", "-3"), 2, "at least|negative|positive"),
    (("--num", 10**15), 5, "space"),
    (("--num", 10**30), 5, "space"),
    (("--temperature", "nan"), 2, "temperature"),
    (("--temperature", "-1"), 2, "temperature"),
    (("--temperature", "hot"), 2, "temperature"),
    (("--top-p", "0"), 2, "top-p"),
    (("--length", "0"), 2, "length"),
    (("--length", "-5"), 2, "length"),
    (("--length", 10**17), 5, "space"),
    (("--n", "4", "--length", 10**10, "--batch-size", "10000000"), 5, "memory|space"),
    (("--steps", "0"), 2, "steps"),
    (("--steps", "1.5"), 2, "1.5"),
    (("--n", "2.5"), 2, "2.5"),
    (("--seed", "0.5"), 2, "0.5"),
    (("--fasta", "--n"), 2, "--fasta"),
    (("--fasta", ""), 2, "--fasta"),
    (("--stride", "0"), 2, "stride"),
    (("--batch-size", "0"), 2, "batch"),
    (("--line-width", "-1"), 2, "line-width"),
    (("--sampler", "ancestrol"), 2, "did you mean 'ancestral'"),
    (("--seed", "-1"), 2, "seed"),
    (("--tempurature", "1"), 2, "--temperature"),
    (("--domain", "text"), 2, "text"),
    (("--template", "in.fa", "--length", "5"), 2, "--length"),
    (("--template", "absent.fa"), 3, "absent.fa"),
    (("--template", "bad.fa"), 3, "line 2"),
    (("--json", "somedir"), 5, "directory"),
    (("--fasta", "somedir"), 5, "directory"),
    (("--fasta", "/dev/full"), 5, "space|write|written"),
    (("--fasta", "in.fa/out.fa"), 5, "directory"),
]


@pytest.mark.parametrize(("words", "code", "named"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_cannot_be_done_is_one_line_before_any_work_and_leaves_nothing(
    call: Call, here: Path, words: tuple[object, ...], code: int, named: str
) -> None:
    (here / "somedir").mkdir()
    (here / "in.fa").write_text(">a\nACNN\n")
    (here / "bad.fa").write_text(">a\nAC!N\n")
    fasta = () if "--fasta" in words else ("--fasta", "out.fa")
    found, out, err = call(*fasta, *words)
    assert found == code, err
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("genodiff: error: ")
    assert re.search(named, err), err
    assert sorted(p.name for p in here.rglob("*")) == ["bad.fa", "in.fa", "somedir"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused_before_any_work(call: Call, here: Path) -> None:
    (here / "locked").mkdir(mode=0o500)
    code, _, err = call("--fasta", "locked/out.fa")
    assert code == 5
    assert "permission" in err


def test_what_the_checkpoint_cannot_do_is_one_line_too(
    run: Path, call: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = call("--checkpoint", run, "--fasta", "out.fa", "--stride", 65)
    assert (code, err.count("\n")) == (2, 1)
    assert "stride" in err
    code, _, err = call("--checkpoint", run, "--fasta", "out.fa", "--seed", 1 << 64)
    assert (code, err.count("\n")) == (2, 1)
    loaded = verb.load_model
    monkeypatch.setattr(
        verb,
        "load_model",
        lambda *a, **k: loaded(*a, **k)._replace(alphabet=replace(DNA, domain="text")),
    )
    code, _, err = call("--checkpoint", run, "--fasta", "out.fa")
    assert (code, err.count("\n")) == (4, 1)
    assert "text" in err
    assert list(here.iterdir()) == []


def test_a_plan_tells_and_writes_nothing(run: Path, call: Call, here: Path) -> None:
    code, out, _ = call(
        "--checkpoint", run, "--fasta", "out.fa", "--n", 10, "--length", 128, "--steps", 8, "--plan"
    )
    assert code == 0
    for word in (
        "parameters",
        "10 of 128",
        "1,280 bases in 30 windows",
        "evaluations",
        "out.fa.json",
    ):
        assert word in out
    assert "bits per 1,000 bases" not in out
    assert list(here.iterdir()) == []
    curve = [
        {"rate_lo": 0.0, "rate_hi": 0.02, "nats": 0.0},
        {"rate_lo": 0.98, "rate_hi": 1.0, "nats": 1.4},
    ]
    shutil.copytree(run, here / "scored")
    (here / "scored" / "eval.json").write_text(json.dumps({"test": {"curve": curve}}))
    out = call("--checkpoint", "scored", "--fasta", "out.fa", "--steps", 8, "--plan")[1]
    assert re.search(r"8 cost about 12\d\.\d\d bits per 1,000 bases", out)


def test_the_old_file_and_its_sidecar_are_never_mixed_with_the_new_ones_wherever_the_process_dies(
    run: Path, call: Call, here: Path
) -> None:
    """Killed at every I/O operation, the target holds the old bytes or the new ones, never a part."""

    def flags(seed: int) -> list[object]:
        return [
            "--checkpoint",
            run,
            "--fasta",
            "out.fa",
            "--n",
            3,
            "--length",
            40,
            "--steps",
            3,
            "--seed",
            seed,
        ]

    assert call(*flags(2))[0] == 0
    new = (here / "out.fa").read_bytes()
    states = set()
    for at in range(1, 100):
        assert call(*flags(1))[0] == 0
        old = (here / "out.fa").read_bytes()
        code = forked(["sample", *map(str, flags(2)), "--threads", "1"], crash_at=at)
        now = (here / "out.fa").read_bytes()
        sidecar = here / "out.fa.json"
        told = json.loads(sidecar.read_text())["seed"] if sidecar.exists() else None
        assert now in (old, new)
        assert told in (None, 1 if now == old else 2), (
            "a sidecar beside a file that it does not describe"
        )
        states.add((now == new, told))
        for path in here.glob(".genodiff-*"):
            path.unlink()
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert at > 8
    assert states == {(False, 1), (False, None), (True, None), (True, 2)}


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_its_own_code_and_leaves_nothing(
    run: Path, here: Path, signum: int, code: int
) -> None:
    words = [
        "sample",
        "--checkpoint",
        str(run),
        "--fasta",
        "out.fa",
        "--n",
        "100000",
        "--threads",
        "1",
        "-q",
    ]
    child = subprocess.Popen(
        [sys.executable, "-m", "genodiff", *words], cwd=here, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list(here.glob(".genodiff-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    child.send_signal(signum)
    _, said = child.communicate(timeout=120)
    assert child.returncode == code, said
    assert list(here.iterdir()) == []


def fork(words: list[str], crash_at: int = 0) -> int:
    """`genodiff WORDS` in a copy of this process, which has everything loaded; the number of the
    copy.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child:
        return child
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        atomic._operations = 0
        os.environ["GENODIFF_CRASH_AT"] = str(crash_at)
        main(words)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 98
    finally:
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(words: list[str], crash_at: int) -> int:
    return ended(fork(words, crash_at))


def test_a_pipe_that_is_closed_early_and_a_full_stdout_end_without_a_traceback(
    run: Path, here: Path
) -> None:
    words = f"sample --fasta - --n 300 --length 64 --steps 1 --threads 1 -q --checkpoint '{run}'"
    shell = f"set -o pipefail; {sys.executable} -m genodiff {words} | head -1; echo code $? >&2"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith(">genodiff_000001 ")
    assert done.stderr in ("code 0\n", "code 141\n")
    shell = f"{sys.executable} -m genodiff {words} > /dev/full; echo code $? >&2"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    error, code = done.stderr.splitlines()
    assert code == "code 5"
    assert re.match("genodiff: error: .*[Ss]pace", error)
