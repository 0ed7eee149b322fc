"""A model with relatives: what is opened, judged and fitted, and what it then says."""

import copy
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import genodiff
from genodiff.alphabet import DNA, reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.models.opening import open_language, refuse_relatives
from genodiff.runs import related_backbone
from genodiff.runs.related_backbone import RelatedBackbone
from genodiff.runs.trained_model import TrainedModel
from genodiff.scoring.masked_reader import MaskedReader, open_reader
from genodiff.scoring.plan_time import time_related_sites, time_spans
from genodiff.variants import score_job
from tests.commands import check_refused, command, succeed
from tests.tiny_run import change_base, differ, genome_text, write_run, write_vcf

IDS = np.array([*DNA.targets, DNA.mask_id])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("relatives")
    text = genome_text()
    for name, share, seed in (("near", 0.12, 2), ("far", 0.2, 3), ("strain", 0.004, 4)):
        (folder / f"{name}.fa").write_text(differ(text, share, seed))
    rows = ["path\tname\tspecies", "near.fa\tnear\tS. near", "far.fa\tfar\tS. far"]
    (folder / "two.tsv").write_text("\n".join(rows) + "\n")
    rows[1:] = rows[:0:-1]
    (folder / "turned.tsv").write_text("\n".join(rows) + "\n")
    return folder


def ask(model: TrainedModel, ids: np.ndarray) -> np.ndarray:
    """What a model says at the masks of one window."""
    (logs,) = open_reader(model).read([ids.astype(np.uint8)])
    return np.asarray(logs)


