"""Readers under fire: mutated files, by coverage (atheris) or by a seeded mutator of our own.

    python benchmarks/robustness/fuzz.py READER --runs 1000000 [--seconds 60] [--seed 1]
        [--engine own] [--seeds FOLDER] [--out FOLDER] [--keep FOLDER]

An input is survived where the reader reads it, or ends with the package's own error. Any other
exception is a finding, and so is an input that takes more than five seconds. Seeds are small sound
files, and with --seeds all files of a folder that have the reader's ending and at most 8 kB. A
checkpoint's hashes are made to fit the mutated file, so that what lies behind them is reached too.
Prints one object of JSON: inputs, inputs a second, findings by kind and place; with --out it is a
row of results. The exit code is 1 where there are findings. atheris has to be installed for its
engine, which is the default.
"""

import argparse
import importlib
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]
_MOST, _SLOW = 8192, 5.0  # bytes of a seed, seconds of an input


_ABOUT = """Mutated files; any exception but the package's own, and more than five seconds, is a
finding. Refused: those that ended with its own error."""


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
    from genodiff.io.vcf import read_vcf

    return sum(1 for _ in read_vcf(path)[1])


def _read_weights(path: Path) -> object:
    from genodiff.hub.weight_files import open_weights

    return open_weights([path])


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


_checkpoints: list[Sound] = []


def _make_checkpoint() -> Sound:
    """A checkpoint, made once. Its tensors are small: what reads them asks no architecture."""
    if not _checkpoints:
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
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        folder = save_checkpoint(
            Path(tempfile.mkdtemp(prefix="fuzz-run-", dir=memory)),
            State(2, weights, state, {"tokens": 640, "losses": [1.5, 1.25], "best": None}),
            resolve_config(TINY | {"steps": 2}), ALPHABETS["dna"], {"fingerprint": "0" * 64},
        )  # fmt: skip
        members = {file.name: file.read_bytes() for file in folder.iterdir()}
        _checkpoints.append(Sound(folder, members, dict(members)))
    return _checkpoints[0]


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

_WORDS = (
    b"\n", b"\r", b"\t", b" ", b"\x00", b"\xff", b"\xef\xbb\xbf", b"-1", b"0", b"1e999", b"nan",
    b"99999999999999999999", b"-0", b"null", b"true", b"[]", b"{}", b'"', b">", b"#", b"N",
    b"[" * 99, b"{" * 99, b"!!python/object:os.system", b"&a",
    b"*a", b"<<: *a", b"..", b"/", b"\xc3\x28",
)  # fmt: skip


class Gunner:
    """Throws inputs at a reader and counts."""

    def __init__(self, reader: Reader, folder: Path, keep: Path | None) -> None:
        from genodiff.errors import GenodiffError

        self.reader, self.keep, self.clean = reader, keep, GenodiffError
        self.path = folder / f"in{reader.ending}"
        self.inputs = self.refused = 0
        self.began = time.monotonic()
        self.found: dict[str, int] = {}

    def throw(self, data: bytes) -> None:
        """One input."""
        self.path.write_bytes(data)
        self.inputs += 1
        began = time.monotonic()
        try:
            self.reader.read(self.path)
        except self.clean:
            self.refused += 1
        except Exception as fault:
            frame = traceback.extract_tb(fault.__traceback__)[-1]
            ours = [
                f for f in traceback.extract_tb(fault.__traceback__) if "genodiff/" in f.filename
            ]
            at = ours[-1] if ours else frame
            place = f"{at.filename.rpartition('genodiff/')[2]}:{at.lineno}"
            self._tell(f"{type(fault).__name__} at {place}: {str(fault)[:80]!r}", data)
        if time.monotonic() - began > _SLOW:
            self._tell("slow", data)

    def _tell(self, what: str, data: bytes) -> None:
        kind = what.partition(": ")[0]
        if not any(known.startswith(kind) for known in self.found):
            if self.keep is not None:
                self.keep.mkdir(parents=True, exist_ok=True)
                (self.keep / f"{len(self.found)}{self.reader.ending}").write_bytes(data)
            self.found[what] = 0
            print(what, data[:200], file=sys.stderr, flush=True)
        for known in self.found:
            if known.startswith(kind):
                self.found[known] += 1

    def report(self) -> dict[str, Any]:
        """The row of results."""
        seconds = time.monotonic() - self.began
        return {
            "inputs": self.inputs, "refused": self.refused, "seconds": round(seconds),
            "inputs a second": round(self.inputs / max(seconds, 1e-9)), "findings": self.found,
        }  # fmt: skip


