"""The flags that are the same in every verb."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from cyclopts import App
from cyclopts.exceptions import CycloptsError

from genodiff.cli.request_flags import make_command
from genodiff.jobs.options import OUT, Force, OptionalRun, Run
from genodiff.jobs.request import Option, Request

asked: list[Any] = []


class Noted(Request[None]):
    """What is asked is kept."""

    def answer(self, *given: Any) -> None:
        asked.append(self)


@dataclass(frozen=True, kw_only=True)
class Need(Noted):
    """A verb with a run."""

    run: Run = field(kw_only=False)
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class May(Noted):
    """A verb that may have one."""

    run: OptionalRun = field(default=None, kw_only=False)
    out: Annotated[str | Path | None, Option("Output.", OUT)] = None


app = App()
app.command(make_command("need", Need), name="need")
app.command(make_command("may", May), name="may")


def given(*words: str) -> Any:
    app(words, exit_on_error=False, print_error=False, result_action="return_value")
    values = vars(asked.pop())
    return tuple(values.values())


@pytest.mark.parametrize(
    "words", [["RUN"], ["--model", "RUN"], ["--checkpoint", "RUN"], ["--run", "RUN"]]
)
def test_a_model_is_named_by_position_or_by_flag(words):
    assert given("need", *words) == ("RUN", False)
    assert given("need", "--force", *words) == ("RUN", True)
    assert given("may", *words) == ("RUN", None)


def test_a_model_named_twice_or_not_at_all_is_refused():
    for words in (["A", "--model", "B"], ["--model", "A", "--checkpoint", "B"], []):
        with pytest.raises(CycloptsError):
            given("need", *words)
    assert given("may") == (None, None)


def test_outputs_have_short_forms():
    for out in (["-o", "x"], ["--out", "x"]):
        assert given("may", *out) == (None, "x")
