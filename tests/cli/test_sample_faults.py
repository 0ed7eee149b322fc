"""`genodiff sample` that is killed, stopped or interrupted: nothing is half-written or lost."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from genodiff.generate import filler
from genodiff.jobs.journal import Journal
from tests.commands import SERVER, command, succeed


@pytest.mark.slow
def test_the_old_file_and_its_sidecar_are_never_mixed_with_the_new_ones_wherever_the_process_dies(
    run, sample, here
):
    """Killed at any I/O operation, it leaves the old bytes or the new ones, never a part."""

    def flags(seed: int) -> list[object]:
        return ["--checkpoint", run, "--fasta", "out.fa", "--n", 3, "--length", 40, "--steps", 3,
                "--seed", seed]  # fmt: skip

    assert sample(*flags(2))[0] == 0
    new = (here / "out.fa").read_bytes()
    states = set()
    for at in range(1, 100):
        assert sample(*flags(1), "--fresh")[0] == 0
        old = (here / "out.fa").read_bytes()
        env = os.environ | {"GENODIFF_CRASH_AT": str(at)}
        words = ["sample", *map(str, flags(2)), "--threads", "1"]
        code = SERVER.run(words, env=env, cwd=here, timeout=120).returncode
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


@pytest.mark.slow
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_its_own_code_and_leaves_finished_records_alone(
    run, here, signum, code
):
    words = ["sample", "--checkpoint", str(run), "--fasta", "out.fa", "--n", "100000", "--threads",
             "1", "-q"]  # fmt: skip
    with open(here.parent / "said", "w+b") as file:
        child = SERVER.start(words, stderr=file, cwd=here)
    deadline = time.monotonic() + 120
    while not (here / "out.fa.partial").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    child.send_signal(signum)
    assert child.wait(120) == code, (here.parent / "said").read_text()
    assert {path.name for path in here.iterdir()} <= {"out.fa.partial"}


@pytest.mark.parametrize(("kind", "ending"), [("run", "fa"), ("text_run", "txt")])
def test_a_long_record_of_windows_goes_on_to_the_same_bytes(
    kind, ending, here, request, capsys, monkeypatch
):
    monkeypatch.setattr(filler, "EACH", 60)
    words = ["sample", request.getfixturevalue(kind), "-n", 2, "--length", 250, "--steps", 3, "-q"]
    succeed(capsys, *words, "-o", f"whole.{ending}")
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