def mutate(draw: random.Random, seeds: list[bytes]) -> bytes:
    """A seed with one to eight changes of its bytes, spans, words and numbers."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(1, 8)):
        at = draw.randint(0, len(data))
        end = min(len(data), at + draw.choice((1, 1, 2, 4, 16, 64)))
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = draw.randrange(256)
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = data[at:end] * draw.choice((1, 2, 9))
        elif kind == 4:
            data[at:end] = draw.choice(_WORDS)
        elif kind == 5:
            data[at:at] = draw.choice(_WORDS)
        elif kind == 6:
            other = draw.choice(seeds)
            data[at:] = other[draw.randint(0, len(other)) :]
        else:
            del data[at:]
    return bytes(data[:_MOST])


def collect_seeds(reader: Reader, name: str, more: Path | None) -> list[bytes]:
    """The reader's own, those of a folder, and for checkpoints what a tiny run wrote."""
    seeds = list(reader.seeds)
    if "checkpoint" in name or "weights" in name:
        members = {"card": "model.json", "counters": "trainer.json", "manifest": "manifest.json"}
        member = members.get(name.partition(" ")[2], "model.safetensors")
        seeds.append(_make_checkpoint().members[member])
    if more is not None:
        for path in sorted(more.rglob(f"*{reader.ending}")):
            if path.is_file() and path.stat().st_size <= _MOST:
                seeds.append(path.read_bytes())
    return seeds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("atheris", "own"), default="atheris")
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    if asked.engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["genodiff"]):
            _import_all()
    import torch
    from page import write_row

    torch.set_num_threads(1)
    logging.getLogger("genodiff").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory))
    reader = READERS[asked.reader]
    seeds = collect_seeds(reader, asked.reader, asked.seeds)
    gunner = Gunner(reader, folder, asked.keep)
    for seed in seeds:
        gunner.throw(seed)

    def finish() -> None:
        row = {"reader": asked.reader, "engine": asked.engine, "seed": asked.seed}
        row |= gunner.report()
        print(json.dumps(row), flush=True)
        if asked.out is not None:
            spoiled = sum(gunner.found.values())
            write_row(
                asked.out, f"fuzz: {asked.reader}", _ABOUT, gunner.inputs, gunner.inputs - spoiled,
                {k: row[k] for k in ("engine", "refused", "inputs a second")},
                faults=list(gunner.found), seconds=row["seconds"], seed=asked.seed,
                command="python benchmarks/robustness/fuzz.py READER --seeds DATA/badinput",
            )  # fmt: skip
        for path in (folder, *(c.folder.parents[1] for c in _checkpoints)):
            shutil.rmtree(path, ignore_errors=True)
        os._exit(int(bool(gunner.found)))

    def is_over() -> bool:
        spent = time.monotonic() - gunner.began
        return gunner.inputs >= asked.runs or spent > asked.seconds

    if asked.engine == "own":
        draw = random.Random(asked.seed)
        while not is_over():
            gunner.throw(mutate(draw, seeds))
        finish()

    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)

    def test(data: bytes) -> None:
        gunner.throw(data)
        if is_over():
            finish()

    longest = max(map(len, seeds))
    words = [f"-seed={asked.seed}", f"-max_len={max(2048, longest)}", "-timeout=60", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *words, "-rss_limit_mb=6000", str(corpus)], test)
    atheris.Fuzz()


def _import_all() -> None:
    """The modules of all readers, so that atheris sees them being imported."""
    for name in (
        "errors", "io.fasta", "io.bed", "io.vcf", "runs.resolve", "runs.checkpoint",
        "hub.weight_files", "io.text_file", "tasks.labelled_file", "io.variant_table",
        "data.genomes.listing", "io.features", "io.motifs",
    ):  # fmt: skip
        importlib.import_module(f"genodiff.{name}")


if __name__ == "__main__":
    main()
