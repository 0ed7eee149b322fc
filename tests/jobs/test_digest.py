"""A request's digest: every field moves it, but for those that say that they decide no entry."""

import copy
from contextlib import ExitStack
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import pytest

import genodiff
from genodiff.jobs.job import Job
from genodiff.jobs.journal import Journal
from genodiff.jobs.options import FileRequest
from genodiff.jobs.request import Field, Request, find_named, list_fields, list_kinds
from tests.tiny_run import write_run, write_vcf

OF_ALL = {"out", "device", "fresh", "plan", "force"}
OPENED = {"run", "relatives"}
"""What opening tells: `Job.identify` has the model, which is another with other relatives."""
MAPS = {"unit", "genes", "batch_size"}
DRAWN = {"batch_size", "line_width", "sidecar", "screen", "screen_timeout"}
DECIDE_NOTHING = {
    "BasesRequest": set(),
    "ConstraintRequest": {"assembly", "email", "fdr", "formats", "maf"},
    "DependenciesRequest": MAPS,
    "EmbedRequest": {"batch_size"},
    "EvalRequest": {"baselines", "domain", "keep", "mixture", "offline"},
    "IsmRequest": MAPS,
    "PredictRequest": {"batch_size", "form", "json"},
    "RedesignRequest": {*DRAWN, "changes", "most_states", "vcf"},
    "SampleRequest": {*DRAWN, "domain", "fasta"},
    "ScoreRequest": {"allow_mismatches", "background", "batch_size", "features", "genetic_code",
                     "json", "load", "unit"},
    "TracksRequest": {"batch_size", "email", "formats", "genes", "genome", "track"},
}  # fmt: skip
"""The fields that move no entry. What is added here is tried below, in `CASES`."""


class Stub(Job[Any]):
    """A job whose request is all that decides."""

    noun = "entries"

    def open(self, stack: ExitStack) -> None: ...

    def plan(self) -> dict[str, Any]:
        return {}

    def identify(self) -> dict[str, Any]:
        return {}

    def entries(self, first: int) -> Any:
        return iter(())

    def write(self, rows: Any) -> dict[str, Any]:
        return {}


def list_requests(kind: type[Request[Any]] = FileRequest) -> list[type[Request[Any]]]:
    below = [one for each in kind.__subclasses__() for one in list_requests(each)]
    return [*([kind] if "work" in vars(kind) else []), *below]


for _name in dir(genodiff):
    getattr(genodiff, _name)  # the requests are there once their verbs are
REQUESTS = {one.__name__: one for one in list_requests() if one.__module__.startswith("genodiff.")}


def make_usual(request: type[Request[Any]]) -> Any:
    """A request with its defaults, without what `__post_init__` refuses."""
    made = object.__new__(request)
    for one in fields(request):
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        object.__setattr__(made, one.name, "none" if default is MISSING else default)
    return made


def list_moved(field: Field, usual: Any, folder: Path) -> list[Any]:
    """Other values that a field may have: of a group of fields, each of them moved."""
    kinds, option = list_kinds(field.kind), field.option
    words = [word for one in kinds if get_origin(one) is Literal for word in get_args(one)]
    if option.is_input:
        file = folder / f"{field.name}.txt"
        file.write_text(field.name)
        return [str(file), file, [file]]
    if option.group is not None:
        return [
            {one.name: moved}
            for one in list_fields(option.group)
            if one.option.decides == "entries"
            for moved in list_moved(one, None, folder)
        ]
    if bool in kinds:
        return [not usual]
    is_number = isinstance(usual, int | float) or bool({int, float} & {*kinds})
    numbers = [usual + 1 if isinstance(usual, int | float) else 64] if is_number else []
    return [*[word for word in words if word != usual][:1], *numbers] or ["moved", ["moved"]]


@pytest.mark.parametrize("name", REQUESTS)
def test_every_field_moves_the_digest_or_says_that_it_decides_no_entry(name, tmp_path):
    request = REQUESTS[name]
    usual = make_usual(request)
    before = Stub(usual)
    idle = set()
    for field in list_fields(request):
        for value in list_moved(field, getattr(usual, field.name), tmp_path):
            moved = copy.copy(usual)
            object.__setattr__(moved, field.name, value)
            object.__setattr__(moved, "device", "cpu")
            after = Stub(moved)
            if after.name_request() == before.name_request():
                idle.add(field.name)
            said = field.option.decides != "nothing" and not field.option.is_opened
            assert (after.requested != before.requested) == said, (field.name, value)
    opened = OPENED & {one.name for one in list_fields(request)}
    assert idle == OF_ALL | opened | DECIDE_NOTHING.get(name, set())


