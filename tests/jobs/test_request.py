"""Requests: each option is written once, and is judged, signed and explained from there."""

import inspect
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from annotated_types import Ge, Gt

import genodiff
from genodiff.errors import UsageError
from genodiff.jobs.options import FileRequest, print_plan
from genodiff.jobs.request import Option, Request, list_fields, make_function, method
from tests.jobs.test_digest import list_requests


@dataclass(frozen=True, kw_only=True)
class CountRequest(Request[int]):
    """Count words.

    They are counted one by one.
    """

    work: ClassVar[str] = f"{__name__}:count"

    word: Annotated[str, Option("The word.")] = field(kw_only=False)
    times: Annotated[int, Ge(1), Option("How often.")] = 1
    share: Annotated[float | None, Gt(0), Option("A share.")] = None
    unit: Annotated[Literal["bits", "nats"], Option("The unit.")] = "nats"
    files: Annotated[Sequence[str | Path] | None, Option("Files.")] = ()
    either: Annotated[str | Sequence[str], Option("One or several.")] = ""


def count(asked: CountRequest, *given: Any) -> int:
    return len(asked.word) * asked.times + len(given)


class Holder:
    count = method("count", CountRequest)


def test_a_verb_and_a_method_take_the_fields_and_answer():
    assert make_function("count", CountRequest)("abc", times=2) == 6
    assert Holder().count("abc", times=2) == 7  # the holder is given beside the request


def test_a_word_in_place_of_a_list_is_a_list_of_one(tmp_path: Path) -> None:
    assert CountRequest("abc", files="a.fa").files == ("a.fa",)
    assert CountRequest("abc", files=tmp_path).files == (tmp_path,)
    assert CountRequest("abc", files=["a.fa", "b.fa"]).files == ["a.fa", "b.fa"]
    assert CountRequest("abc", files=None, either="ab").either == "ab"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"times": 0}, "--times 0 is below 1; give 1 or more"),
        ({"times": "2"}, "--times '2' is no number; give a number"),
        ({"share": 0.0}, "--share 0.0 is not above 0; give more"),
        ({"share": float("nan")}, "--share nan is no number; give a number"),
        ({"unit": "bit"}, "no --unit 'bit'; did you mean 'bits'?"),
    ],
)
def test_a_value_outside_its_bounds_is_one_line(values, said):
    with pytest.raises(UsageError) as fault:
        CountRequest("abc", **values)
    assert str(fault.value) == said


def test_a_notebook_shows_the_signature_and_the_help_of_every_option():
    for call in (genodiff.ism, genodiff.dependencies, genodiff.tracks):
        request = call.request  # type: ignore[attr-defined]
        shown = inspect.signature(call).parameters
        assert list(shown)[:2] == ["run", "sequences"]
        assert {one.name for one in list_fields(request)} == set(shown)
        for one in list_fields(request):
            assert f"    {one.name}: {one.option.help[:20]}" in call.__doc__
            assert "Annotated" not in str(shown[one.name])


def test_every_field_of_a_request_has_help():
    for request in list_requests(Request):
        own = {one.name for one in list_fields(request)}
        assert own == set(inspect.signature(request).parameters), request


def test_a_request_is_judged_without_torch():
    code = (
        "import sys, genodiff\n"
        "try:\n    genodiff.ism('nothing', 'g.fa', out='x.tsv', batch_size=0)\n"
        "except Exception as fault:\n    print(fault)\n"
        "try:\n    genodiff.ism('nothing', 'g.fa', out='x.tsv')\n"
        "except Exception as fault:\n    print(fault)\n"
        "print({'torch', 'polars', 'numpy'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "--batch-size 0 is below 1; give 1 or more", done.stderr
    assert lines[1].startswith("nothing: is not there")
    assert lines[2] == "set()"


def test_the_inputs_of_a_request_are_the_files_that_it_reads():
    request: FileRequest = genodiff.ism.request(  # type: ignore[attr-defined]
        "run", "g.fa", out="x.html", bed="r.bed", genes="genes.gff"
    )
    assert request.list_inputs() == ["g.fa", "r.bed", "genes.gff"]


def test_a_plan_is_told_in_words_and_units(capsys):
    print_plan(
        {
            "bases": 1_000, "journal_bytes": 2_600_000, "fit_seconds": 18.0, "to_index": 2,
            "exact_evaluations": 74, "shape": [4, 118], "evaluations": 3, "evaluations_at_most": 9,
            "seconds": 2.0, "device": "cpu", "relatives": "2 genomes", "seconds_of_relatives": 60.0,
        }
    )  # fmt: skip
    wide = len("genomes to prepare")
    lines = capsys.readouterr().out.splitlines()
    rows = {line[:wide].rstrip(): line[wide + 1 :] for line in lines}
    assert rows["working file"] == "3 MB"
    assert rows["of it preparing"] == "18 s"
    assert (rows["shape"], rows["evaluations"]) == ("4 × 118", "3 to 9")
    assert rows["time"] == "about 62 s on cpu"
    assert not any("_" in name for name in rows)
