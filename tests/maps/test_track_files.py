"""Tracks as files: each is read again by another program, and has what was written."""

import gzip
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyBigWig
import pytest
from test_track_reader import letters
from worlds import uneven_chain

from genodiff.alphabet import DNA
from genodiff.errors import UsageError
from genodiff.jobs.shards import Shard
from genodiff.maps.map_regions import Interval, list_intervals
from genodiff.maps.track_files import TrackContent, name_assembly, write_format
from genodiff.maps.track_format import (
    FORMATS,
    MOST_DRAWN,
    check_hub_options,
    check_track_output,
    choose_formats,
)
from genodiff.maps.track_hub import HubRequest, list_tracks, write_hub
from genodiff.maps.track_reader import TrackReading, TrackRun, read_pieces
from genodiff.maps.track_values import TRACKS, BaseTracks, count_tracks, join_intervals
from genodiff.maps.tracks import _draw, describe_reading
from genodiff.scoring.variant_windows import HeldContigs
from tests.hub_check import check_hub
from tests.scoring.test_variant_scores import make_reader

LETTERS = {"chr10": letters(61, 1), "chr2": letters(40, 2, "ACGTNacgtR")}
GENOME = HeldContigs({**LETTERS, "b": b"NNNNNNNNNN", "Z": letters(5, 3)})
INTERVALS = [("Z", 0, 5), ("b", 2, 7), ("chr10", 0, 20), ("chr10", 33, 61), ("chr2", 3, 38)]
TOLD = {"model": "runs/x", "checkpoint": "0123456789ab", "context": 16, "every": None}


@pytest.fixture(scope="module")
def blocks():
    run = TrackRun.make(GENOME, reversed(INTERVALS), 16, None)
    assert run.intervals == INTERVALS
    reader, how = make_reader(uneven_chain().denoiser), TrackReading(run.context)
    found = [p.tobytes() for _, p in read_pieces(reader, GENOME, DNA, run.pieces(), how)]
    return lambda: run.blocks(found)


def hold(
    blocks: Callable[[], Iterable[BaseTracks]],
    contigs: Mapping[str, int] = GENOME.contigs,
    intervals: Sequence[Interval] = tuple(INTERVALS),
) -> TrackContent:
    """What a format writes; a page is of all intervals, and a picture of chr10:34-61."""

    def draw(path: Path) -> None:
        joined = list(join_intervals(blocks(), intervals))
        some = joined if path.suffix == ".html" else joined[3:4]
        _draw(path, some, {**TOLD, "company": None}, [[] for _ in some])

    return TrackContent(blocks, contigs, intervals, draw)


def values(block: BaseTracks, name: str) -> list[float]:
    """The definition, base by base."""
    found, (kind, _, base) = [], name.partition("_")
    for letter, row in zip(block.letters, block.p.tolist(), strict=True):
        p, entropy = row["ACGT".find(base or letter)], -sum(x * math.log2(x) for x in row if x > 0)
        values = {"p": p, "logo": p * (2 - entropy), "entropy": entropy}
        values |= {"information": 2 - entropy, "surprisal": -math.log2(p) if p > 0 else math.nan}
        found.append(math.nan if letter == "N" else values[kind])
    return found


@pytest.mark.parametrize("name", TRACKS)
def test_a_track_is_its_definition(name, blocks):
    for block in blocks():
        found = TRACKS[name].compute(block)
        assert found.dtype == np.float32
        assert found == pytest.approx(values(block, name), abs=1e-6, nan_ok=True)


def test_blocks_are_the_intervals_in_order(blocks):
    joined = list(join_intervals(blocks(), INTERVALS))
    assert [(one.contig, one.start, one.end) for one in joined] == INTERVALS
    for one in joined:
        fetched = GENOME.fetch(one.contig, one.start, one.end).decode().upper()
        assert one.letters == fetched.replace("R", "N")
        assert one.known.tolist() == [letter != "N" for letter in one.letters]
    tally = count_tracks(blocks())
    assert tally["bases"] == sum(end - start for _, start, end in INTERVALS)
    assert tally["read"] == sum(len(one.letters) - one.letters.count("N") for one in joined)
    wanted = np.concatenate([one.information for one in joined])
    assert tally["mean_information_bits"] == pytest.approx(float(np.nanmean(wanted)), abs=1e-6)


