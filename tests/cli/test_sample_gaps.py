"""`genodiff sample --template --bed`: only these bases are filled, and all others are kept."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tiny_run import SEQ_LEN, write_fasta

from genodiff.generate import dna_drawing
from genodiff.generate.infill import Gap, merge_gaps, plan_rounds, read_gaps, split_contig
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta

SIZES = {"a": 900, "b": 500, "c": 70, "d": 300}


def genome(seed: int = 3) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    letters = np.frombuffer(b"ACGTACGTACGTacgtNnRY", np.uint8)
    return {name: rng.choice(letters, n).tobytes() for name, n in SIZES.items()}


def read_genome(path: Path) -> dict[str, bytes]:
    return {record.name: record.sequence for record in read_fasta(path)}


GAPS = [
    ("a", 0, 10),  # at the left end
    ("a", 100, 100 + 3 * SEQ_LEN),  # longer than the window
    ("a", 350, 352),
    ("a", 351, 380),  # overlaps the one before
    ("a", 890, 900),  # at the right end
    ("a", 400, 401),
    ("c", 0, 70),  # a whole contig
    ("b", 200, 220),
    ("b", 200, 220),  # twice
]
ROWS = "".join(f"{contig}\t{start}\t{end}\n" for contig, start, end in reversed(GAPS))


def masked(contigs: dict[str, bytes]) -> dict[str, bytes]:
    """As a user would do it by hand: ? at the gaps, where lower case stood n."""
    found = {}
    for name, text in contigs.items():
        letters = bytearray(text)
        for contig, start, end in GAPS:
            if contig == name:
                letters[start:end] = bytes(
                    ord("n") if c & 32 else ord("N") for c in text[start:end]
                )
        found[name] = bytes(letters)
    return found


def test_it_is_what_masking_by_hand_gives_where_no_other_n_stands(run, sample, here):
    plain = {k: v.translate(bytes.maketrans(b"NnRY", b"AaGT")) for k, v in genome().items()}
    write_fasta(here / "in.fa", plain)
    write_fasta(here / "hand.fa", masked(plain))
    (here / "gaps.bed").write_text(ROWS)
    words = (run, "--steps", 5, "--n", 2)
    assert sample(*words, "--template", "hand.fa", "--fasta", "one.fa")[0] == 0
    code, _, err = sample(*words, "--template", "in.fa", "--bed", "gaps.bed", "--fasta", "two.fa")
    assert code == 0, err
    assert (here / "one.fa").read_bytes() == (here / "two.fa").read_bytes()
    told = [json.loads((here / f"{name}.fa.json").read_text()) for name in ("one", "two")]
    assert told[0]["records"] == told[1]["records"]
    assert told[0]["evaluations"] == told[1]["evaluations"]


def test_every_other_letter_is_kept_and_the_bytes_do_not_depend_on_the_batch(run, sample, here):
    before = genome()
    write_fasta(here / "in.fa", before)
    (here / "gaps.bed").write_text(ROWS)
    words = (run, "--steps", 5, "--template", "in.fa", "--bed", "gaps.bed")
    for name, size in (("1.fa", 1), ("2.fa", 3), ("3.fa.gz", 64)):
        code, _, err = sample(*words, "-o", name, "--batch-size", size)
        assert code == 0, err
    after = read_genome(here / "1.fa")
    assert (here / "2.fa").read_bytes() == (here / "1.fa").read_bytes()
    assert read_genome(here / "3.fa.gz") == after
    assert {k: len(v) for k, v in after.items()} == SIZES
    open_here = {(c, i) for c, start, end in GAPS for i in range(start, end)}
    for name, text in before.items():
        for i, (old, new) in enumerate(zip(text, after[name], strict=True)):
            if (name, i) not in open_here:
                assert old == new, (name, i)
            else:
                assert new in b"ACGTacgt", (name, i)
                assert new & 32 == old & 32
    told = json.loads((here / "1.fa.json").read_text())
    assert [r["filled"] for r in told["records"]] == [
        len({i for c, i in open_here if c == name}) for name in SIZES
    ]
    assert told["bed"] == "gaps.bed"


def test_only_the_filled_regions_have_headers_that_count_from_1_in_the_given_order(
    run, sample, here
):
    write_fasta(here / "in.fa", genome())
    (here / "gaps.bed").write_text(ROWS)
    words = (run, "--steps", 5, "--template", "in.fa", "--bed", "gaps.bed")
    assert sample(*words, "--fasta", "whole.fa")[0] == 0
    assert sample(*words, "--fasta", "some.fa", "--only-filled")[0] == 0
    whole = read_genome(here / "whole.fa")
    wanted = list(dict.fromkeys(reversed(GAPS)))
    some = list(read_fasta(here / "some.fa"))
    assert [r.name for r in some] == [f"{c}:{start + 1}-{end}" for c, start, end in wanted]
    assert [r.sequence for r in some] == [whole[c][start:end] for c, start, end in wanted]


def test_region_strings_are_counted_from_1_with_both_ends(run, sample, here):
    write_fasta(here / "in.fa", genome())
    (here / "gaps.bed").write_text("a\t99\t200\nd\t0\t5\n")
    words = (run, "--steps", 3, "--template", "in.fa")
    assert sample(*words, "--bed", "gaps.bed", "--fasta", "1.fa")[0] == 0
    regions = ("--region", "a:100-200", "--region", "d:1-5")
    assert sample(*words, *regions, "--fasta", "2.fa")[0] == 0
    assert (here / "1.fa").read_bytes() == (here / "2.fa").read_bytes()


def test_a_genome_is_read_around_its_gaps_and_copied_in_pieces(run, sample, here, monkeypatch):
    write_fasta(here / "in.fa", {"x": b"ACGT" * 50_000})
    monkeypatch.setattr(dna_drawing, "_CHUNK", 1000)
    asked: list[int] = []
    fetch = dna_drawing.Genome.fetch

    def spy(self: object, contig: str, start: int, end: int) -> bytes:
        asked.append(end - start)
        return fetch(self, contig, start, end)  # type: ignore[arg-type]

    monkeypatch.setattr(dna_drawing.Genome, "fetch", spy)
    words = (run, "--steps", 3, "--template", "in.fa", "--region", "x:100001-100020")
    assert sample(*words, "--fasta", "some.fa", "--only-filled")[0] == 0
    assert sum(asked) <= SEQ_LEN + 20
    asked.clear()
    assert sample(*words, "--fasta", "whole.fa")[0] == 0
    assert max(asked) <= 1000
    after = read_genome(here / "whole.fa")["x"]
    assert len(after) == 200_000
    assert after[:100_000] + after[100_020:] == b"ACGT" * 49_995


@pytest.mark.parametrize("seed", range(20))
def test_stretches_are_the_windows_of_the_whole_contig_cut_where_none_overlap(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(50, 2000))
    starts = rng.integers(0, length, 12)
    gaps = [Gap("x", int(s), min(length, int(s + rng.integers(1, 120)))) for s in starts]
    merged = merge_gaps(gaps)["x"]
    mask = np.zeros(length, bool)
    for gap in gaps:
        mask[gap.start : gap.end] = True
    found = list(split_contig("x", merged, length, 64, 32))
    assert [window for s in found for window in s.rounds] == plan_rounds(mask, 64, 32)
    assert [gap for s in found for gap in s.gaps] == merged
    for before, after in pairwise(found):
        assert before.end <= after.start
    for s in found:
        assert (s.mask() == mask[s.start : s.end]).all()


def test_the_strand_of_a_row_changes_nothing_and_is_told(tmp_path, caplog):
    write_fasta(tmp_path / "g.fa", {"a": b"CCGATTACAC"})
    (tmp_path / "r.bed").write_text("a\t2\t9\t.\t0\t-\n")
    with Genome(tmp_path / "g.fa") as opened:
        assert read_gaps(opened, str(tmp_path / "r.bed"), ["a:1-2"]) == [
            Gap("a", 2, 9),
            Gap("a", 0, 2),
        ]
    assert "1 row on -; the strand column is not used: bases are filled in place" in caplog.text


@pytest.mark.parametrize("by", ["template", "region"])
def test_records_without_a_gap_keep_their_headers_and_the_summary_says_what_was_filled(
    run, sample, here, by
):
    middle = "NNN" if by == "template" else "ACG"
    (here / "in.fa").write_text(f">a of one\nACGTACGT\n>b of two\nACGT{middle}TT\n>c\nACGT\n")
    region = () if by == "template" else ("--region", "b:5-7")
    words = (run, "--template", "in.fa", *region, "--steps", 3, "-o", "o.fa")
    code, _, err = sample(*words)
    assert code == 0, err
    assert "o.fa: 3 records, 3 of 21 bases filled, " in err
    a, b, c = (here / "o.fa").read_text().split(">")[1:]
    assert (a, c) == ("a of one\nACGTACGT\n", "c\nACGT\n")
    assert b.startswith("b length=9 seed=1 sampler=")
    assert b.split("\n")[0].endswith(" of two")


def test_a_genome_given_as_fasta_is_the_template_of_regions(run, sample, here):
    (here / "in.fa").write_text(">a\nACGTACGTACGT\n")
    (here / "gap.bed").write_text("a\t4\t7\n")
    for flag, out in (("--fasta", "one.fa"), ("--template", "two.fa")):
        code, _, err = sample(run, flag, "in.fa", "--bed", "gap.bed", "--steps", 3, "-o", out)
        assert code == 0, err
    assert (here / "one.fa").read_bytes() == (here / "two.fa").read_bytes()
    assert (here / "in.fa").read_text() == ">a\nACGTACGTACGT\n"
    code, _, err = sample(run, "--fasta", "in.fa", "--steps", 3, "-o", "three.fa")
    assert code == 2
    assert "a genome to fill is read with --template in.fa" in err
