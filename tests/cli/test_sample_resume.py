"""`genodiff sample` killed and run again: records are kept, and the bytes are the same."""

from pathlib import Path

import pytest

from genodiff.generate import filler
from genodiff.jobs.journal import Journal
from tests.commands import command, succeed


@pytest.mark.parametrize(("kind", "ending"), [("run", "fa"), ("text_run", "txt")])
def test_a_long_record_of_windows_goes_on_to_the_same_bytes(
    kind, ending, here, request, capsys, monkeypatch
):
    monkeypatch.chdir(here)
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
