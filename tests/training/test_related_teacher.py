"""Related genomes as the teacher of a network: what they say of a base, and what a run keeps."""

import numpy as np
import pytest

import genodiff
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.loader import TrainBatches
from genodiff.data.recipe import make_user_recipe
from genodiff.errors import DataError
from genodiff.runs import related_teacher
from genodiff.runs.related_teacher import RelatedTeacher, open_teacher
from tests.tiny_run import differ

CONTIGS = {"a": 12_000, "b": 4_000, "c": 2_000}
TINY = {"preset": "caduceus-ps-tiny", "seq_len": 256, "batch_size": 4}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A genome, two related genomes in a folder, and the splits of the genome."""
    folder = tmp_path_factory.mktemp("related")
    rng = np.random.default_rng(5)
    genome = "".join(
        f">{name}\n{''.join(rng.choice(list('ACGT'), n))}\n" for name, n in CONTIGS.items()
    )
    (folder / "genome.fa").write_text(genome)
    (folder / "bed.bed").write_text("a\t0\t12000\ttrain\nb\t0\t4000\tvalid\nc\t0\t2000\ttest\n")
    (folder / "others").mkdir()
    for name, share in (("near", 0.1), ("far", 0.2)):
        text = differ(genome.replace(">", f">{name}_"), share, len(name))
        (folder / "others" / f"{name}.fa").write_text(text)
    return folder


def open_store(place, fasta="genome.fa"):
    recipe = make_user_recipe(place / fasta, place / "bed.bed")
    return build_dna_store(recipe, place / fasta), recipe


@pytest.fixture(scope="module")
def teacher(place):
    return open_teacher(str(place / "others"), open_store(place)[0])


def read(teacher, start, length, width=None):
    return teacher.read(np.array([start]), np.array([length]), width or length)[0]


@pytest.mark.slow
def test_what_is_over_a_base_does_not_depend_on_it(place, teacher):
    assert isinstance(teacher, RelatedTeacher)
    lines = (place / "genome.fa").read_text().split("\n")
    at = 5_000
    lines[1] = lines[1][:at] + "ACGT"[(("ACGT".index(lines[1][at])) + 1) % 4] + lines[1][at + 1 :]
    (place / "changed.fa").write_text("\n".join(lines))
    other = open_teacher(str(place / "others"), open_store(place, "changed.fa")[0])
    one, two = (read(who, at - 300, 600) for who in (teacher, other))
    assert one[300].sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(one[300], two[300], atol=1e-6)
    assert np.abs(one[280:320] - two[280:320]).max() > 1e-4


def test_it_tells_the_base_that_the_genomes_had_before_they_parted(place, teacher):
    letters = (place / "genome.fa").read_text().split("\n")[1]
    q = read(teacher, 2_000, 1_000)
    own = np.array(["ACGT".index(x) for x in letters[2_000:3_000]])
    known = q.sum(1) > 0
    assert known.mean() > 0.95
    assert (q.argmax(1) == own)[known].mean() > 0.9


def test_a_window_is_read_by_itself_and_piece_by_piece(teacher, monkeypatch):
    starts, lengths = np.array([0, 3_000, 12_000]), np.array([400, 256, 31])
    together = teacher.read(starts, lengths, 512)
    for row, start, length in zip(together, starts, lengths, strict=True):
        np.testing.assert_array_equal(row, read(teacher, start, length, 512))
        assert not row[length:].any()
    monkeypatch.setattr(related_teacher, "PIECE", 500)
    pieces = read(teacher, 1_000, 700)
    np.testing.assert_array_equal(pieces[:500], read(teacher, 1_000, 500))
    np.testing.assert_array_equal(pieces[500:], read(teacher, 1_500, 200))


def test_both_strands_are_taught_the_same(place, teacher):
    from genodiff.training.teacher import Tutor

    store, recipe = open_store(place)
    windows = DnaWindows(store, recipe, "train", 256)
    batches = TrainBatches(windows, 1, 8, rc_augment=True)
    batch = batches.batch(0)
    turned = batches.turned(batch.index.numpy())
    assert turned.any()
    assert not turned.all()
    q = Tutor(teacher, 1.0, batches).read(batch).numpy()
    own = np.take_along_axis(q, batch.x0.numpy()[..., None] - windows_first(batch), 2)[..., 0]
    assert (own > 0.5)[q.sum(-1) > 0].mean() > 0.85


def windows_first(batch):
    """The id of A."""
    return int(batch.x0[batch.maskable].min())


@pytest.mark.slow
def test_without_a_valid_split_related_genomes_are_fitted_to_the_train_split(place, tmp_path):
    lines = (place / "bed.bed").read_text().splitlines()
    (tmp_path / "train.bed").write_text("".join(f"{x}\n" for x in lines if "train" in x))
    given = {"bed": tmp_path / "train.bed", "teacher": place / "others", **TINY}
    done = genodiff.train(place / "genome.fa", max_steps=1, out=tmp_path / "run", **given)
    assert done.step == 1


def test_what_is_no_teacher_is_refused(place, tmp_path):
    for given, what in ((tmp_path, "without relatives"), (tmp_path / "absent", "is not there")):
        with pytest.raises(DataError, match=what):
            genodiff.train(place / "genome.fa", teacher=given, plan=True)
    with pytest.raises(DataError, match=r"bed\.bed"):
        open_teacher(str(place / "bed.bed"), open_store(place)[0])
    with pytest.raises(DataError, match="of the genome itself"):
        open_teacher(str(place / "genome.fa"), open_store(place)[0])
