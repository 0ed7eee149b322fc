"""Scores meet their records in order, are kept, and are written beside what was read."""

import errno
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl
import pytest

from genodiff.errors import DataError, MachineError, UsageError
from genodiff.io.faidx import Genome
from genodiff.io.target import write_error
from genodiff.io.variant_source import VcfHeader
from genodiff.io.variants import Allele, VariantRecord, judge_record
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.scoring.allele_score import AlleleScore, Item
from genodiff.variants import output
from genodiff.variants.output import SortedWatch, format_lines, make_frame, scan_frame, write_frame
from genodiff.variants.records import RecordSelection
from genodiff.variants.request import ScoreRequest
from genodiff.variants.scored_variants import Judged, ScoredRecord, ScoreForm, score_records

FASTA = ">chr1\nACGTACGTACGTACGTACGT\n>chr2\nAAAACCCC\n"


def score(alleles: Iterable[Item], held: int = 3) -> Iterator[AlleleScore]:
    """The length of ref, start and of alt as a number; some are computed together."""
    group: list[Item] = []
    for allele in alleles:
        group.append(allele)
        if len(group) == held:
            yield from map(found_of, group)
            group = []
    yield from map(found_of, group)


def found_of(allele: Item) -> AlleleScore:
    assert isinstance(allele, Allele)
    value = len(allele.ref) + allele.start / 100 + len(allele.alt) / 10000
    if allele.start == 10:
        return AlleleScore(None, None, "llr", 0, 20, 1, ("not_scored", "too long", "really"))
    return AlleleScore(round(value, 4), 0.5, "llr", 0, 20, 1)


@pytest.fixture
def genome(tmp_path):
    (tmp_path / "ref.fa").write_text(FASTA)
    return Genome(tmp_path / "ref.fa")


def records() -> list[VariantRecord]:
    rows = [
        ("chr1", 3, "G", "*"), ("chr1", 3, "G", "A,<DEL>,T"), ("chr1", 4, "C", "A"),
        ("chr1", 5, "A", ""), ("chr1", 11, "g", "t"), ("chr2", 2, "AA", "A"),
        ("chr2", 5, "C", "CC"), ("chr3", 1, "A", "C"), ("chr2", 1, "A", "A[chr1:3["),
    ]  # fmt: skip
    rest = ("9", "PASS", "X=1")
    return [
        VariantRecord(i, c, p, f"id{i}", r, tuple(filter(None, a.split(","))), rest)
        for i, (c, p, r, a) in enumerate(rows, 5)
    ]


def judge(genome: Genome) -> list[list[Judged]]:
    return [judge_record(one, genome) for one in records()]


def score_all(genome: Genome) -> list[ScoredRecord]:
    judged = judge(genome)
    rows = zip(records(), judged, score_records(judged, score), strict=True)
    return [ScoredRecord(*row) for row in rows]


def text(scores: Iterable[Sequence[AlleleScore]]) -> list[list[object]]:
    return [[one.value if one.value is not None else one.flags for one in some] for some in scores]


@pytest.mark.parametrize("held", [1, 2, 3, 100])
def test_each_record_has_its_own_scores_or_reasons_however_many_are_held(genome, held):
    found = score_records(judge(genome), lambda alleles: score(alleles, held))
    assert text(found) == [
        [("spanning_deletion",)], [1.0201, ("symbolic",), 1.0201], [("ref_mismatch",)],
        [("no_alt",)], [("not_scored", "too long", "really")], [1.0], [0.0401],
        [("unknown_contig",)], [("breakend",)],
    ]  # fmt: skip


def test_the_vcf_keeps_what_was_read_and_says_why_there_is_no_score(genome):
    names = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"
    header = VcfHeader(["##fileformat=VCFv4.2", "##contig=<ID=chr1>"], names)
    form, scored = ScoreForm(genome, "nats", {"model": "abc"}), score_all(genome)
    lines = list(format_lines(scored, ".vcf", header, form))
    assert "##genodiff_score=<model=abc>" in lines
    assert lines[:2] == header.meta
    body = lines[lines.index(names) + 1 :]
    assert len(body) == len(records())
    assert body[0] == "chr1\t3\tid5\tG\t*\t9\tgd_spanning_deletion\tX=1;" + (
        "GD_FLAGS=spanning_deletion"
    )
    assert body[1] == "chr1\t3\tid6\tG\tA,<DEL>,T\t9\tPASS\tX=1;GD_SCORE=1.0201,.,1.0201;" + (
        "GD_SE=0.5,.,0.5;GD_METHOD=llr,.,llr;GD_N=1,.,1;GD_FLAGS=.,symbolic,."
    )
    assert body[3] == "chr1\t5\tid8\tA\t.\t9\tgd_no_alt\tX=1"
    assert body[4].split("\t")[6:] == [
        "gd_not_scored",
        "X=1;GD_METHOD=llr;GD_N=1;GD_FLAGS=not_scored&too_long&really",
    ]
    assert "GD_NORMAL=chr2:1:AA:A" in body[5]
    assert "GD_NORMAL=chr2:4:A:AC" in body[6]
    # What was scored is read and scored again: ours is replaced
    again = [
        VariantRecord(r.line, r.chrom, r.pos, r.id, r.ref, r.alts, tuple(line.split("\t")[5:]))
        for r, line in zip(records(), body, strict=True)
    ]
    second = VcfHeader(lines[: lines.index(names)], names)
    rescored = [row._replace(record=one) for one, row in zip(again, scored, strict=True)]
    assert list(format_lines(rescored, ".vcf", second, form)) == lines