def draw_window(folder: Path, hidden: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """A window of the run's genome with masks, and its ids."""
    text = genome_text().splitlines()[1].upper().encode()[2000:2064]
    clean = IDS[[b"ACGT".index(bytes([base])) for base in text]]
    masked = np.random.default_rng(5).random(64) < hidden
    return np.where(masked, DNA.mask_id, clean), clean


def test_relatives_are_part_of_the_model_that_is_opened(run, folder):
    alone = open_language(run, "cpu")
    model = open_language(run, "cpu", [folder / "near.fa"])
    assert open_language(run, "cpu", []).digest == alone.digest != model.digest
    assert model.digest.startswith(f"{alone.digest}~")
    assert isinstance(model.backbone, RelatedBackbone)
    assert alone.backbone.relatives is None
    relatives = model.backbone.relatives
    window, clean = draw_window(folder)
    hidden = window == DNA.mask_id
    mine, related = ask(alone, window), ask(model, window)
    codes = np.array([4] * 256, np.uint8)
    codes[IDS] = range(5)
    prior = np.zeros((1, 64, 4))
    prior[0, hidden] = np.exp(mine)
    factors = relatives.weigh(codes[window][None], prior)[0, hidden]
    expected = np.exp(mine) * factors
    np.testing.assert_allclose(
        np.exp(related), expected / expected.sum(1, keepdims=True), atol=1e-6
    )
    at = np.searchsorted(IDS[:4], clean[hidden])
    gain = np.take_along_axis(related - mine, at[:, None], 1).mean()
    assert gain > 0.5  # nats: a relative of the same place says what stands there


def test_the_other_strand_has_the_complement(run, folder):
    model = open_language(run, "cpu", [folder / "near.fa", folder / "far.fa"])
    window, _ = draw_window(folder)
    complement = np.array(DNA.complement)
    there = ask(model, complement[window[::-1]])
    np.testing.assert_allclose(ask(model, window), there[::-1, ::-1], atol=1e-5)


@pytest.mark.slow
def test_order_and_company_decide_nothing(run, folder):
    one, two = (open_language(run, "cpu", [folder / f"{x}.tsv"]) for x in ("two", "turned"))
    assert one.digest == two.digest
    window, _ = draw_window(folder)
    other = np.roll(window, 7)
    reader = open_reader(one)
    together = reader.read([window.astype(np.uint8), other.astype(np.uint8)])
    np.testing.assert_array_equal(together[0], ask(two, window))
    np.testing.assert_array_equal(together[1], ask(two, other))


def test_an_unrelated_genome_is_warned_of(run, folder, tmp_path, caplog):
    letters = np.random.default_rng(5).choice(list("ACGT"), 20_000)
    (tmp_path / "other.fa").write_text(f">x\n{''.join(letters)}\n")
    model = open_language(run, "cpu", [folder / "near.fa", tmp_path / "other.fa"])
    assert len(model.relatives["genomes"]) == 2
    assert "other resembles the genome in 0." in caplog.text
    assert "near resembles" not in caplog.text


def test_strains_are_left_out_unless_they_are_wanted(run, folder, caplog):
    model = open_language(run, "cpu", [folder / "strain.fa", folder / "near.fa"])
    assert [one["name"] for one in model.relatives["genomes"]] == ["near"]
    assert "strain is left out" in caplog.text
    model = open_language(run, "cpu", [folder / "strain.fa", folder / "near.fa"], strains=True)
    assert [one["strain"] for one in model.relatives["genomes"]] == [False, True]
    with pytest.raises(DataError, match="every relative is a strain"):
        open_language(run, "cpu", [folder / "strain.fa"])


def test_a_copy_in_double_precision_shares_the_relatives(run, folder):
    model = open_language(run, "cpu", [folder / "near.fa"])
    twin = copy.deepcopy(model.backbone).double()
    assert twin.relatives is model.backbone.relatives
    xt = torch.from_numpy(draw_window(folder)[0])[None]
    with torch.no_grad():
        exact, plain = twin(xt, None).float(), model.backbone(xt, None).float()
    torch.testing.assert_close(exact, plain, rtol=0, atol=1e-4)


def test_every_verb_reads_relatives_and_names_them(run, folder, here, capsys):
    fasta, near = run.parent / "genome.fa", folder / "near.fa"
    write_vcf(Path("v.vcf"), [change_base(fasta, "c1", 2020)])
    place = ("--fasta", fasta, "--region", "c1:2001-2040")
    commands = {
        "eval.json": ("eval", run, "--max-windows", 4, "--no-baselines", "--out", "eval.json"),
        "s.tsv.json": ("score", run, "v.vcf", "--fasta", fasta, "--out", "s.tsv"),
        "i.tsv.json": ("ism", run, *place, "--out", "i.tsv"),
        "d.tsv.json": ("dependencies", run, *place, "--out", "d.tsv"),
        "t/tracks.json": ("tracks", run, *place, "--out", "t", "--format", "npz"),
        "e.npz.json": ("embed", run, "--fasta", fasta, "--region", "c1:2001-2040", "-o", "e.npz"),
        "o.fa.json": ("sample", run, "--fasta", "o.fa", "-n", 1, "--length", 40, "--steps", 4),
        "r.fa.json": ("redesign", run, *place, "--out", "r.fa", "--max-edits", 2),
    }
    for sidecar, words in commands.items():
        succeed(capsys, *words, "--relatives", near, "--threads", 1)
        told = json.loads(Path(sidecar).read_text())
        told = told[-1] if isinstance(told, list) else told
        shown = json.dumps(told)
        assert '"name": "near"' in shown, (words[0], shown[:400])
    model = genodiff.load(run, relatives=[near])
    table = (here / "s.tsv").read_text()
    frame = model.score_variants("v.vcf", fasta=fasta)
    assert f"{frame['score'][0]:.4f}"[:6] in table


def test_votes_count_relatives_and_need_them(run, folder, here, capsys):
    fasta = run.parent / "genome.fa"
    genome = fasta.read_text().splitlines()[1].upper()
    near = (folder / "near.fa").read_text().splitlines()[1]
    same = next(i for i in range(2000, 3000) if near[i] == genome[i] and genome[i] in "ACGT")
    other = next(i for i in range(2000, 3000) if near[i] != genome[i] and genome[i] in "ACGT")
    third = next(base for base in "ACGT" if base not in (genome[same], "N"))
    rows = [(same, genome[same], third), (other, genome[other], near[other])]
    rows += [(2500, genome[2500:2503], genome[2500])]
    lines = [f"c1\t{at + 1}\t{ref}\t{alt}" for at, ref, alt in sorted(rows)]
    Path("v.tsv").write_text("chrom\tpos\tref\talt\n" + "\n".join(lines) + "\n")
    words = ("score", run, "v.tsv", "--fasta", fasta, "--out", "-", "--method", "votes", "--json")
    check_refused(capsys, [*words, "--threads", 1], 2, "give --relatives")
    out = succeed(capsys, *words, "--relatives", folder / "near.fa", "--threads", 1)
    found = {one["pos"]: one for one in map(json.loads, out.splitlines())}
    assert found[same + 1]["score"] < -1 < 0 < found[other + 1]["score"]
    assert found[2501]["score"] is None
    assert "votes_are_of_one_base" in json.dumps(found[2501])


def test_embeddings_have_what_relatives_say_beside_the_networks_own(run, folder):
    alone = genodiff.load(run)
    model = genodiff.load(run, relatives=[folder / "near.fa", folder / "far.fa"])
    genome = genome_text().splitlines()[1].upper()
    windows = [genome[2000:2300], genome[2500:2630], "N" * 10]
    plain, found = alone.embed(windows, pool="none"), model.embed(windows, pool="none")
    for window, own, both in zip(windows, plain, found, strict=True):
        np.testing.assert_array_equal(both[:, :-4], own)
        told = both[:, -4:]
        np.testing.assert_allclose(told.sum(1), 1, atol=1e-5)
        same = told[:, 0].mean()
        assert same == 0 if "N" in window else same > 0.6
    (turned,) = model.embed([reverse_complement(windows[0].encode()).decode()], pool="none")
    np.testing.assert_allclose(turned[::-1, -4:], found[0][:, -4:], atol=1e-5)
    mean = model.embed(windows, pool="mean")
    np.testing.assert_allclose(mean[1], found[1].mean(0), atol=1e-5)
    with pytest.raises(UsageError, match="with relatives a window has at most 8,128 bases"):
        model.embed("ACGT" * 3000)


@pytest.mark.slow
def test_a_run_of_many_genomes_has_relatives_too(tmp_path, folder):
    rows = ["path\tname\tsplit"]
    for i, (name, split) in enumerate((("one", "train"), ("two", "valid"), ("three", "test"))):
        (tmp_path / f"{name}.fa").write_text(genome_text(i + 1).replace(">c", f">{name}"))
        rows.append(f"{name}.fa\t{name}\t{split}")
    (tmp_path / "genomes.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "near.fa").write_text(differ(genome_text(2), 0.1, 8))
    genodiff.train(
        genomes=tmp_path / "genomes.tsv", out=tmp_path / "run", max_steps=1, device="cpu",
        preset="caduceus-ps-tiny", seq_len=64, batch_size=2, validate_windows=2,
    )  # fmt: skip
    model = open_language(tmp_path / "run", "cpu", [tmp_path / "near.fa"])
    assert [one["name"] for one in model.relatives["genomes"]] == ["near"]
    with pytest.raises(DataError, match=r"the relative one holds .* of the genome itself"):
        open_language(tmp_path / "run", "cpu", [tmp_path / "one.fa"])


@pytest.mark.slow
def test_weights_alone_take_the_genome_that_a_verb_reads(tmp_path, folder, monkeypatch, caplog):
    """Strains and the genome itself are told by it, whether it is the model's own or another."""
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    run = write_run(tmp_path)
    genodiff.export_checkpoint(run, out=tmp_path / "weights", format="safetensors")
    own = tmp_path / "genome.fa"
    fasta = own.rename(tmp_path / "moved.fa")
    given = [folder / "near.fa", folder / "strain.fa"]
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "another"))
    with pytest.raises(DataError, match=r"needed for relatives.* \(--fasta\)") as fault:
        open_language(tmp_path / "weights", "cpu", given)
    assert "\n" not in str(fault.value)
    model = open_language(tmp_path / "weights", "cpu", given, fasta=fasta)
    assert [one["name"] for one in model.relatives["genomes"]] == ["near"]
    assert "strain is left out" in caplog.text
    assert "as the target genome" not in caplog.text  # it is the model's own

    other = tmp_path / "other.fa"
    other.write_text(differ(genome_text(), 0.3, 7))
    (tmp_path / "sister.fa").write_text(differ(other.read_text(), 0.004, 8))
    (tmp_path / "again.fa").write_text(other.read_text().lower())
    # The model's own genome is in this cache, and not in the third: the bits are the same.
    words, found = [*given, tmp_path / "sister.fa"], []
    for cache in ("another", "third"):
        monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / cache))
        found.append(open_language(tmp_path / "weights", "cpu", words, fasta=other))
        assert f"Using {other} as the target genome for the relatives" in caplog.text
        assert [one["name"] for one in found[-1].relatives["genomes"]] == ["near", "strain"]
    assert found[0].digest == found[1].digest
    with pytest.raises(DataError, match="again holds r7_c1 of the genome itself"):
        open_language(tmp_path / "weights", "cpu", [tmp_path / "again.fa"], fasta=other)


