"""Progress: what a pipe and a terminal see of it."""

import io
import logging

import pytest

from genodiff.io import progress
from genodiff.io.progress import ProgressDisplay, format_duration


class Seconds:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch):
    found = Seconds()
    monkeypatch.setattr(progress, "time", found)
    return found


@pytest.fixture(autouse=True)
def all_lines(caplog):
    caplog.set_level(logging.INFO, "genodiff")


def test_lines_in_a_pipe_come_ever_more_rarely(seconds, caplog):
    with ProgressDisplay() as display:
        for _ in range(400):
            seconds.now += 1
            display.show(f"{seconds.now - 100:.0f}")
    told = [int(line) for line in caplog.messages]
    waits = [b - a for a, b in zip([0, *told], told, strict=False)]
    assert waits[:4] == [2, 3, 5, 7]
    assert max(waits) == 60
    assert waits == sorted(waits)


def test_the_time_to_go_leaves_the_first_batch_out(seconds, caplog):
    display = ProgressDisplay()
    seconds.now += 1000
    display.show_batches(1, 11)
    seconds.now += 4
    display.show_batches(2, 11)
    assert caplog.messages == ["scored 1 of 11 batches", "scored 2 of 11 batches · 36 s to go"]


def test_a_terminal_has_a_bar_that_goes_away(monkeypatch, caplog):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressDisplay() as display:
        assert screen.getvalue() == ""
        display.show("step 3 [of] 7", 3, 7)
    assert "step 3 [of] 7" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")
    assert caplog.messages == []


def test_a_pipe_has_no_bar_where_colours_are_forced(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a notebook
    with ProgressDisplay() as display:
        display.show("step 3 of 7", 3, 7)
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("duration", "text"),
    [(-1, "0 s"), (99.4, "99 s"), (100, "2 min"), (5999, "100 min"), (11_100, "3 h 05 min")],
)
def test_durations(duration, text):
    assert format_duration(duration) == text


@pytest.mark.parametrize("closed", [True, False])
def test_a_process_without_stderr_draws_no_bar(monkeypatch, caplog, seconds, closed):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr("sys.stderr", stream if closed else None)
    with ProgressDisplay() as display:
        seconds.now += 10
        display.show("half")
    assert caplog.messages == ["half"]