def test_bigwigs_read_again_have_every_value_and_no_other(tmp_path, blocks):
    write_format(tmp_path, "bigwig", hold(blocks))
    read: dict[str, dict[str, np.ndarray]] = {}
    for name in TRACKS:
        with pyBigWig.open(str(tmp_path / f"{name}.bw")) as file:
            assert file.chroms() == GENOME.contigs
            read[name] = {
                contig: np.array(file.values(contig, 0, length), np.float64)
                for contig, length in GENOME.contigs.items()
            }
            assert file.intervals("b") is None
    wanted = {c: np.full((n, len(TRACKS)), np.nan) for c, n in GENOME.contigs.items()}
    for block in blocks():
        for column, kind in enumerate(TRACKS.values()):
            wanted[block.contig][block.start : block.end, column] = kind.compute(block)
    for contig in GENOME.contigs:
        found = np.stack([read[name][contig] for name in TRACKS], 1)
        assert np.array_equal(found, wanted[contig], equal_nan=True)
        information = read["information"][contig]
        assert np.isnan(information[[x in b"Nn" for x in GENOME.letters[contig]]]).all()
    assert np.isnan(read["p_A"]["chr10"][20:33]).all()
    assert not np.isnan(read["p_A"]["chr10"][33:]).any()


def test_long_stretches_are_whole_in_a_bigwig(tmp_path):
    rng = np.random.default_rng(0)
    n = 5000
    p = rng.dirichlet(np.ones(4), n).astype(np.float32)
    p[1234] = np.nan
    one = BaseTracks("c", 3, "A" * 1234 + "N" + "A" * (n - 1235), p)
    write_format(tmp_path, "bigwig", hold(lambda: [one], {"c": n + 10}, [("c", 3, n + 3)]))
    with pyBigWig.open(str(tmp_path / "p_A.bw")) as file:
        assert np.array_equal(file.values("c", 3, n + 3), p[:, 0], equal_nan=True)
        assert np.isnan(file.values("c", n + 3, n + 10)).all()
        mean = file.stats("c", 3, 1003, exact=True)[0]
        assert mean == pytest.approx(float(p[:1000, 0].mean()), abs=1e-6)


@pytest.mark.parametrize("form", ["bedgraph", "bedgraph.gz"])
def test_bedgraphs_have_a_line_for_each_value(form, tmp_path, blocks):
    write_format(tmp_path, form, hold(blocks))
    for name in TRACKS:
        path = tmp_path / f"{name}.bedGraph{'.gz' * form.endswith('gz')}"
        data = path.read_bytes()
        text = gzip.decompress(data).decode() if form.endswith("gz") else data.decode()
        rows = [line.split("\t") for line in text.splitlines()]
        wanted = [
            (block.contig, at, value)
            for block in blocks()
            for at, value in enumerate(values(block, name), block.start)
            if not math.isnan(value)
        ]
        assert [(c, int(s), int(e)) for c, s, e, _ in rows] == [(c, s, s + 1) for c, s, _ in wanted]
        assert [float(v) for *_, v in rows] == pytest.approx([v for *_, v in wanted], abs=2e-6)


def test_npz_has_all_bases_and_parquet_those_that_were_read(tmp_path, blocks):
    for form in ("npz", "parquet"):
        write_format(tmp_path, form, hold(blocks))
    arrays = np.load(tmp_path / "tracks.npz")
    frame = pl.read_parquet(tmp_path / "tracks.parquet")
    joined = list(join_intervals(blocks(), INTERVALS))
    for number, one in enumerate(joined):
        part = slice(*arrays["offsets"][number : number + 2])
        place = arrays["contig"][number], arrays["start"][number], arrays["end"][number]
        assert place == INTERVALS[number]
        assert np.array_equal(arrays["p"][part], one.p, equal_nan=True)
        assert arrays["letters"][part].tobytes().decode() == one.letters
        for name in ("entropy", "information", "surprisal"):
            assert np.array_equal(arrays[name][part], getattr(one, name), equal_nan=True)
    known = ~np.isnan(arrays["p"][:, 0])
    assert frame.height == known.sum()
    for column, base in enumerate("ACGT"):
        assert np.array_equal(frame[f"p_{base}"].to_numpy(), arrays["p"][known, column])
    assert np.array_equal(frame["surprisal"].to_numpy(), arrays["surprisal"][known])
    for contig, pos, ref in frame.select("contig", "pos", "ref").iter_rows():
        assert GENOME.letters[contig].upper()[pos - 1 : pos].decode() == ref


BEGINS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.mark.few(2)
@pytest.mark.parametrize("form", BEGINS)
def test_what_is_drawn_is_of_its_kind_and_the_same_bytes_again(form, tmp_path, blocks):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_format(tmp_path / name, form, hold(blocks))
        files = sorted(one.name for one in (tmp_path / name).iterdir())
        assert files == sorted(FORMATS[form]().list_files())
    for file in files:
        data = (tmp_path / "one" / file).read_bytes()
        assert data.startswith(BEGINS[form]), file
        assert data == (tmp_path / "two" / file).read_bytes() != b"", file