def test_tables_have_a_row_for_each_alt(genome):
    scored, form = score_all(genome), ScoreForm(genome, "nats")
    frame = make_frame(scored, ScoreForm(genome, "bits"))
    assert frame.height == 11
    assert frame["alt"].to_list()[:4] == ["*", "A", "<DEL>", "T"]
    assert frame["score"][1] == pytest.approx(1.0201 / 0.6931471805599453)
    assert frame["score"].null_count() == 7
    assert frame["flags"].to_list()[4] == ["ref_mismatch"]
    lines = list(format_lines(scored, ".tsv", None, form))
    assert lines[1].split("\t")[:5] == ["#Chrom", "Pos", "Ref", "Alt", "RawScore"]
    assert lines[3].split("\t")[:5] == ["chr1", "3", "G", "A", "1.0201"]
    assert len(lines) == 13
    rows = [json.loads(one) for one in format_lines(scored, ".jsonl", None, form)]
    assert [row["score"] for row in rows][:3] == [None, 1.0201, None]
    assert make_frame([], form).columns == frame.columns


def test_parquet_is_written_a_group_of_rows_at_a_time(genome, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "_HELD_ROWS", 3)
    monkeypatch.setattr(output, "_ROWS", 5)
    scored, form = score_all(genome), ScoreForm(genome, "nats")
    frame, out = make_frame(scored, form), tmp_path / "o.parquet"
    write_frame(out, scan_frame(iter(scored), form))
    assert pl.read_parquet(out).equals(frame)
    whole = io.BytesIO()
    frame.write_parquet(whole, row_group_size=5)
    assert out.read_bytes() == whole.getvalue()
    write_frame(out, scan_frame([], form))
    assert pl.read_parquet(out).schema == frame.schema


def test_a_fault_while_parquet_is_written_is_told(genome, tmp_path, monkeypatch):
    out, form = tmp_path / "o.parquet", ScoreForm(genome, "nats")
    out.write_bytes(b"before")

    def break_off() -> Iterator[Any]:
        yield from score_all(genome)
        raise DataError("changed while it was being read", fix="wait")

    with pytest.raises(DataError, match="changed while"):
        write_frame(out, scan_frame(break_off(), form))

    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise write_error(out, OSError(errno.ENOSPC, "No space left on device"))

    keep = output._FaultKeeper.__init__
    monkeypatch.setattr(output._FaultKeeper, "__init__", lambda self, _: keep(self, Full()))
    with pytest.raises(MachineError, match="cannot be written: No space left"):
        write_frame(out, scan_frame([], form))
    assert out.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir() if "parquet" in one.name] == [out.name]


def test_shards_are_all_records_once():
    for n in (0, 1, 7, 100):
        cuts = [Shard(i, 8).cut(n) for i in range(1, 9)]
        assert [c for a, b in cuts for c in range(a, b)] == list(range(n))
    assert parse_shard("3/8") == Shard(3, 8)
    for wrong in ("0/8", "9/8", "3", "a/b", "3/8/2"):
        with pytest.raises(UsageError, match="no shard"):
            parse_shard(wrong)


def test_regions_choose_what_overlaps():
    chosen = RecordSelection(["chr1:4-5", "chr2:2"], {"chr1": 20, "chr2": 8}).choose(records())
    assert [(one.chrom, one.pos) for one in chosen] == [("chr1", 4), ("chr1", 5), ("chr2", 2)]


def test_a_telomere_belongs_to_the_base_beside_it():
    ends = [VariantRecord(n, "chr1", pos, ".", "N", ("<DUP>",)) for n, pos in enumerate((0, 21))]
    for region, chosen in (
        ("chr1", [0, 21]),
        ("chr1:20", [21]),
        ("chr1:1", [0]),
        ("chr1:2-19", []),
    ):
        found = RecordSelection([region], {"chr1": 20}).choose(ends)
        assert [one.pos for one in found] == chosen


def test_an_output_has_an_ending_that_is_known():
    assert ScoreRequest("run", "v.vcf", fasta="g.fa", out="a.VCF.gz").find_form("vcf") == ".vcf.gz"
    stream = ScoreRequest("run", "v.vcf", fasta="g.fa", out="-")
    assert [stream.find_form(one) for one in ("table", "bcf")] == [".tsv", ".vcf"]


def test_records_are_sorted_where_each_contig_is_one_stretch():
    for places, is_sorted in (
        ([("a", 1), ("a", 1), ("b", 1)], True),
        ([("a", 2), ("a", 1)], False),
        ([("a", 1), ("b", 1), ("a", 2)], False),
    ):
        watch = SortedWatch()
        for chrom, pos in places:
            watch.note(chrom, pos)
        assert watch.sorted is is_sorted
