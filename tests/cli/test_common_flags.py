"""The flags that are the same in every verb."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from cyclopts import App
from cyclopts.exceptions import CycloptsError

from genodiff.cli.common import OUTPUT, Force, ModelPath, OptionalModelPath

app = App()


@app.command
def need(run: ModelPath, *, force: Force = False) -> Any:
    return run, force


@app.command
def may(
    run: OptionalModelPath = None,
    *,
    out: Annotated[str | None, OUTPUT] = None,
) -> Any:
    return run, out


def given(*words: str) -> Any:
    return app(words, exit_on_error=False, print_error=False, result_action="return_value")


@pytest.mark.parametrize(
    "words", [["RUN"], ["--model", "RUN"], ["--checkpoint", "RUN"], ["--run", "RUN"]]
)
def test_a_model_is_named_by_position_or_by_flag(words: list[str]) -> None:
    assert given("need", *words) == (Path("RUN"), False)
    assert given("need", "--force", *words) == (Path("RUN"), True)
    assert given("may", *words) == (Path("RUN"), None)


def test_a_model_named_twice_or_not_at_all_is_refused() -> None:
    for words in (["A", "--model", "B"], ["--model", "A", "--checkpoint", "B"], []):
        with pytest.raises(CycloptsError):
            given("need", *words)
    assert given("may") == (None, None)


def test_outputs_have_short_forms() -> None:
    for out in (["-o", "-"], ["--out", "-"]):
        assert given("may", *out) == (None, "-")