@pytest.mark.parametrize("genome", [None, "hg38"])
def test_a_hub_has_what_hubcheck_asks_for(genome, tmp_path, blocks):
    write_format(tmp_path, "bigwig", hold(blocks))
    request = HubRequest(genome, "my_genome", "a@b.org", TOLD["checkpoint"], INTERVALS[0])  # type: ignore[arg-type]
    write_hub(tmp_path, GENOME, request, describe_reading(TOLD), TRACKS)
    tracks = check_hub(tmp_path)
    urls = {one["bigDataUrl"] for one in tracks.values() if "bigDataUrl" in one}
    assert urls == {f"{name}.bw" for name in TRACKS}
    logo = tracks["genodiff_logo"]
    assert logo["aggregate"] == "stacked"
    assert (logo["logo"], logo["viewLimits"], logo["autoScale"]) == ("on", "0:2", "off")
    assert (tmp_path / "my_genome.2bit").exists() == (genome is None)
    said = (tmp_path / "genomes.txt").read_text()
    assert said.startswith(f"genome {genome or 'my_genome'}\n")


def test_an_assembly_is_called_after_its_file():
    for path, wanted in (
        ("a/sacCer3.fa.gz", "sacCer3"), ("my genome.v2.fasta", "my_genome_v2"), (None, "sequences"),
        ("..fa", "genome"),
    ):  # fmt: skip
        assert name_assembly(path) == wanted
    assert len({one["track"] for one in list_tracks("x")}) == len(TRACKS) + 2


def test_shards_are_all_pieces_once():
    whole = list(TrackRun.make(GENOME, INTERVALS, 16, None).pieces())
    for of in (1, 2, 5, len(whole)):
        parts = [TrackRun.make(GENOME, INTERVALS, 16, Shard(i, of)) for i in range(1, of + 1)]
        assert [piece for one in parts for piece in one.pieces()] == whole
        counts = [one.count_evaluations(TrackReading(16)) for one in parts]
        assert sum(bases for bases, _ in counts) == parts[0].bases
    with pytest.raises(UsageError, match="none of"):
        TrackRun.make(GENOME, [("Z", 0, 1)], 16, Shard(1, 2))


def test_intervals_are_regions_rows_of_any_strand_or_the_whole_genome(tmp_path, caplog):
    assert list_intervals(GENOME) == [(name, 0, n) for name, n in GENOME.contigs.items()]
    assert list_intervals(GENOME, ["chr2:3-5", "Z"]) == [("chr2", 2, 5), ("Z", 0, 5)]
    (tmp_path / "x.bed").write_text("chr2\t2\t5\nZ\t0\t5\n")
    assert list_intervals(GENOME, (), tmp_path / "x.bed") == [("chr2", 2, 5), ("Z", 0, 5)]
    with pytest.raises(UsageError, match="exclude"):
        list_intervals(GENOME, ["Z"], tmp_path / "x.bed")
    (tmp_path / "x.bed").write_text("chr2\t2\t5\tx\t0\t-\nZ\t0\t5\ty\t0\t+\n")
    assert list_intervals(GENOME, (), tmp_path / "x.bed") == [("chr2", 2, 5), ("Z", 0, 5)]
    assert "1 row on -; the strand column is not used: tracks run along" in caplog.text


def test_names_and_formats_that_cannot_be_meant_are_refused():
    assert choose_formats(None, 10) == ("bigwig", "html")
    assert choose_formats(None, MOST_DRAWN + 1) == ("bigwig",)
    assert choose_formats(["html", "npz", "npz"], 10) == ("npz", "html")
    for check, given in (
        (choose_formats, (["bigWig"], 1)), (choose_formats, (["html"], MOST_DRAWN + 1)),
        (check_hub_options, ("hg 38", "a@b.c")), (check_hub_options, ("hg38", "a b")),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            check(*given)
    for out, shard in (("-", False), ("x.bw", False), ("x", True)):
        with pytest.raises(UsageError):
            check_track_output(out, shard=shard)


def test_a_bedgraph_may_have_odd_names(tmp_path):
    p = np.full((1, 4), 0.25, np.float32)
    one = BaseTracks("HLA-A*01:01", 7, "C", p)
    content = hold(lambda: [one], {"HLA-A*01:01": 9}, [("HLA-A*01:01", 7, 8)])
    write_format(tmp_path, "bedgraph", content)
    found = (tmp_path / "surprisal.bedGraph").read_text()
    assert found == "HLA-A*01:01\t7\t8\t2.000000\n"
