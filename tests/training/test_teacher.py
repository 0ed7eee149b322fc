"""A teacher in training: what is read, what it costs, and what a network learns of it."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
import torch

import genodiff
from genodiff.alphabet import DNA
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.loader import TrainBatches
from genodiff.data.recipe import make_user_recipe
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import Linear
from genodiff.errors import DataError, UsageError
from genodiff.io.value_tracks import write_bigwigs
from genodiff.runs.related_teacher import FILES, TrackTeacher
from genodiff.training.estimate import format_estimate
from genodiff.training.module import batch_loss
from genodiff.training.teacher import SHOWN_EVERY, Tutor

pytest.importorskip("pyBigWig")
SEQ_LEN, CONTIGS = 64, {"a": 6000, "b": 1500, "c": 1500}
TINY = {"preset": "caduceus-ps-tiny", "seq_len": SEQ_LEN, "batch_size": 8}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A genome of repeated GAN, and a teacher: at N every base is as likely as another."""
    folder = tmp_path_factory.mktemp("taught")
    rng = np.random.default_rng(3)
    with (folder / "genome.fa").open("w") as fasta:
        for name, length in CONTIGS.items():
            codons = "".join(f"GA{base}" for base in rng.choice(list("ACGT"), length // 3))
            fasta.write(f">{name}\n{codons}\n")
    (folder / "bed.bed").write_text("a\t0\t6000\ttrain\nb\t0\t1500\tvalid\nc\t0\t1500\ttest\n")
    write_teacher(folder / "tracks", folder / "genome.fa")
    return folder


def write_teacher(folder, fasta, contigs=CONTIGS, unknown=()):
    """Tracks: all of the base itself at the first two bases of a codon, a quarter at the third."""
    folder.mkdir()
    letters = fasta.read_text().split(">")[1:]
    with write_bigwigs(folder, [name[:-3] for name in FILES], contigs) as add:
        for one in letters:
            name, sequence = one.split()
            own = np.array([[base == x for base in sequence] for x in "ACGT"], np.float32)
            own[:, 2::3] = 0.25
            own[:, [at for at in unknown if at < own.shape[1]]] = np.nan
            for row, file in zip(own, FILES, strict=True):
                add(file[:-3], name, 0, row[: contigs[name]])


def open_batches(place, *, rc_augment=False, batch_size=8):
    recipe = make_user_recipe(place / "genome.fa", place / "bed.bed")
    store = build_dna_store(recipe, place / "genome.fa")
    windows = DnaWindows(store, recipe, "train", SEQ_LEN)
    return store, TrainBatches(windows, 1, batch_size, rc_augment=rc_augment)


@pytest.mark.parametrize("rc_augment", [False, True])
def test_a_lesson_lies_over_the_bases_of_its_windows_on_their_strand(place, rc_augment):
    store, batches = open_batches(place, rc_augment=rc_augment)
    lesson = Tutor(TrackTeacher(place / "tracks", store), 1.0, batches)
    turned = 0
    for k in range(6):
        batch = batches.batch(k)
        q = lesson.read(batch).numpy()
        turned += int(batches.turned(batch.index.numpy()).sum())
        own = np.take_along_axis(q, batch.x0.numpy()[..., None] - DNA.targets[0], 2)[..., 0]
        np.testing.assert_allclose(q.sum(-1), 1)
        np.testing.assert_array_equal(np.isin(own, [0.25, 1.0]), True)
        for row in q:
            third = np.flatnonzero(row.max(1) < 0.5)
            assert len(third) in (SEQ_LEN // 3, SEQ_LEN // 3 + 1)
            assert (np.diff(third) == 3).all()
    assert bool(turned) == rc_augment


class Table(torch.nn.Module):
    """Logits that depend on the token alone, in closed form."""

    def __init__(self):
        super().__init__()
        values = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))
        self.table = torch.nn.Parameter(values.double())

    def forward(self, xt, sigma, lengths=None):
        return self.table[xt]


def test_the_cost_is_the_cross_entropy_at_visible_bases_and_the_bound_is_as_before(place):
    store, batches = open_batches(place)
    lesson = Tutor(TrackTeacher(place / "tracks", store), 0.5, batches)
    objective = Mdlm(MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets))
    network, batch = Table(), batches.batch(2)
    seen = []
    network.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    plain, _ = batch_loss(objective, network, batch, 1.0)
    taught, _ = batch_loss(objective, network, batch, 1.0, lesson=lesson)
    assert float(taught.nats_unweighted) == float(plain.nats_unweighted)
    masked, shown = seen[-2:]
    chosen = (batch.index % SHOWN_EVERY == 0).nonzero()[:, 0]
    assert torch.equal(shown, batch.x0[chosen])
    assert len(chosen) == 2
    q, columns, wanted = lesson.read(batch), list(DNA.targets), 0.0
    for rows, xt in ((range(8), masked), (chosen.tolist(), shown)):
        for i, row in zip(rows, xt, strict=True):
            for at, token in enumerate(row.tolist()):
                if token != DNA.mask_id:
                    log_p = network.table[token][columns].detach().log_softmax(-1)
                    wanted -= 0.5 * float((q[i, at] * log_p).sum())
    assert float((taught.nats - plain.nats).detach()) == pytest.approx(wanted, rel=1e-6)


def test_unknown_bases_teach_nothing(place, tmp_path):
    write_teacher(tmp_path / "tracks", place / "genome.fa", unknown=range(6000))
    store, batches = open_batches(place)
    lesson = Tutor(TrackTeacher(tmp_path / "tracks", store), 1.0, batches)
    objective = Mdlm(MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets))
    network, batch = Table(), batches.batch(0)
    plain, _ = batch_loss(objective, network, batch, 1.0)
    taught, _ = batch_loss(objective, network, batch, 1.0, lesson=lesson)
    assert taught.nats.item() == plain.nats.item()


