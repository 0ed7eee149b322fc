"""A published folder with the memory of the training genome inside: without the genome, bit for
bit.
"""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_run import SEQ_LEN, genome_text, write_run

import genodiff
from genodiff.errors import CheckpointError, DataError
from genodiff.io.faidx import Genome
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.memory.memory import NOWHERE, Memory, write_memory
from genodiff.memory.text import join_stretches
from genodiff.runs.embedded_memory import (
    BASES,
    CARD,
    FOLDER,
    embed_memory,
    open_embedded,
    pack_text,
    unpack_stretches,
)
from genodiff.runs.known_contigs import KnownContigs
from genodiff.runs.model import load_model
from genodiff.runs.sealed_files import seal
from genodiff.runs.training_memory import OwnLoci, open_train_memory
from tests.commands import command

REGION = "c1:5741-5744"  # test, and the same bases as from 1,031 on, which is train
Answers = dict[str, Any]


def ask(path: Path, fasta: Path, memory: str = "on") -> Answers:
    """What a model says with its memory, as plain values."""
    m = genodiff.load(path, device="cpu", memory=memory)  # type: ignore[arg-type]
    letters = genome_text().split(">")[1].split("\n")[1].upper()
    rows = [
        ("c1", at + 1, letters[at], "ACGT"[("ACGT".index(letters[at]) + 1) % 4])
        for at in (5745, 2540)
    ]
    return {
        "scores": m.score_variants(rows, fasta=fasta, context=SEQ_LEN)["score"].to_list(),
        "tracks": m.tracks(fasta, region=[REGION], context=SEQ_LEN)[0].p.tolist(),
        "samples": m.sample(3, length=48, steps=8),
        "designs": m.redesign(letters, 1, regions=[(2540, 2550)], steps=4),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A genome, folders exported of a run on it, and what the run says; the run is gone."""
    base = tmp_path_factory.mktemp("export")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_CACHE", str(base / "cache"))
        run = write_run(base)
        answers = {x: ask(run, base / "genome.fa", x) for x in ("on", "off")}
        folders = {}
        for layout in ("safetensors", "caduceus"):
            folders[layout] = base / layout
            genodiff.export_checkpoint(
                run, out=folders[layout], format=layout, with_memory=True, device="cpu"
            )
        shutil.rmtree(run)
        shutil.rmtree(base / "cache")
        fasta = base / "other.fa"  # other names and lower case; scores go by the bases
        (base / "genome.fa").rename(fasta)
    return fasta, folders, answers


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", ["safetensors", "caduceus"])
def test_it_says_the_same_bit_for_bit_without_the_genome(made, layout, anew):
    (fasta, folders, _), answers = made, copy.deepcopy(made[2])
    found, plain = (ask(folders[layout], fasta, memory) for memory in ("on", "off"))
    if layout == "caduceus":  # it has no place for the length of a window
        del found["designs"], plain["designs"], answers["on"]["designs"], answers["off"]["designs"]
    assert found == answers["on"]
    assert plain == answers["off"]
    assert answers["on"] != answers["off"]
    assert answers["on"]["scores"][0] < -4 < answers["off"]["scores"][0]
    (place,) = (x for x in (anew / "memories").iterdir() if x.is_dir())
    assert (place / "at.npy").exists()  # the table was built beside


def test_own_loci_are_told_by_the_hashes_of_contigs(made, anew):
    fasta, folders, _ = made
    found = open_train_memory(load_model(folders["safetensors"]))
    assert found.store is None
    with Genome(fasta) as genome:
        loci = OwnLoci(found, genome)
        assert loci.find_name("c1") == "c1"
        assert loci.leave_out(("c1", 2000, 2064)) != NOWHERE
        assert loci.leave_out(("c1", 5740, 5804)) == NOWHERE  # of the test part
    other = fasta.parent / "renamed.fa"
    other.write_text(genome_text().lower().replace(">c1\n", ">one\n").replace(">c2\n", ">c1\n"))
    with Genome(other) as genome:
        assert OwnLoci(found, genome).find_name("one") == "c1"
        assert OwnLoci(found, genome).find_name("c1") == "c2"


def test_it_takes_two_bits_a_base(made):
    _, folders, _ = made
    folder = folders["safetensors"] / FOLDER
    card = json.loads((folder / CARD).read_text())
    size = card["manifest"]["size"]
    assert (folder / BASES).stat().st_size < size / 4 + 1000
    assert sorted(card["manifest"]["files"]) == ["at", "counts", "planes", "start"]
    assert [row[0] for row in card["contigs"]] == ["c1", "c2", "c3", "c4"]
    text = (folders["caduceus"] / "README.md").read_text()
    assert "holds the train split itself" in text
    assert card["fingerprint"][:12] in text


def test_a_text_comes_back_from_its_packed_form():
    rng = np.random.default_rng(1)
    for lengths in ((1,), (7, 8, 9), (64, 3), (500, 1, 1)):
        parts = [rng.choice(5, n, p=[0.24] * 4 + [0.04]).astype(np.uint8) for n in lengths]
        text = join_stretches([(f"c{i}", 10 * i, part) for i, part in enumerate(parts)])
        packed = pack_text(text)
        back = unpack_stretches(packed["bases"], packed["gaps"], [list(s) for s in text.sources])
        assert [(name, at) for name, at, _ in back] == [s[:2] for s in text.sources]
        assert all(np.array_equal(a, b) for (_, _, a), b in zip(back, parts, strict=True))


def test_a_store_at_hand_serves_as_its_table(made, tmp_path, anew):
    """Where the genome's own memory is in the cache already, no second table is built."""
    _, folders, _ = made
    own = open_train_memory(load_model(write_run(tmp_path)))
    found = open_train_memory(load_model(folders["safetensors"]))
    assert found.told["folder"] == own.told["folder"]
    del own.told["source"], found.told["source"]
    assert found.told == own.told


def damage_bases(folder: Path) -> None:
    raw = bytearray((folder / BASES).read_bytes())
    raw[-9] ^= 1
    (folder / BASES).write_bytes(raw)


def cut_bases(folder: Path) -> None:
    (folder / BASES).write_bytes((folder / BASES).read_bytes()[:-100])


def forge_bases(folder: Path) -> None:
    """Other bases with a card that names them: what is built has another fingerprint."""
    held = load_file(folder / BASES)
    held["bases"][0, :50] ^= 0xFF
    save_file(held, folder / BASES)
    change_card(folder, file=describe(folder / BASES))


def describe(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_file(path)}


def change_card(folder: Path, **values: Any) -> None:
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(seal(card | values)))


