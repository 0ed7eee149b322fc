"""`genodiff sample` killed and run again: records are kept, and the bytes are the same."""

import signal
import time
from pathlib import Path

import pytest

from genodiff.generate import samples
from genodiff.jobs.journal import Journal
from tests.commands import SERVER, command


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_moment_goes_on_to_the_same_bytes(run, sample, here):
    words = [str(run), "--fasta", "o.fa", "--n", "90", "--batch-size", "2"]
    words += ["--steps", "32"]
    assert sample(*words[:1], "--fasta", "whole.fa", *words[3:])[0] == 0
    command = ["sample", *words, "--threads", "1", "-q"]
    partial, sizes = here / "o.fa.partial", [0]
    for signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        child = SERVER.start(command, cwd=here)
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


@pytest.mark.parametrize(("kind", "ending"), [("run", "fa"), ("text_run", "txt")])
def test_a_long_record_of_windows_goes_on_to_the_same_bytes(
    kind, ending, here, request, capsys, monkeypatch
):
    monkeypatch.chdir(here)
    monkeypatch.setattr(samples, "EACH", 60)
    words = ["sample", request.getfixturevalue(kind), "-n", 2, "--length", 250, "--steps", 3, "-q"]
    assert command(capsys, *words, "-o", f"whole.{ending}")[0] == 0
    stops, append = 0, Journal.append_part

    def stop(journal: Journal, part: bytes) -> None:
        append(journal, part)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append_part", stop)
        while (done := command(capsys, *words, "-o", f"o.{ending}"))[0] == 130:
            assert "part of the work is kept in" in done[2]
            stops += 1
    assert done[0] == 0
    assert stops >= 4
    assert Path(f"o.{ending}").read_bytes() == Path(f"whole.{ending}").read_bytes()