def test_a_fine_tuned_model_says_that_it_reads_no_relatives(folder):
    with pytest.raises(UsageError, match="a fine-tuned model cannot use related genomes"):
        refuse_relatives("runs/tuned", [folder / "near.fa"])


def test_a_plan_takes_relatives_as_a_score_does(run, folder, tmp_path, monkeypatch):
    """A plan times them beside the network."""
    fasta, table = run.parent / "genome.fa", tmp_path / "v.tsv"
    genome = fasta.read_text().splitlines()[1].upper()
    rows = [change_base(fasta, "c1", pos).replace(" ", "\t") for pos in (2020, 2501)]
    rows.append(f"c1\t2600\t{genome[2599:2602]}\t{genome[2599]}")
    table.write_text("\n".join(["chrom\tpos\tref\talt", *rows]) + "\n")

    def score(**how: object) -> dict[str, object]:
        given = dict(fasta=fasta, relatives=[folder / "near.fa"], device="cpu", **how)
        return genodiff.score(run, table, out=tmp_path / "s.tsv", **given)  # type: ignore[arg-type]

    assert score(plan=True)["evaluations"] == 3
    assert score(plan=True, method="chain")["evaluations"] == 5
    table.write_text("\n".join(["chrom\tpos\tref\talt", *rows[:2]]) + "\n")
    monkeypatch.setattr(related_backbone, "relating", lambda *_: 1 / 0)
    timed: list[float] = []

    def time(*given: object) -> float:
        timed.append(time_related_sites(*given))  # type: ignore[arg-type]
        return timed[-1]

    monkeypatch.setattr(score_job, "time_related_sites", time)
    assert score(plan=True)["evaluations"] == 2
    assert timed[0] > 0
    monkeypatch.setattr(MaskedReader, "read", lambda *_: 1 / 0)
    table.write_text("\n".join(["chrom\tpos\tref\talt", *rows]) + "\n")
    assert score(plan=True, method="votes")["evaluations"] == 2
    monkeypatch.setattr(score_job, "time_spans", lambda *given: timed.append(time_spans(*given)))
    assert score(plan=True)["evaluations"] == 3  # nor is the network asked for a deletion
    assert timed[-1] > 0