def change_manifest(folder: Path, **values: Any) -> None:
    card = json.loads((folder / CARD).read_text())
    manifest = card["manifest"] | values
    change_card(folder, manifest=manifest, fingerprint=sha256_json(manifest, compact=True))


def shorten(folder: Path) -> None:
    card = json.loads((folder / CARD).read_text())
    card["manifest"]["stretches"][0][2] -= 100
    (folder / CARD).write_text(json.dumps(card))


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a changed base": (damage_bases, "has sha256 .*, but was written as"),
    "cut short": (cut_bases, "it is cut short"),
    "no bases": (lambda folder: (folder / BASES).unlink(), "is missing"),
    "forged bases": (forge_bases, "gives another memory than was exported"),
    "another model": (lambda f: change_card(f, checkpoint="0" * 12), "belongs to the weights 0000"),
    "a changed card": (shorten, "was changed after it was written"),
    "another fingerprint": (lambda f: change_card(f, fingerprint="0" * 64), "another fingerprint"),
    "no card": (lambda folder: (folder / CARD).unlink(), "is missing"),
    "an empty card": (lambda folder: (folder / CARD).write_text(""), "is empty: truncated"),
    "another version": (lambda f: change_card(f, format_version=9), "newer than"),
    "a table of 4^60 words": (lambda f: change_manifest(f, k=60), "cannot be meant"),
    "no list of contigs": (lambda f: change_card(f, contigs=3), "cannot be meant"),
    "odd stretches": (lambda f: change_manifest(f, stretches=[["c1", 0, -5]]), "cannot be meant"),
    "stretches of others": (
        lambda f: change_manifest(f, stretches=[["c1", 0, 10**9]]),
        "is not a whole memory",
    ),
    "odd effort": (lambda f: change_card(f, effort={"most": "x"}), "cannot be meant"),
    "odd numbers": (lambda f: change_card(f, numbers={"start": 7}), "numbers|start"),
    "an odd key": (lambda f: change_card(f, more=1), "the key 'more' is missing or unknown"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_memory_that_is_damaged_or_of_another_model_is_refused(made, fault, anew, tmp_path):
    folder, (change, words) = tmp_path / "published", FAULTS[fault]
    shutil.copytree(made[1]["safetensors"], folder)
    change(folder / FOLDER)
    with pytest.raises(CheckpointError, match=words) as found:
        genodiff.load(folder, device="cpu", memory="on")
    assert "\n" not in str(found.value)
    assert found.value.fix
    assert not [x for x in (anew / "memories").glob("*") if x.is_dir()]  # nothing half-made
    assert genodiff.load(folder, device="cpu").sample(1, length=20, steps=2)  # without it


def test_a_sound_folder_is_checked_imported_and_refuses_what_needs_the_genome(
    made, anew, tmp_path,
    capsys,
):  # fmt: skip
    fasta, folders, answers = made
    for folder in folders.values():
        told = genodiff.check_checkpoint(folder)
        assert len(told["memory"]["fingerprint"]) == 64
    damaged = tmp_path / "damaged"
    shutil.copytree(folders["caduceus"], damaged)
    damage_bases(damaged / FOLDER)
    with pytest.raises(CheckpointError, match="has sha256"):
        genodiff.check_checkpoint(damaged)
    genodiff.import_checkpoint(folders["caduceus"], out=tmp_path / "run", device="cpu", seq_len=64)
    imported = ask(tmp_path / "run", fasta)
    assert imported["tracks"] == answers["on"]["tracks"]
    m = genodiff.load(folders["safetensors"], device="cpu")
    with pytest.raises(DataError, match="which an exported model does not contain"):
        m.sample(1, steps=2, memory="novel")
    # Exported once more, the memory goes on; by the command line.
    words = ("checkpoint", "export", folders["safetensors"], "--format", "safetensors")
    assert command(capsys, *words, "--with-memory", "-o", tmp_path / "again", "-q")[0] == 0
    first, again = (x / FOLDER for x in (folders["safetensors"], tmp_path / "again"))
    assert (first / BASES).read_bytes() == (again / BASES).read_bytes()
    assert json.loads((first / CARD).read_text()) == json.loads((again / CARD).read_text())


def test_what_is_published_is_not_taken_for_a_genome_at_hand(made, anew, tmp_path):
    """A folder that claims to be of a known genome, with other bases: the genome keeps its own."""
    card = json.loads((made[1]["safetensors"] / FOLDER / CARD).read_text())
    other = Memory.build([("c1", 0, np.arange(4000, dtype=np.uint8) % 4)], k=card["manifest"]["k"])
    write_memory(tmp_path / "forged", other, card["manifest"]["made_from"])
    forged = tmp_path / "published"
    contigs = KnownContigs.of_rows([("c1", 4000, "0" * 64)])
    embed_memory(forged, other, tmp_path / "forged", contigs, "0" * 12)
    memory, place, _ = open_embedded(forged, "0" * 12)
    assert memory.text.n_bases == 4000
    own = open_train_memory(load_model(write_run(tmp_path)))
    assert own.told["fingerprint"] == card["fingerprint"]
    assert own.told["folder"] != str(place)
