"""The readers that are fuzzed: what each does with a file, and small sound files to begin from."""

import importlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

MOST = 8192  # bytes of a seed


def make_folder() -> Path:
    """A new folder, in memory where that can be."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory))


class Reader(NamedTuple):
    """A reader: what it does with a file, the file's ending, small sound files."""

    read: Callable[[Path], object]
    ending: str
    seeds: tuple[bytes, ...]


def _call(name: str, *more: Any, drain: bool = False) -> Callable[[Path], object]:
    """Call `module:function` with the path; with `drain`, walk through what comes."""

    def read(path: Path) -> object:
        module, _, function = name.partition(":")
        found = getattr(importlib.import_module(module), function)(path, *more)
        return sum(1 for _ in found) if drain else found

    return read


def _read_vcf(path: Path) -> object:
    from genodiff.io.variant_source import read_vcf

    return sum(1 for _ in read_vcf(path)[1])


def _read_weights(path: Path) -> object:
    from genodiff.hub.weight_files import open_weights

    return open_weights([path])


def _read_archive(path: Path) -> object:
    """The file is the pickle within a sound archive of torch.save, with one tensor's bytes."""
    archive = path.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("archive/data.pkl", path.read_bytes())
        out.writestr("archive/byteorder", "little")
        for number in range(3):
            out.writestr(f"archive/data/{number}", bytes(24))
        out.writestr("archive/version", "3\n")
    found: Any = _read_weights(archive)
    return found.read(list(found.entries))


def _read_checkpoint(name: str) -> Callable[[Path], object]:
    """One member of a sound checkpoint is replaced, and all hashes and seals are made to fit."""

    def read(path: Path) -> object:
        from genodiff.runs import checkpoint
        from genodiff.runs.sealed_files import seal

        sound = _make_checkpoint()
        raw = path.read_bytes()
        members = sound.members | {name: raw}
        if name in (checkpoint.CARD, checkpoint.MANIFEST):
            try:
                found = json.loads(raw)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                members[name] = json.dumps(seal(found)).encode()
        if name == checkpoint.WEIGHTS:
            card = json.loads(members[checkpoint.CARD])
            card["weights_sha256"] = checkpoint._stamp(raw)["sha256"]
            members[checkpoint.CARD] = json.dumps(seal(card)).encode()
        if name != checkpoint.MANIFEST:
            manifest = json.loads(members[checkpoint.MANIFEST])
            for file in manifest["files"]:
                manifest["files"][file] = checkpoint._stamp(members[file])
            members[checkpoint.MANIFEST] = json.dumps(seal(manifest)).encode()
        for file, data in members.items():
            if sound.written.get(file) != data:
                (sound.folder / file).write_bytes(data)
                sound.written[file] = data
        return checkpoint.read_state(sound.folder)

    return read


class Sound(NamedTuple):
    """A sound checkpoint: its folder, its members' bytes, and what stands in the folder now."""

    folder: Path
    members: dict[str, bytes]
    written: dict[str, bytes]


checkpoints: list[Sound] = []  # the one that was made


def _make_checkpoint() -> Sound:
    """A checkpoint, made once. Its tensors are small: what reads them asks no architecture."""
    if not checkpoints:
        import torch
        from harness import TINY

        from genodiff.alphabet import ALPHABETS
        from genodiff.runs.checkpoint import State, save_checkpoint
        from genodiff.runs.resolve import resolve_config

        weights = {
            "embed.weight": torch.arange(6.0).reshape(2, 3),
            "scale": torch.ones((), dtype=torch.bfloat16),
        }
        state = {"raw/embed.weight": weights["embed.weight"], "adam/step": torch.tensor([2])}
        folder = save_checkpoint(
            make_folder(),
            State(2, weights, state, {"tokens": 640, "losses": [1.5, 1.25], "best": None}),
            resolve_config(TINY | {"steps": 2}), ALPHABETS["dna"], {"fingerprint": "0" * 64},
        )  # fmt: skip
        members = {file.name: file.read_bytes() for file in folder.iterdir()}
        checkpoints.append(Sound(folder, members, dict(members)))
    return checkpoints[0]