def test_a_base_without_related_genomes_is_unknown(place, tmp_path):
    shutil.copytree(place / "tracks", tmp_path / "tracks")
    with write_bigwigs(tmp_path / "tracks", ["relatives"], CONTIGS) as add:
        add("relatives", "a", 0, np.repeat(np.float32([2.0, 0.2]), 3000))
    store, _ = open_batches(place)
    teacher = TrackTeacher(tmp_path / "tracks", store)
    q = teacher.read(np.array([2990]), np.array([20]), 24)
    assert q[0].sum(1).tolist() == [1.0] * 10 + [0.0] * 14
    assert teacher.digest != TrackTeacher(place / "tracks", store).digest


@pytest.mark.slow
def test_a_network_learns_what_may_stand_at_a_base_that_it_sees(place, tmp_path):
    taught = {"bed": place / "bed.bed", "teacher": place / "tracks", "data.teacher_weight": 2.0}
    genodiff.train(place / "genome.fa", **taught, **TINY, lr=1e-2, max_steps=150,
                   out=tmp_path / "run")  # fmt: skip
    model = genodiff.load(tmp_path / "run", device="cpu")
    letters = (place / "genome.fa").read_text().split(">c\n")[1]
    rows = [("c", at + 1, letters[at], "ACGT"["ACGT".index(letters[at]) - 1])
            for at in range(600, 660)]  # fmt: skip
    scores = model.score_variants(rows, fasta=place / "genome.fa", method="wildtype")["score"]
    third = np.arange(600, 660) % 3 == 2
    assert scores.filter(pl.Series(third)).min() > -0.7 > -2 > scores.filter(~third).max()
    exact = model.score_variants(
        rows, fasta=place / "genome.fa", method="wildtype", exact=True
    )["score"]  # fmt: skip
    np.testing.assert_allclose(scores, exact, atol=2e-3)


@pytest.mark.slow
def test_a_run_goes_on_with_its_teacher_alone(place, tmp_path):
    given = {"bed": place / "bed.bed", "teacher": place / "tracks", **TINY}
    given |= {"lr_schedule": "constant", "warmup_steps": 0}
    once = genodiff.train(place / "genome.fa", max_steps=6, out=tmp_path / "once", **given)
    for steps in (3, 6):
        genodiff.train(place / "genome.fa", max_steps=steps, out=tmp_path / "twice", **given)
    assert once.step == 6
    sums = [json.loads((tmp_path / name / "model.json").read_text())["weights_sha256"]
            for name in ("once", "twice")]  # fmt: skip
    assert sums[0] == sums[1]
    write_teacher(tmp_path / "other", place / "genome.fa", unknown=range(5))
    other = {**given, "teacher": tmp_path / "other", "max_steps": 9, "out": tmp_path / "twice"}
    with pytest.raises(DataError, match="started with another teacher"):
        genodiff.train(place / "genome.fa", **other)
    with pytest.raises(DataError, match="has a teacher"):
        genodiff.train(place / "genome.fa", **{**other, "teacher": None})


def test_teachers_that_cannot_be_read_are_refused(place, tmp_path):
    store, _ = open_batches(place)
    shutil.copytree(place / "tracks", tmp_path / "partial")
    (tmp_path / "partial/p_A.bw").unlink()
    with pytest.raises(DataError, match=r"has no p_A.bw"):
        genodiff.train(place / "genome.fa", teacher=tmp_path / "partial", plan=True)
    write_teacher(tmp_path / "short", place / "genome.fa", CONTIGS | {"b": 1200})
    with pytest.raises(DataError, match="b has 1,200 bases, and 1,500 in the FASTA"):
        TrackTeacher(tmp_path / "short", store)
    shutil.copytree(place / "tracks", tmp_path / "wrong")
    shutil.copy(place / "tracks/p_A.bw", tmp_path / "wrong/p_G.bw")
    with pytest.raises(DataError, match="a:1: the four probabilities are no distribution"):
        TrackTeacher(tmp_path / "wrong", store).read(np.array([0]), np.array([9]), 9)
    (tmp_path / "wrong/p_C.bw").write_bytes(b"no bigWig")
    with pytest.raises(DataError, match="cannot be read as bigWig"):
        TrackTeacher(tmp_path / "wrong", store)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"objective": "ar", "preset": "mamba-470k"}, "--teacher is for masked networks"),
        ({"teacher": None, "data.teacher_weight": 2.0}, "no teacher; give --teacher GENOMES"),
        ({"preset": "dit-470k", "backbone.dropout": 0.1}, "without dropout"),
    ],
)
def test_what_cannot_be_taught_is_refused(place, settings, what):
    given = {"teacher": place / "tracks", "plan": True} | settings
    with pytest.raises(UsageError, match=what):
        genodiff.train(place / "genome.fa", **given)


def test_a_network_without_a_teacher_says_nothing_of_what_it_sees(place):
    with pytest.raises(UsageError, match="was trained without --teacher"):
        genodiff.load("yeast", device="cpu").score_variants(
            [("a", 10, "G", "C")], fasta=place / "genome.fa", method="wildtype"
        )


def test_a_plan_says_what_a_teacher_adds(place):
    given = {"bed": place / "bed.bed", "plan": True, "max_steps": 5, **TINY}
    plan = genodiff.train(place / "genome.fa", teacher=place / "tracks", **given)
    assert plan["teacher"] == str(place / "tracks")
    assert "without the teacher, validation" in "\n".join(format_estimate(plan))
    assert genodiff.train(place / "genome.fa", **given)["teacher"] is None