def test_votes_stand_beside_every_score_with_relatives(run, folder, here, capsys):
    fasta, near = run.parent / "genome.fa", folder / "near.fa"
    genome = fasta.read_text().splitlines()[1].upper()
    deletion = f"c1 2500 {genome[2499:2502]} {genome[2499]}"
    write_vcf(Path("v.vcf"), [change_base(fasta, "c1", 2020), deletion])
    for out in ("s.vcf", "s.tsv", "s.jsonl", "s.parquet"):
        words = ("score", run, "v.vcf", "--fasta", fasta, "--out", out, "--threads", 1)
        assert command(capsys, *words, "--relatives", near)[0] == 0
    lines = Path("s.vcf").read_text().splitlines()
    assert any(line.startswith("##INFO=<ID=GD_VOTES,Number=A,Type=Float") for line in lines)
    assert any("relatives=near" in line for line in lines)
    assert [line.count("GD_VOTES=") for line in lines[-2:]] == [1, 0]
    of_lines = [json.loads(line)["votes"] for line in Path("s.jsonl").read_text().splitlines()]
    of_table = pl.read_parquet("s.parquet")["votes"].to_list()
    assert of_lines == of_table
    assert (of_lines[0] is not None, of_lines[1]) == (True, None)
    comment, names, first, _ = Path("s.tsv").read_text().splitlines()
    assert "relatives near" in comment
    told = dict(zip(names.split("\t"), first.split("\t"), strict=True))
    assert float(told["Votes"]) == pytest.approx(of_lines[0], rel=1e-5)
    frame = genodiff.load(run, relatives=[near]).score_variants("v.vcf", fasta=fasta)
    assert frame["votes"].to_list() == of_lines
    assert "votes" not in genodiff.load(run).score_variants("v.vcf", fasta=fasta).columns