_FASTA = (b">a one\nACGTNacgtnRYKM\nACGT\n>b\nTTTT\n", b">x\r\nAC\r\nG\r\n", b"\n>a\n\n>b\nA")
_BED = (b"a\t0\t5\na\t5\t9\tname\t0\t+\n", b"track x\n#c\nb\t1\t2\ttrain\n", b"a 1 2\n")
_VCF = (
    b"##fileformat=VCFv4.2\n##contig=<ID=a,length=9>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\t"
    b"INFO\tFORMAT\tS\na\t2\t.\tA\tC,<DEL>\t.\tPASS\tX=1;Y\tGT:PS\t0|1:5\na\t4\trs\tAC\tA\t9\t.\t."
    b"\tGT\t./.\n",
)
_YAML = (
    b"recipe: toy\nseq_len: 64\nmodel:\n  preset: caduceus-ps-tiny\ntrain:\n  batch_size: 4\n",
    b"recipe: toy\nsteps: 5\nlr: 1e-3\noptimizer:\n  betas: [0.9, 0.95]\n",
)
_GENBANK = (
    b"LOCUS       X 12 bp DNA linear UNK 01-JAN-2000\nDEFINITION  d\nACCESSION   X\nFEATURES"
    b'             Location/Qualifiers\n     gene            1..6\n                     /gene="g"\n'
    b"ORIGIN\n        1 acgtacgtac gt\n//\n",
)
_MEME = (
    b"MEME version 4\n\nALPHABET= ACGT\n\nMOTIF m alt\nletter-probability matrix: alength= 4 w= 2 "
    b"nsites= 20 E= 0\n 0.1 0.2 0.3 0.4\n 1 0 0 0\n",
    b">MA1 x\nA [ 1 2 ]\nC [ 0 0 ]\nG [ 3 1 ]\nT [ 1 1 ]\n",
    b"ID x\nBF y\nP0 A C G T\n01 1 2 0 1 N\n02 3 0 0 1 A\nXX\n//\n",
)
_TABLE = (b"sequence,label\nACGT,1\nAAAA,0\n", b'sequence,label\n"AC\nGT",a\n"T""T",b\n')
_LIST = (b"path\tweight\tspecies\tsplit\ng.fa\t1\ts\tcluster\n", b"path\nhttps://x.org/a.fa.gz\n")
_VARIANTS = (b"chrom\tpos\tref\talt\na\t2\tA\tC\nb\t9\tAC\tA\n",)

READERS = {
    "FASTA": Reader(_call("genodiff.io.fasta:read_fasta", drain=True), ".fa", _FASTA),
    "BED": Reader(_call("genodiff.io.bed:read_bed", {"a": 9, "b": 3}), ".bed", _BED),
    "VCF": Reader(_read_vcf, ".vcf", _VCF),
    "configuration": Reader(_call("genodiff.runs.resolve:read_config"), ".yaml", _YAML),
    "checkpoint card": Reader(_read_checkpoint("model.json"), ".json", ()),
    "checkpoint counters": Reader(_read_checkpoint("trainer.json"), ".json", ()),
    "checkpoint manifest": Reader(_read_checkpoint("manifest.json"), ".json", ()),
    "checkpoint weights": Reader(_read_checkpoint("model.safetensors"), ".safetensors", ()),
    "others' weights": Reader(_read_weights, ".safetensors", ()),
    "archives of torch.save": Reader(_read_archive, ".pkl", ()),
    "text": Reader(
        _call("genodiff.io.text_file:read_text_pieces", drain=True), ".txt",
        (b"A line.\nAnother \xc3\xa9\n", "\ufeffx\u2028y".encode(), b"\x00\x7f\n"),
    ),
    "lines of JSON": Reader(
        _call("genodiff.io.text_file:read_text_pieces", drain=True), ".jsonl",
        (b'{"text": "a"}\n{"text": "b", "n": 1e3}\n', b'{"text": "\\ud800"}\n'),
    ),
    "table": Reader(_call("genodiff.tasks.labelled_file:read_examples"), ".csv", _TABLE),
    "table of variants": Reader(
        _call("genodiff.io.variant_table:VariantTable"), ".tsv", _VARIANTS
    ),
    "list of genomes": Reader(
        _call("genodiff.data.genomes.listing:read_genome_list"), ".list.tsv", _LIST
    ),
    "GenBank": Reader(
        _call("genodiff.io.features:read_features", ["gene"], drain=True), ".gb", _GENBANK
    ),
    "motifs": Reader(_call("genodiff.io.motifs:read_motifs"), ".txt", _MEME),
}  # fmt: skip


def collect_seeds(reader: Reader, name: str, more: Path | None) -> list[bytes]:
    """The reader's own, those of a folder, and for checkpoints what a tiny run wrote."""
    seeds = list(reader.seeds)
    if reader.ending == ".pkl":
        import torch

        tensors = {"a.weight": torch.zeros(2, 3), "b": torch.zeros(3, dtype=torch.int64)}
        for saved in (tensors, {"state_dict": tensors, "epoch": 3, "name": "x"}):
            with io.BytesIO() as file:
                torch.save(saved, file)
                with zipfile.ZipFile(file) as archive:
                    seeds.append(archive.read("archive/data.pkl"))
    if "checkpoint" in name or "weights" in name:
        members = {"card": "model.json", "counters": "trainer.json", "manifest": "manifest.json"}
        member = members.get(name.partition(" ")[2], "model.safetensors")
        seeds.append(_make_checkpoint().members[member])
    if more is not None:
        for path in sorted(more.rglob(f"*{reader.ending}")):
            if path.is_file() and path.stat().st_size <= MOST:
                seeds.append(path.read_bytes())
    return seeds


def import_all() -> None:
    """The modules of all readers, so that atheris sees them being imported."""
    for name in (
        "errors", "io.fasta", "io.bed", "io.vcf", "runs.resolve", "runs.checkpoint",
        "hub.weight_files", "io.text_file", "tasks.labelled_file", "io.variant_table",
        "data.genomes.listing", "io.features", "io.motifs",
    ):  # fmt: skip
        importlib.import_module(f"genodiff.{name}")
