"""Yeast promoters for the demonstration: what the generator reads, and who has which third.

A core is 80 bases in the direction of its gene. Native cores are those from 160 to 80 bases before
a start of transcription (as in Vaishnav et al. 2022). The generator reads 479 bases around starts,
the chromosomes XIV and XVI are held out of it. Measured cores are dealt to three thirds, whole
families (cores that share 24 bases, on a strand): A guides, B judges, C is the third judge's.

Everything lies in one folder, made once:

    surroundings.fa, .bed      479 bases around each start, oriented, with their split
    natives_train.fa, _held.fa native cores of the train and of the held-out chromosomes
    A.csv, B.csv, C.csv        measured cores: sequence, label
    high.fa, low.fa (+ .bed)   the highest and lowest fifth of third A, for conditional networks
    designs.csv                the measured designs of a genetic algorithm: sequence, label, aim
"""

import csv
import gzip
from pathlib import Path

import numpy as np
from judges import CORE, SETS, deal, list_words, read

from genodiff.alphabet import reverse_complement

BEFORE, AFTER = 340, 139  # 5 windows of 80, and 79 bases for them to move in
CORE_PLACE = slice(BEFORE - 160, BEFORE - 80)
HELD = {"chrXIV": "test", "chrXVI": "valid"}
FIFTH = 0.2


def write_data(data: Path, out: Path, seed: int) -> None:
    """All files, or none of them again."""
    if (out / "designs.csv").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    write_surroundings(data, out)
    known: dict[str, list[float]] = {}
    folder = data / "promoters" / "yeast"
    for name in SETS:
        for row in read(folder / f"{name}_complex.csv.gz"):
            known.setdefault(row["sequence"][CORE], []).append(float(row["Measured Expression"]))
    designs = [row for row in read(folder / "GA_designed_complex.csv.gz") if row["meanEL"]]
    taken = {word for row in designs for word in list_words(row["seq110"][CORE])}
    texts = [
        text for text in known if not taken & set(list_words(text)) and set(text) <= set("ACGT")
    ]
    values = np.array([np.mean(known[text]) for text in texts])
    third = deal(texts, seed)
    for part, name in enumerate("ABC"):
        rows = np.flatnonzero(third == part)
        write_table(out / f"{name}.csv", [(texts[i], f"{values[i]:.6f}") for i in rows])
        if name == "A":
            for aim, chosen in choose_ends(values[rows]).items():
                write_parts(out, aim, [texts[rows[i]] for i in chosen])
    cells = [(row["seq110"][CORE], row["meanEL"], row["designedDir"]) for row in designs]
    write_table(out / "designs.csv", cells, ("sequence", "label", "aim"))


def write_surroundings(data: Path, out: Path) -> None:
    """Around each start of transcription; a piece of DNA beside two starts is there twice."""
    genome: dict[str, list[str]] = {}
    with gzip.open(data / "genomes" / "sacCer3.fa.gz", "rt") as file:
        for line in file:
            if line.startswith(">"):
                genome[name := line[1:].split()[0]] = []
            else:
                genome[name].append(line.strip().upper())
    whole = {name: "".join(lines) for name, lines in genome.items() if name != "chrM"}
    names = data / "genomes" / "annotation" / "sacCer3_polIItranscripts-adjustedTSS.bed.gz"
    pieces, splits, cores = [], [], {"train": [], "held": []}
    with gzip.open(names, "rt") as file:
        rows = [line.split() for line in file if line.startswith("chr")]
    for number, (contig, start, end, name, _, strand) in enumerate(row[:6] for row in rows):
        if contig not in whole:
            continue
        if strand == "+":
            at = int(start)
            text = whole[contig][max(at - BEFORE, 0) : at + AFTER]
        else:
            at = int(end)
            text = str(reverse_complement(whole[contig][max(at - AFTER, 0) : at + BEFORE]))
        if len(text) < BEFORE + AFTER or set(text) - set("ACGT"):
            continue
        split = HELD.get(contig, "train")
        pieces.append(f">p{number}_{name}\n{text}\n")
        splits.append(f"p{number}_{name}\t0\t{len(text)}\t{split}\n")
        cores["train" if split == "train" else "held"].append(text[CORE_PLACE])
    (out / "surroundings.fa").write_text("".join(pieces))
    (out / "surroundings.bed").write_text("".join(splits))
    for name, some in cores.items():
        write_fasta(out / f"natives_{name}.fa", list(dict.fromkeys(some)))


def choose_ends(values: np.ndarray) -> dict[str, list[int]]:
    """Rows of the highest and of the lowest fifth."""
    order = values.argsort().tolist()
    n = int(FIFTH * len(order))
    return {"high": order[-n:], "low": order[:n]}


def write_parts(out: Path, name: str, texts: list[str]) -> None:
    """FASTA and a BED of splits: a twentieth each is valid and test."""
    write_fasta(out / f"{name}.fa", texts)
    splits = ["valid", "test", *["train"] * 18]
    lines = [f"s{i}\t0\t{len(text)}\t{splits[i % 20]}\n" for i, text in enumerate(texts)]
    (out / f"{name}.bed").write_text("".join(lines))


def write_fasta(path: Path, texts: list[str]) -> None:
    path.write_text("".join(f">s{i}\n{text}\n" for i, text in enumerate(texts)))


def read_fasta(path: Path) -> list[str]:
    """The sequences of a file, in upper case."""
    records = path.read_text().split(">")[1:]
    return ["".join(one.split("\n")[1:]).upper() for one in records]


def write_table(path: Path, rows: list[tuple[str, ...]], head=("sequence", "label")) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Sequences and values."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["sequence"] for row in rows], np.array([float(row["label"]) for row in rows])