def test_the_content_of_a_file_decides_and_not_its_name(tmp_path):
    usual, said = make_usual(REQUESTS["EmbedRequest"]), []
    for name, text in (("a.fa", ">a\nA\n"), ("b.fa", ">a\nA\n"), ("a.fa", ">a\nC\n")):
        (tmp_path / name).write_text(text)
        object.__setattr__(usual, "sequences", tmp_path / name)
        said.append(Stub(copy.copy(usual)).name_request())
    assert said[0] == said[1] != said[2]


class Moved(NamedTuple):
    """A call, fields that move no entry, and what is opened that moves the digest."""

    verb: str
    how: dict[str, Any]
    idle: dict[str, Any]
    opened: dict[str, Any]


ISM = {"unit": "bits", "genes": "g.bed", "batch_size": 3, "out": "other.html"}
REGION = {"sequences": "ref.fa", "out": "o.html", "region": ["chr1:3-9"]}
VARIANTS: dict[str, Any] = {"variants": "in.vcf", "fasta": "ref.fa", "out": "o.vcf"}
CASES = [
    Moved("ism", REGION, ISM, {"run": "other", "sequences": {"chr1": "ACGTACGTTT"}}),
    Moved("dependencies", REGION, ISM, {"run": "other"}),
    Moved("embed", {"sequences": "ref.fa", "out": "o.npz"},
          {"batch_size": 3, "out": "other.parquet"}, {"run": "other"}),
    Moved("tracks", {**REGION, "out": "o", "formats": ["html"]},
          {"batch_size": 3, "email": "me@here.org", "formats": ["npz"], "out": "other",
           "genes": "g.bed", "track": ["a=a.bedgraph"]}, {"run": "other"}),
    Moved("score", VARIANTS,
          {"unit": "bits", "batch_size": 3, "features": "g.bed", "background": 100,
           "allow_mismatches": True, "out": "other.tsv"}, {"run": "other"}),
    Moved("sample", {"out": "o.fa", "n": 2, "length": 20, "steps": 3},
          {"batch_size": 1, "line_width": 7, "sidecar": "s.json", "screen": "true",
           "domain": "dna"}, {"run": "other"}),
    Moved("redesign", {"out": "o.fa", "fasta": "ref.fa", "region": ["chr2:31-40"], "steps": 3},
          {"batch_size": 1, "line_width": 7, "vcf": "other.vcf", "changes": "other.bed",
           "most_states": 1000}, {"run": "other"}),
    Moved("evaluate", {"out": "o.npy", "shard": "1/2", "max_windows": 4, "batch_size": 2},
          {"baselines": False, "mixture": False, "offline": True, "domain": "dna"},
          {"run": "other"}),
]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES, ids=[one.verb for one in CASES])
def test_what_says_so_moves_no_entry_and_what_is_opened_moves_the_digest(
    case, run, here, monkeypatch
):
    Path("ref.fa").write_text(f">chr1\n{'ACGTTGCAAGATTACAGG' * 2}\n>chr2\n{'GATTACAC' * 9}\n")
    write_vcf(Path("in.vcf"), ["chr1 4 T A", "chr1 6 G GA"])
    Path("g.bed").write_text("chr1\t0\t30\tgene\t0\t+\t0\t30\t0\t1\t30\t0\n")
    Path("a.bedgraph").write_text("chr1\t0\t30\t1.5\n")
    kept: list[bytes] = []
    append = Journal.append

    def keep(journal: Journal, entry: bytes) -> None:
        kept.append(entry)
        append(journal, entry)

    monkeypatch.setattr(Journal, "append", keep)

    def do(**how: Any) -> tuple[str, list[bytes], dict[str, Any]]:
        values = {"run": run, **case.how, "force": True, "device": "cpu", **how}
        if values["run"] == "other":
            (here / "other").mkdir(exist_ok=True)
            values["run"] = write_run(here / "other", seed=7)
        request = getattr(genodiff, case.verb).request(**values)
        request.check()
        kept.clear()
        job = find_named(request.work)(request)
        told = job.run()
        return job.digest, list(kept), told

    digest, entries, told = do()
    assert entries
    assert told["requested"].keys() >= {"region", "n", "max_windows", "window"} & case.how.keys()
    for name, value in case.idle.items():
        assert do(**{name: value})[:2] == (digest, entries), name
    for name, value in case.opened.items():
        assert do(**{name: value})[0] != digest, name
