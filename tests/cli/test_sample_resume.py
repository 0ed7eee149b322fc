"""`genodiff sample` stopped and run again: records are kept, and the bytes are the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from genodiff.generate import journal as journals
from genodiff.generate import output
from genodiff.generate.sample import Sample
from tests.cli.conftest import Command

KINDS = (np.uint8, np.int64)
FLAGS = ("--length", "40", "--batch-size", "1", "--n", "12")


def stop_after(
    monkeypatch: pytest.MonkeyPatch, records: int, fault: type[BaseException] = KeyboardInterrupt
) -> None:
    """Let the sampler of this process stop after so many new records."""
    make = output.infill

    def stopping(*args: object, **kwargs: object) -> object:
        for i, sample in enumerate(make(*args, **kwargs)):  # type: ignore[arg-type]
            if i == records:
                raise fault
            yield sample

    monkeypatch.setattr(output, "infill", stopping)


def whole(run: Path, sample: Command, here: Path, *words: object) -> bytes:
    assert sample(run, "--fasta", "whole.fa", *FLAGS, *words)[0] == 0
    return (here / "whole.fa").read_bytes()


@pytest.mark.few(1)
@pytest.mark.parametrize("records", [1, 5, 11])
def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    run: Path, sample: Command, here: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    expected = whole(run, sample, here)
    words = (run, "--fasta", "o.fa", *FLAGS)
    with monkeypatch.context() as patch:
        stop_after(patch, records)
        code, _, err = sample(*words)
    assert code == 130
    kept = "1 finished record is" if records == 1 else f"{records} finished records are"
    assert f"{kept} kept in o.fa.partial" in err
    assert not (here / "o.fa").exists()
    made: list[int] = []
    infill = output.infill

    def counting(*args: object, **kwargs: object) -> object:
        for one in infill(*args, **kwargs):  # type: ignore[arg-type]
            made.append(one.number)
            yield one

    monkeypatch.setattr(output, "infill", counting)
    code, _, err = sample(*words)
    assert code == 0, err
    assert made == list(range(records, 12))
    assert (here / "o.fa").read_bytes() == expected
    mine, theirs = (json.loads((here / f"{n}.fa.json").read_text()) for n in ("o", "whole"))
    assert mine == theirs
    assert not (here / "o.fa.partial").exists()


@pytest.mark.slow
def test_another_request_is_refused_and_fresh_starts_anew(
    run: Path, sample: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (run, "--fasta", "o.fa", *FLAGS)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        assert sample(*words)[0] == 130
    kept = (here / "o.fa.partial").read_bytes()
    for other in (("--seed", 2), ("--steps", 5), ("--top-p", 0.5)):
        code, _, err = sample(*words, *other)
        assert (code, err.count("\n")) == (2, 1)
        assert "holds 3 records of another request" in err
        assert (here / "o.fa.partial").read_bytes() == kept
    assert sample(*words, "--seed", 2, "--fresh")[0] == 0
    assert (here / "o.fa").read_bytes() == whole(run, sample, here, "--seed", 2)


def test_a_foreign_file_of_that_name_is_not_touched(run: Path, sample: Command, here: Path) -> None:
    (here / "o.fa.partial").write_text("mine")
    code, _, err = sample(run, "--fasta", "o.fa", *FLAGS)
    assert (code, "--force" in err) == (2, True)
    assert (here / "o.fa.partial").read_text() == "mine"


@pytest.mark.slow
def test_what_was_half_written_is_cut_off(
    run: Path, sample: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(run, sample, here)
    words = (run, "--fasta", "o.fa", *FLAGS)
    with monkeypatch.context() as patch:
        stop_after(patch, 4)
        assert sample(*words)[0] == 130
    kept = (here / "o.fa.partial").read_bytes()
    for cut in (len(kept) - 1, len(kept) - 30, len(kept) - 200, 60, 3):
        (here / "o.fa.partial").write_bytes(kept[:cut])
        assert sample(*words, "--force")[0] == 0
        assert (here / "o.fa").read_bytes() == expected
    spoilt = kept.replace(b'"nfe"', b'"nfe"', 1)[:-10] + b"\x07" * 9 + b"\n"
    (here / "o.fa.partial").write_bytes(spoilt)
    assert sample(*words)[0] == 0
    assert (here / "o.fa").read_bytes() == expected


def test_gaps_go_on_piece_by_piece(
    run: Path, sample: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "in.fa").write_text(">x\n" + "ACGTTGCA" * 200 + "\n>y\n" + "GATTACA" * 100 + "\n")
    (here / "gaps.bed").write_text(
        "".join(f"{c}\t{at}\t{at + 9}\n" for c in "xy" for at in (0, 150, 300, 600))
    )
    words = (run, "--template", "in.fa", "--bed", "gaps.bed", "--steps", 3, "--batch-size", 1)
    assert sample(*words, "--fasta", "whole.fa")[0] == 0
    from genodiff.generate import gap_request

    make = gap_request.fill_pieces

    def stopping(*args: object, **kwargs: object) -> object:
        for i, one in enumerate(make(*args, **kwargs)):  # type: ignore[arg-type]
            if i == 5:
                raise KeyboardInterrupt
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(gap_request, "fill_pieces", stopping)
        assert sample(*words, "--fasta", "o.fa")[0] == 130
    assert sample(*words, "--fasta", "o.fa")[0] == 0
    assert (here / "o.fa").read_bytes() == (here / "whole.fa").read_bytes()


def test_text_goes_on_as_well(
    text_run: Path, sample: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from genodiff.generate import text_output

    words = (text_run, "--batch-size", 1, "--steps", 4)
    assert sample(*words, "-o", "whole.txt")[0] == 0
    make = text_output.infill

    def stopping(*args: object, **kwargs: object) -> object:
        for i, one in enumerate(make(*args, **kwargs)):  # type: ignore[arg-type]
            if i == 2:
                raise KeyboardInterrupt
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(text_output, "infill", stopping)
        code, _, err = sample(*words, "-o", "o.txt")
        assert (code, "2 finished records" in err) == (130, True)
    assert sample(*words, "-o", "o.txt")[0] == 0
    assert (here / "o.txt").read_bytes() == (here / "whole.txt").read_bytes()


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_moment_goes_on_to_the_same_bytes(
    run: Path, sample: Command, here: Path
) -> None:
    words = [str(run), "--fasta", "o.fa", "--n", "90", "--batch-size", "2"]
    words += ["--steps", "32"]
    assert sample(*words[:1], "--fasta", "whole.fa", *words[3:])[0] == 0
    command = [sys.executable, "-m", "genodiff", "sample", *words, "--threads", "1", "-q"]
    partial, sizes = here / "o.fa.partial", [0]
    for signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        child = subprocess.Popen(command, cwd=here, stderr=subprocess.DEVNULL, env=os.environ)
        deadline = time.monotonic() + 120
        while child.poll() is None and time.monotonic() < deadline:
            size = partial.stat().st_size if partial.exists() else 0
            if size > sizes[-1] + 1500:
                child.send_signal(signum)
                break
            time.sleep(0.01)
        child.wait(timeout=120)
        if (here / "o.fa").exists():
            break
        sizes.append(partial.stat().st_size)
        assert sizes[-1] >= sizes[-2]
    assert len(sizes) > 1, "it was never stopped on its way"
    assert sample(*words)[0] == 0
    assert (here / "o.fa").read_bytes() == (here / "whole.fa").read_bytes()
    assert not partial.exists()


def test_a_journal_gives_back_what_it_was_given(tmp_path: Path) -> None:
    first = journals.SampleJournal(tmp_path / "o.fa", "request")
    given = [
        Sample(i, np.arange(i + 3, dtype=d), 7 * i) for i, d in enumerate((np.uint8, np.int64))
    ]
    list(first.pass_through(lambda kept: given[kept:]))
    first.close()
    again = journals.SampleJournal(tmp_path / "o.fa", "request")
    assert again.kept == 2
    found = list(again.pass_through(lambda _: []))
    again.close()
    for one, other in zip(found, given, strict=True):
        assert (one.number, one.nfe) == (other.number, other.nfe)
        assert one.ids.dtype == other.ids.dtype
        assert (one.ids == other.ids).all()
    assert journals.SampleJournal(tmp_path / "o.fa", "another").kept == 0
