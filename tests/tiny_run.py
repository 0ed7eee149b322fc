"""A run folder with an untrained network of a few thousand weights, on a small genome that has
everything awkward; and files of genomes and variants.
"""

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

from genodiff.alphabet import DNA
from genodiff.data.dna_store import build_dna_store
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.runs.checkpoint import State, save_checkpoint
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import find_recipe
from genodiff.runs.folder import write_config, write_provenance
from genodiff.runs.model import build_backbone, collect_tensors
from genodiff.runs.resolve import resolve_config

NETWORK = {"kind": "caduceus", "d_model": 16, "n_layer": 1, "d_state": 4, "strands": "paired"}
SEQ_LEN = 64
LETTERS = np.frombuffer(b"ACGT", np.uint8)
VCF = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"


def genome_text(seed: int = 1) -> str:
    """Contigs c1..c4 of different length: lower case, N, and in c1's end (test) a copy of its
    beginning (train).
    """
    rng = np.random.default_rng(seed)
    records = []
    for i, length in enumerate((6000, 4000, 3001, 1300)):
        sequence = LETTERS[rng.choice(4, length, p=[0.3, 0.2, 0.2, 0.3])].copy()
        sequence[200:700] |= 0x20
        sequence[length - 90 : length - 60] |= 0x20
        sequence[length - 40 : length - 35] = ord("N")
        if i == 0:
            sequence[length - 290 : length - 190] = sequence[1000:1100]
        records.append(f">c{i + 1}\n{sequence.tobytes().decode()}\n")
    return "".join(records)


def split_contigs(text: str) -> dict[str, str]:
    """The letters of each contig of a FASTA file with one line of letters for each."""
    rows = (part.split("\n") for part in text.split(">")[1:])
    return {name: letters for name, letters, *_ in rows}


def differ(text: str, share: float, seed: int) -> str:
    """A genome in FASTA, of which a share of the bases is another; its contigs have other names."""
    rng, lines = np.random.default_rng(seed), []
    for line in text.splitlines():
        if line.startswith(">"):
            lines.append(f">r{seed}_{line[1:]}")
            continue
        bases = np.frombuffer(line.upper().encode(), np.uint8).copy()
        here = (rng.random(len(bases)) < share) & (bases != ord("N"))
        bases[here] = LETTERS[rng.integers(0, 4, int(here.sum()))]
        lines.append(bases.tobytes().decode())
    return "\n".join(lines) + "\n"


def write_fasta(path: Path, contigs: Mapping[str, str | bytes | np.ndarray]) -> Path:
    """A line of letters for each contig, by gzip where the file's name ends in .gz."""
    letters = {name: x if isinstance(x, str) else bytes(x).decode() for name, x in contigs.items()}
    text = "".join(f">{name}\n{x}\n" for name, x in letters.items()).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def write_vcf(path: Path, rows: Iterable[str]) -> Path:
    """CHROM POS REF ALT of each row, by blanks."""
    parts = (row.split() for row in rows)
    lines = (f"{c}\t{pos}\t.\t{ref}\t{alt}\t.\t.\t.\n" for c, pos, ref, alt in parts)
    path.write_text(VCF + "".join(lines))
    return path


def change_base(fasta: Path, contig: str, pos: int) -> str:
    """The row of `write_vcf` that changes the base at a position, from 1: to A, or A to C."""
    ref = split_contigs(fasta.read_text())[contig][pos - 1].upper()
    return f"{contig} {pos} {ref} {'A' if ref != 'A' else 'C'}"


def take_letters(genome: Genome, start: int, n: int) -> str:
    """The letters of c1[start : start + n]."""
    return genome.fetch("c1", start, start + n).decode().upper()


def make_allele(genome: Genome, start: int, n: int = 1, alt: str | None = None) -> Allele:
    """`alt` in place of `n` bases; without it as many, each a G or C for an A or T, or back."""
    ref = take_letters(genome, start, n)
    return Allele(
        "c1", start, ref, ref.translate(str.maketrans("ACGT", "GTAC")) if alt is None else alt
    )


def write_run(folder: Path, name: str = "run", *, seed: int = 0, **settings: object) -> Path:
    """Write `folder`/genome.fa unless it is there, and an untrained run on it as `folder`/`name`.

    `settings` take the place of a configuration's sections of the same name.
    """
    if not (fasta := folder / "genome.fa").exists():
        fasta.write_text(genome_text())
    given = {
        "recipe": "own",
        "fasta": str(fasta),
        "backbone": NETWORK,
        "data": {"seq_len": SEQ_LEN},
    }
    return save_run(folder / name, resolve_config(given | settings), seed)


def save_run(run: Path, config: RunConfig, seed: int = 0) -> Path:
    """A run folder with a checkpoint of step 1 of an untrained network."""
    torch.manual_seed(seed)
    backbone = build_backbone(config, DNA)
    torch.nn.init.normal_(
        next(p for n, p in backbone.named_parameters() if "embed" in n.lower()), std=0.5
    )
    store = build_dna_store(find_recipe(config), config.fasta)
    run.mkdir(parents=True)
    write_config(run, config)
    write_provenance(run, config, store.identity(), {"started": "now"})
    save_checkpoint(run, State(1, collect_tensors(backbone), {}, {}), config, DNA, store.identity())
    return run
