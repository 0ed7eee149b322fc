"""Embeddings: what a direct forward gives, whatever the batch and the padding; the same for both
strands; whole files.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from Bio.Seq import Seq
from Bio.SeqFeature import CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord
from tiny_run import NETWORK, genome_text, save_run, write_run

from genodiff.alphabet import DNA, reverse_complement
from genodiff.embedding.embed import Window, cut_windows, embed, make_reading
from genodiff.embedding.embedding_files import Kept, join_embeddings, write_kept
from genodiff.errors import UsageError
from genodiff.runs.model import load_model
from genodiff.runs.resolve import resolve_config
from tests import tiny_networks
from tests.commands import exit_code

LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def network(strands: str = "paired", **settings: Any) -> Any:
    return tiny_networks.network(3, **(NETWORK | {"n_layer": 3, "strands": strands} | settings))


def sequences(n: int = 15, seed: int = 0) -> list[Window]:
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        some = rng.choice(5, int(rng.integers(1, 90)), p=[0.3, 0.2, 0.2, 0.28, 0.02])
        letters = LETTERS[some].tobytes()
        out.append(Window(f"c{i}", 0, len(letters), f"c{i}", letters))
    return out


def found(
    model: Any, windows: list[Window], layers: list[int], pool: str, strand: str, size: int = 7
) -> list[np.ndarray]:
    how = make_reading(model, DNA, layers, pool, strand)
    return [array for _, array in embed(model, DNA, windows, how, batch_size=size)]


@pytest.mark.few(2)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_embeddings_equal_a_direct_forward(strands, batch_size):
    model, windows = network(strands), sequences()
    every = found(model, windows, [0, 1, 3], "none", "forward", batch_size)
    mean = found(model, windows, [3], "mean", "forward", batch_size)
    for window, one, pooled in zip(windows, every, mean, strict=True):
        ids = torch.from_numpy(DNA.encode(window.letters)).long()[None]
        with torch.no_grad():
            layers, last = model.hidden_states(ids), model.features(ids)[0]
        direct = torch.stack([layers[i][0] for i in (0, 1, 3)], 1)
        np.testing.assert_allclose(one, direct, rtol=0, atol=1e-5)
        np.testing.assert_allclose(pooled, last.mean(0), rtol=0, atol=1e-5)


def turn(windows: list[Window]) -> list[Window]:
    return [w._replace(letters=reverse_complement(w.letters)) for w in windows]


def check_strands(model: Any, layers: list[int], pool: str) -> None:
    windows = sequences(8)
    both = (found(model, some, layers, pool, "average") for some in (windows, turn(windows)))
    for given, other in zip(*both, strict=True):
        turned = other[::-1] if pool == "none" else other
        np.testing.assert_allclose(given, turned, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("strands", "alternate"), [("paired", False), ("paired", True), ("single", False)]
)
@pytest.mark.parametrize("pool", ["mean", "max", "center", "none"])
def test_the_average_over_strands_is_the_same_of_the_other_strand(strands, alternate, pool):
    check_strands(network(strands, alternate_strands=alternate), [0, 2, -1], pool)


@pytest.mark.parametrize("strands", ["paired", "single"])
def test_both_strands_are_exchanged_by_the_other_strand_and_their_mean_is_the_average(strands):
    model, windows = network(strands), sequences(4)
    both, turned = (found(model, x, [-1], "mean", "both") for x in (windows, turn(windows)))
    means = found(model, windows, [-1], "mean", "average")
    for one, two, mean in zip(both, turned, means, strict=True):
        assert one.shape == (2, 16)
        np.testing.assert_allclose(one, two[::-1], rtol=0, atol=1e-5)
        np.testing.assert_allclose(one.mean(0), mean, rtol=0, atol=1e-5)


def test_pooling_is_over_the_bases_of_the_window():
    model, windows = network("single"), sequences(5)
    bases = found(model, windows, [-1], "none", "average")
    for pool, of in (
        ("mean", lambda b: b.mean(0)), ("max", lambda b: b.max(0)),
        ("center", lambda b: (b[(len(b) - 1) // 2] + b[len(b) // 2]) / 2),
    ):  # fmt: skip
        for one, each in zip(found(model, windows, [-1], pool, "average"), bases, strict=True):
            np.testing.assert_allclose(one, of(each), rtol=0, atol=1e-5)


def test_windows_come_from_records_rows_and_regions(tmp_path):
    fasta, bed = tmp_path / "x.fa", tmp_path / "x.bed"
    fasta.write_text(">a\nACGTACGTAC\n>b\nGGGTT\n")
    bed.write_text("a\t2\t7\tfirst\nb\t0\t5\tsecond\n")

    def places(**more: Any) -> list[tuple[str, int, int, bytes]]:
        return [(w.contig, w.start, w.end, w.letters) for w in cut_windows(fasta, **more)]

    assert places() == [("a", 0, 10, b"ACGTACGTAC"), ("b", 0, 5, b"GGGTT")]
    assert places(window=4) == [("a", 0, 4, b"ACGT"), ("a", 4, 8, b"ACGT"), ("a", 8, 10, b"AC"),
                                ("b", 0, 4, b"GGGT"), ("b", 4, 5, b"T")]  # fmt: skip
    wanted = [("a", 0, 6, b"ACGTAC"), ("a", 4, 10, b"ACGTAC"), ("b", 0, 5, b"GGGTT")]
    assert places(window=6, stride=4) == wanted
    assert places(bed=bed) == [("a", 2, 7, b"GTACG"), ("b", 0, 5, b"GGGTT")]
    assert places(regions=["a:3-7", "b"]) == [("a", 2, 7, b"GTACG"), ("b", 0, 5, b"GGGTT")]
    assert [w.name for w in cut_windows(fasta, bed=bed)] == ["first", "second"]
    for wrong in ({"stride": 3}, {"bed": bed, "regions": ["a"]}):
        with pytest.raises(UsageError):
            places(**wrong)


def test_a_row_on_minus_is_cut_in_its_own_direction(tmp_path):
    fasta, bed = tmp_path / "x.fa", tmp_path / "x.bed"
    fasta.write_text(">a\nCCGATTACAC\n")
    bed.write_text("a\t2\t9\tword\t0\t-\na\t2\t9\t.\t0\t+\n")
    (minus, plus) = cut_windows(fasta, bed=bed)
    assert minus == Window("a", 2, 9, "word", b"TGTAATC", "-")
    assert plus == Window("a", 2, 9, "a:3-9", b"GATTACA", "+")
    pieces = [(w.start, w.end, w.letters) for w in cut_windows(fasta, bed=bed, window=3, stride=2)]
    assert pieces[:3] == [(6, 9, b"TGT"), (4, 7, b"TAA"), (2, 5, b"ATC")]
    assert pieces[3:] == [(2, 5, b"GAT"), (4, 7, b"TTA"), (6, 9, b"ACA")]
    annotation = tmp_path / "x.gtf"
    annotation.write_text('a\tx\tgene\t3\t9\t.\t-\t.\tgene_id "word";\n')
    assert list(cut_windows(fasta, bed=annotation, features=["gene"])) == [minus]


def annotated(path: Path) -> SeqRecord:
    """A record with a spliced gene on the - strand, also written to `path` as GenBank."""
    made = SeqRecord(Seq("ACGTTGCAAGGATTACACCA"), id="c.1", name="c")
    made.annotations["molecule_type"] = "DNA"
    place = CompoundLocation([SimpleLocation(12, 16, -1), SimpleLocation(2, 8, -1)])
    made.features = [SeqFeature(place, type="CDS", qualifiers={"gene": ["x"]})]
    path.write_text(made.format("genbank"))
    return made


def test_windows_come_from_features_and_from_sequences_in_memory(tmp_path):
    record = annotated(tmp_path / "x.gb")
    whole = record.features[0].extract(record.seq)
    for given in (record, [record], tmp_path / "x.gb", str(tmp_path / "x.gb")):
        (window,) = cut_windows(given, features=["CDS"])
        assert window == Window("c.1", 2, 16, "x", bytes(whole), "-")
        pieces = list(cut_windows(given, features=["CDS=x"], window=4))
        assert [(w.start, w.end) for w in pieces] == [(12, 16), (4, 8), (2, 4)]
        assert b"".join(w.letters for w in pieces) == bytes(whole)
        (region,) = cut_windows(given, regions=["c.1:3-8"])
        assert region.letters == bytes(record.seq)[2:8]
    assert [w.letters for w in cut_windows(["ACGT", record])] == [b"ACGT", bytes(record.seq)]
    with pytest.raises(UsageError, match="--features exclude"):
        list(cut_windows(record, features=["CDS"], regions=["c.1"]))


@pytest.mark.parametrize("pool", ["mean", "none"])
@pytest.mark.parametrize(("layers", "strand"), [([-1], "average"), ([0, 2, 3], "both")])
def test_all_formats_hold_the_same_numbers(tmp_path, pool, layers, strand):
    spliced = cut_windows(annotated(tmp_path / "x.gb"), features=["CDS"])
    odd = Window("c,9", 0, 1, 'a "name"', b"A", "-")
    model, windows = network(), [*sequences(), *spliced, odd]
    how = make_reading(model, DNA, layers, pool, strand)
    shape = how.shape(model.d_out, True)
    wanted = found(model, windows, layers, pool, strand)
    flat = np.concatenate(wanted) if pool == "none" else np.stack(wanted)
    offsets = np.cumsum([0, *(len(w.letters) for w in windows)])
    for kind in ("npz", "parquet") if pool == "none" else ("npz", "parquet", "csv", "tsv"):
        path = tmp_path / f"e.{kind}"
        rows = embed(model, DNA, windows, how, batch_size=4)
        written = write_kept(path, ((Kept.of(window), row) for window, row in rows), how, shape)
        assert written.shape == flat.shape
        assert (written.windows, written.bases) == (len(windows), int(offsets[-1]))
    with np.load(tmp_path / "e.npz") as npz:
        np.testing.assert_allclose(npz["embeddings"], flat, rtol=0, atol=1e-6)
        for name in ("contig", "end", "name", "strand"):
            assert npz[name].tolist() == [getattr(w, name) for w in windows]
        assert ("offsets" in npz.files) is (pool == "none")
        if pool == "none":
            assert npz["offsets"].tolist() == offsets.tolist()
    table = pl.read_parquet(tmp_path / "e.parquet")
    for name in ("contig", "name", "strand"):
        assert table[name].to_list() == [getattr(w, name) for w in windows]
    columns = [name for name in table.columns if name.startswith("embedding")]
    flatter = flat.reshape(len(flat), -1, flat.shape[-1])
    for i, name in enumerate(columns):
        values = table[name].explode() if pool == "none" else table[name]
        np.testing.assert_allclose(np.array(values.to_list()), flatter[:, i], rtol=0, atol=1e-6)
    first = "embedding" if len(layers) == 1 else "embedding_forward_layer0"
    assert columns[0] == first
    if pool == "none":
        return
    for kind, separator in (("csv", ","), ("tsv", "\t")):
        table = pl.read_csv(tmp_path / f"e.{kind}", separator=separator)
        numbers = table[:, 5:].to_numpy().astype(np.float32)
        np.testing.assert_allclose(numbers, flat.reshape(len(flat), -1), rtol=0, atol=1e-6)
        assert table["name"].to_list() == [w.name for w in windows]
        assert (table.columns[4], table.columns[5]) == ("strand", f"{first}_0")
    told = {"layers": how.layers, "pool": pool, "strand": strand, "shape": [len(windows), *shape]}
    for kind in ("npz", "parquet", "csv", "tsv"):
        join_embeddings(tmp_path / f"joined.{kind}", [tmp_path / f"e.{kind}"], told, kind)
    for kind in ("csv", "tsv"):
        assert (tmp_path / f"joined.{kind}").read_bytes() == (tmp_path / f"e.{kind}").read_bytes()
    with np.load(tmp_path / "e.npz") as one, np.load(tmp_path / "joined.npz") as other:
        assert all(np.array_equal(one[name], other[name]) for name in one.files)
    one, other = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("joined", "e"))
    assert one.equals(other)


def test_layers_regions_and_features_of_a_run_are_those_that_were_asked_for(tmp_path, capsys):
    run, out = write_run(tmp_path), tmp_path / "e.npz"
    annotated(tmp_path / "x.gb")

    def call(fasta: str, *more: object) -> dict[str, Any]:
        words = ["embed", run, "--fasta", tmp_path / fasta, "--out", out, "--threads", 1, "--json"]
        assert exit_code(*words, *more) == 0
        return json.loads(capsys.readouterr().out)

    told = call("genome.fa", "--window", 500, "--layer", 0, "--layer", -1)
    assert (told["shape"], told["axes"]) == ([30, 2, 16], ["window", "layer", "channel"])
    assert told["checkpoint"] == load_model(run).digest
    told = call("x.gb", "--features", "CDS")
    assert (told["windows"], told["bases"], told["requested"]["features"]) == (1, 10, ["CDS"])
    both = ("--region", "c1:1-100", "--regions", "c2:1-100", "--strand", "both", "--pool", "none")
    call("genome.fa", *both)
    with np.load(out) as npz:
        assert npz["embeddings"].shape == (200, 2, 16)


@pytest.mark.parametrize("preset", ["dit-470k", "dimamba-470k"])
def test_other_networks_embed_too(tmp_path, preset):
    fasta = tmp_path / "genome.fa"
    fasta.write_text(genome_text())
    given = {"recipe": "own", "fasta": str(fasta), "preset": preset}
    model = load_model(save_run(tmp_path / "run", resolve_config(given))).backbone
    alone, both = (found(model, sequences(6), [-1], "mean", "average", n) for n in (1, 6))
    for one, other in zip(alone, both, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    check_strands(model, [0, -1], "mean")


def test_a_window_that_is_too_long_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("genodiff.embedding.embed.LONGEST", 8)
    (tmp_path / "a.fa").write_text(">a\nACGTACGTAC\n")
    for window in (None, 9):
        with pytest.raises(UsageError, match=r"a:1-10 has 10 bases.*; cut it with --window 8"):
            list(cut_windows(tmp_path / "a.fa", window=window))
    assert len(list(cut_windows(tmp_path / "a.fa", window=8))) == 2


def test_a_feature_over_the_origin_of_a_circle_is_read_across_it(tmp_path):
    letters = "ACGTTGCATGCCGATAGGCT" * 5
    (tmp_path / "p.fa").write_text(f">p\n{letters}\n")
    rows = "p\tx\tregion\t1\t100\t.\t+\t.\tID=p;Is_circular=true\n"
    (tmp_path / "p.gff3").write_text(rows + "p\tx\tCDS\t91\t112\t.\t-\t0\tID=c\n")
    (one,) = cut_windows(tmp_path / "p.fa", bed=tmp_path / "p.gff3", features=["CDS"])
    around = (letters[90:] + letters[:12]).encode()
    turned = around.translate(bytes.maketrans(b"ACGT", b"TGCA"))[::-1]
    assert (one.start, one.end, one.strand, one.letters) == (90, 112, "-", turned)
    pieces = list(cut_windows(tmp_path / "p.fa", bed=tmp_path / "p.gff3", features=["CDS"],
                              window=10))  # fmt: skip
    assert b"".join(piece.letters for piece in pieces) == turned
