"""What every job does: it goes on, refuses, streams, plans, and its shards are the whole."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import genodiff
from genodiff.io import atomic
from genodiff.jobs.job import follow
from genodiff.jobs.journal import Journal
from tests.commands import check_refused, command, exit_code, succeed

LETTERS = "ACGTTGCANNGATTACAGGCCTATC"
TWO = ("--region", "chr2:11-20", "--region", "chr2:151-160")
VCF = """##fileformat=VCFv4.2
#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT mother child
chr1 4 . T A,C . PASS . GT 1|2 0|0
chr1 6 . G GA . . . GT 0|1 1|1
chr1 9 . N A . . . GT 0|1 0|0
chr2 19 . G T . . . GT 0|1 1|0
chr2 21 . C A . . . GT 0|1 0|1
""".replace(" ", "\t")
TABLE = "chrom,pos,ref,alt\nchr1,4,T,A\nchr1,6,G,GA\nchr2,19,G,<DEL>\nchr2,21,C,A\n"
BATCH = ("--batch-size", "2", "-q")
PLACES = ("--region", "chr1:1-8", "--region", "chr2:30-60")


class Case(NamedTuple):
    """A command of a job: its words, its output, and another request for the same output."""

    verb: str
    out: str
    more: tuple[str, ...]
    other: tuple[str, ...]
    streams: bool = True
    shards: str = ""  # the ending of shards, where it has them
    word: tuple[str, ...] = ()  # what stands behind the run
    reads: str = "--fasta"  # the flag of ref.fa, if it is read
    run: str = "run"

    def words(self, run: Path, out: str, *more: object) -> list[object]:
        run = Path("fits") if self.verb == "predict" and self.run == "run" else run
        source = [self.reads, "ref.fa"] if self.reads else []
        return [self.verb, run, *self.word, *source, "-o", out, "--threads", 1, *more]

    @property
    def ending(self) -> str:
        return "".join(Path(self.out).suffixes)


CASES = [
    Case("ism", "o.npz", ("--region", "chr1:3-9"), ("--region", "chr1:1-9")),
    Case("ism", "o.tsv", ("--region", "chr1:3-7"), ("--context", "40")),
    Case("dependencies", "o.parquet", ("--region", "chr1:3-9"), ("--region", "chr1:3-8")),
    Case("embed", "o.parquet", ("--window", "60"), ("--window", "50"), shards=".parquet"),
    Case(
        "embed", "o.npz", ("--window", "70", "--pool", "none"), ("--strand", "both"), True, ".npz"
    ),
    Case("redesign", "o.fa", (*TWO, "-n", "2", "--steps", "3"), TWO),
    Case("redesign", "o.fa", ("--max-run", "4", "-n", "2"), ("-n", "2"), reads="--template"),
    Case("sample", "o.fa", ("-n", "3", "--length", "40"), ("--seed", "2"), reads=""),
    Case("sample", "o.fa.gz", ("-n", "2", "--steps", "3"), ("-n", "3"), reads="--template"),
    Case("sample", "o.fa", (*TWO, "--steps", "3"), ("--only-filled", *TWO), reads="--template"),
    Case("sample", "o.txt", ("-n", "3", "--steps", "3"), ("-n", "4"), reads="", run="text_run"),
    Case("tracks", "o", ("--format", "npz"), ("--every", "4"), streams=False, shards=".npy"),
    Case("score", "o.tsv", ("--exact",), ("--unit", "bits"), shards=".tsv", word=("in.csv",)),
    Case("score", "o.vcf.gz", ("--haplotypes",), ("--se", "2"), shards=".vcf", word=("in.vcf",)),
    Case("score", "o.parquet", ("--method", "chain"), (), shards=".parquet", word=("in.vcf",)),
    Case("eval", "o.npy", ("--shard", "1/1", *BATCH), ("--shard", "1/2", *BATCH), reads=""),
    Case("predict", "o.csv", PLACES, ("--region", "chr2:1-20")),
    Case("predict", "o.parquet", (*PLACES, "--region", "chr2:40-60"), PLACES),
    Case("predict", "o.bed", (), ("--region", "chr2:9-190"), shards=".npy", run="labeller"),
    Case("predict", "o", (), ("--region", "chr2:9-190"), shards=".npy", run="labeller"),
]
WITH_ROWS = {"score", "predict"}
NAMES = [f"{one.verb} {one.out} {one.reads} {one.run}" for one in CASES]
DRAWS = ("redesign", "sample")
"""Their sidecars are functions of the request: they say neither when nor where."""


@pytest.fixture
def run(run, job, request):
    """The run that a case is of."""
    of_text: Path = run if job.run == "run" else request.getfixturevalue(job.run)
    return of_text


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """A fine-tuned model: a regression on k-mers."""
    folder = tmp_path_factory.mktemp("fits")
    rows = "".join(f"{LETTERS.replace('N', base) * 2},{base}\n" for base in "AC" * 9)
    (folder / "train.csv").write_text(f"sequence,label\n{rows}")
    words = ["finetune", "table", "--train", folder / "train.csv", "--test", folder / "train.csv"]
    words += ["--model", "kmer-lr", "--seeds", 1, "--out", folder / "fits", "--threads", 1, "-q"]
    assert exit_code(*words) == 0
    return folder / "fits"


@pytest.fixture(scope="module")
def labeller(tmp_path_factory, run):
    """A model that labels bases, in windows of 20."""
    folder = tmp_path_factory.mktemp("labeller")
    (folder / "g.fa").write_text(f">chr2\n{LETTERS * 8}\n")
    (folder / "a.bed").write_text("chr2\t0\t99\ta\n")
    how = {"core": 20, "context": 5, "head": "linear", "max_steps": 1}
    labels = folder / "a.bed"
    genodiff.finetune_bases(run, folder / "g.fa", out=folder / "o", classes=labels, **how)
    return folder / "o"


@pytest.fixture(params=CASES, ids=NAMES)
def job(request, tmp_path, fits, monkeypatch):
    (tmp_path / "fits").symlink_to(fits)
    (tmp_path / "ref.fa").write_text(f">chr1\n{LETTERS}\n>chr2\n{LETTERS * 8}\n")
    (tmp_path / "in.vcf").write_text(VCF)
    (tmp_path / "in.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    case: Case = request.param
    return case


def read(out: str) -> dict[str, Any]:
    """Every file of an output but its sidecar, which has times."""
    path = Path(out)
    files = path.iterdir() if path.is_dir() else [path, *path.parent.glob(f"{path.name}.*")]
    left_out = (".json", ".partial")
    return {one.name: one.read_bytes() for one in files if one.suffix not in left_out}


TORN = (b"\x05", b"\x05\0\0\0\1\2\3\4abc", b"\x03\0\0\0\1\2\3\4abc")
"""What a crash leaves of the next entry: part of its head, part of it, or other bytes."""


@pytest.mark.few(5)
def test_stopped_torn_and_without_room_for_its_files_it_goes_on_to_the_same_bytes(
    job, run, capsys, monkeypatch
):
    append, seal, appended = Journal.append, Journal.seal, list[bytes]()

    def stop(journal: Journal, entry: bytes) -> None:
        append(journal, entry)
        appended.append(entry)
        raise KeyboardInterrupt

    def work(out: str, stops: bool, fault: int) -> tuple[int, str, int]:
        """Stopped after the next entry; once all are there, one operation on files fails."""
        count = 0

        def count_operation() -> None:
            nonlocal count
            count += 1
            if count == fault:
                raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            if stops:
                patch.setattr(Journal, "append", stop)
            patch.setattr(
                Journal,
                "seal",
                lambda it: (seal(it), patch.setattr(atomic, "crash_point", count_operation)),
            )
            code, _, err = command(capsys, *job.words(run, out, *job.more))
        return code, err, count

    code, err, operations = work(job.out, False, 0)
    assert (code, operations > 1) == (0, True), err
    whole, again, stops = read(job.out), f"again{job.ending}", 0
    while (done := work(again, True, 1))[0] == 130:
        stops += 1
        assert f"{stops} finished " in done[1]
        assert f" kept in {again}.partial; run the same command again to resume" in done[1]
        with Path(f"{again}.partial").open("ab") as file:
            file.write(TORN[stops % 3])
    rows_alone = VCF.count("\nchr") if "--haplotypes" in job.more else 1
    assert stops == len(appended) > rows_alone, "it was stopped within haplotypes too"
    for fault in (0, operations // 2 + 1, operations):
        assert (done[0], "No space left" in done[1]) == (5, True), done
        assert Path(f"{again}.partial").exists()
        assert fault or not Path(again).exists()
        done = work(again, True, fault) if fault else done
    assert work(again, True, 0)[0] == 0, "no entry is made again"
    assert read(again) == {name.replace(job.out, again): data for name, data in whole.items()}
    assert not Path(f"{again}.partial").exists()


@pytest.mark.few(5)
def test_what_is_kept_of_another_request_is_refused_unless_it_starts_anew(
    job, run, capsys, monkeypatch
):
    append = Journal.append

    def stop(journal: Journal, entry: bytes) -> None:
        append(journal, entry)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stop)
        assert command(capsys, *job.words(run, job.out, *job.more))[0] == 130
    check_refused(capsys, job.words(run, job.out, *job.other), 2, "another request")
    succeed(capsys, *job.words(run, job.out, *job.other, "--fresh"))
    assert Path(job.out).exists()
    assert not Path(f"{job.out}.partial").exists()


@pytest.mark.few(5)
def test_a_foreign_output_and_foreign_entries_are_left_alone(job, run, capsys):
    if "." in job.out:
        Path(job.out).write_text("somebody's\n")
    else:
        Path(job.out).mkdir()
        Path(job.out, "theirs.txt").write_text("somebody's\n")
    before = read(job.out)
    check_refused(capsys, job.words(run, job.out, *job.more), 2, "--force")
    succeed(capsys, *job.words(run, job.out, *job.more, "--force"))
    assert read(job.out) != before
    other = f"other{job.ending}"
    Path(f"{other}.partial").write_text("somebody's\n")
    check_refused(capsys, job.words(run, other, *job.more), 2, "did not write it")


@pytest.mark.few(10)
def test_an_input_is_never_the_output(job, run, capsys):
    if not job.reads:
        pytest.skip("nothing is read")
    text = Path("ref.fa").read_bytes()
    named = f"ref.fa{job.ending}"
    if named != "ref.fa":
        Path(named).symlink_to("ref.fa")
    code, _, err = command(capsys, *job.words(run, named, *job.more, "--force"))
    assert code in (1, 2), err
    assert err.count("\n") == 1, err
    assert Path("ref.fa").read_bytes() == text


def test_entries_are_read_as_they_are_made_by_several_readers(tmp_path):
    journal = Journal(tmp_path / "entries", "digest")

    def make() -> Iterator[bytes]:
        for entry in (b"a", b"", b"c", b"d"):
            journal.append(entry)
            yield entry

    made = make()
    one, other = follow(journal, made), follow(journal, made)
    assert (next(one), journal.kept) == (b"a", 1), "the first does not wait for the last"
    assert [next(other), next(other), next(other)] == [b"a", b"", b"c"]
    assert (list(one), list(other)) == ([b"", b"c", b"d"], [b"d"])
    journal.close()


@pytest.mark.few(5)
def test_plan_sidecar_stream_and_shards_are_of_one_output(job, run, capsys, monkeypatch):
    plan: dict[str, Any] = {"files": []}
    if job.verb != "eval":  # its plan is of the whole
        with monkeypatch.context() as patch:
            patch.setattr("genodiff.jobs.machine.time_steps", lambda _: 2.0)
            patch.setattr("genodiff.generate.estimate._seconds_per_window", lambda *_: 2.0)
            before = set(Path().iterdir())
            code, out, err = command(
                capsys, *job.words(run, job.out, *job.more, "--plan", "--json")
            )
            plan = json.loads(out)
            assert (code, plan["seconds"] > 0, set(Path().iterdir())) == (0, True, before), err

    plain = job.verb not in WITH_ROWS  # what they print as JSON are the rows
    words = job.words(run, job.out, *job.more, *["--json"] * plain)
    out = succeed(capsys, *words)
    assert all(Path(file).exists() for file in plan["files"])
    beside = Path(f"{job.out}.json") if job.ending else Path(job.out, "labels.json")
    told = json.loads(out if plain else beside.read_text())
    when = ("out", "device", "argv", "seconds", "created")
    keys = ("seed", "records") if job.verb in DRAWS else when
    reads = ("fasta",) if job.reads and job.verb not in DRAWS else ()
    assert {"genodiff", *keys, *reads} <= set(told)
    assert job.verb not in DRAWS or not set(when) & set(told)
    assert told["genodiff"] == genodiff.__version__
    if not job.ending:
        assert command(capsys, *words)[0] == 0, "its own folder is written again"

    if job.streams and job.ending in (".tsv", ".csv", ".fa", ".txt"):
        before = set(Path().iterdir())
        code, out, err = command(capsys, *job.words(run, "-", *job.more))
        assert (code, out) == (0, Path(job.out).read_text()), err
        assert set(Path().iterdir()) == before, "a stream leaves nothing"
    if not job.shards:
        return
    parts = []
    for number in (1, 2, 3):
        parts.insert(0, f"part{number}{job.shards}")
        shard = ("--shard", f"{number}/3")
        succeed(capsys, *job.words(run, parts[0], *job.more, *shard))
    merged = f"merged{job.ending}"
    succeed(capsys, "merge", *parts, "-o", merged)
    assert list(read(merged).values()) == list(read(job.out).values())
