"""Good files of every kind that is read, with what stands in them, worked out here and not read."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from genodiff.constraints.codon_usage import read_codon_usage
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.labels import place_labels, read_labels
from genodiff.io.bed import read_bed
from genodiff.io.fasta import read_fasta
from genodiff.io.features import read_features
from genodiff.io.motifs import read_motifs
from genodiff.io.variant_source import open_variants
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.unlabelled import read_queries

Kind = Literal["contig", "name", "text", "dna", "lines", "position", "float", "class", "strand",
               "other"]  # fmt: skip
"""A "name" has no blank, a "text" may have blanks and quotes; "lines" are DNA of several lines."""
Row = list[str]
Rng = np.random.Generator


@dataclass(frozen=True)
class GoodTable:
    """Rows of fields. `content` is what a reader should give for rows of them."""

    kinds: tuple[Kind, ...]
    rows: list[Row]
    content: Callable[[list[Row]], Any]
    header: Row | None = None
    separator: str = "\t"
    above: str = ""
    needed: tuple[int, ...] = ()
    """Columns without which a row means nothing."""
    defaults: bool = False
    """Whether an empty field, or a dot, stands for a default."""

    @property
    def text(self) -> str:
        """The file."""
        lines = [self.header, *self.rows] if self.header is not None else self.rows
        return self.above + "".join(self.separator.join(line) + "\n" for line in lines)

    @property
    def whole(self) -> Any:
        """What stands in the file."""
        return self.content(self.rows)

    def with_rows(self, rows: list[Row]) -> "GoodTable":
        """Other rows in this table."""
        return replace(self, rows=rows)


@dataclass(frozen=True)
class GoodText:
    """A file that is no table; `values` are where a value of some kind stands."""

    text: str
    whole: Any
    values: list[tuple[int, int, Kind]]
    cut: Callable[[Any, Any], bool] = lambda found, whole: False
    """Whether `found` is what a cut file rightly holds, of `whole`."""


Good = GoodTable | GoodText


@dataclass(frozen=True)
class Reader:
    """How a kind of file is made and read."""

    ending: str
    make: Callable[[Rng], Good]
    read: Callable[[Path], Any]


def dna(rng: Rng, low: int = 20, high: int = 60) -> str:
    return "".join(rng.choice(list("ACGT"), rng.integers(low, high)))


def name(rng: Rng, i: int) -> str:
    stem = rng.choice(["SEPT", "MARCH", "geneA", "x_y", "R2-D", "ENSG0000", "a&b"])
    return f"{stem}{i + 1}"


def find_values(text: str, wanted: list[tuple[str, Kind]]) -> list[tuple[int, int, Kind]]:
    """Each text of `wanted` where it stands first as a word of its own, and its kind."""
    found = []
    for word, kind in wanted:
        at = re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", text)
        found.append((at.start(), at.end(), kind))
    return found


def make_bed(rng: Rng) -> GoodTable:
    rows = []
    for i in range(rng.integers(3, 8)):
        start = int(rng.integers(0, 300_000)) * int(rng.choice([1, 100]))
        place = [f"chr{rng.integers(1, 6)}", str(start), str(start + int(rng.integers(1, 5000)))]
        score, strand = str(rng.integers(0, 1000)), str(rng.choice(["+", "-"]))
        rows.append([*place, name(rng, i), score, strand])
    kinds: tuple[Kind, ...] = ("contig", "position", "position", "text", "other", "strand")

    def content(rows: list[Row]) -> Any:
        return [(row[0], int(row[1]), int(row[2]), *row[3:6]) for row in rows]

    return GoodTable(kinds, rows, content, needed=(0, 1, 2))


def load_bed(path: Path) -> Any:
    return [row[:6] for row in read_bed(path).iter_rows()]


def variants(rng: Rng) -> list[Row]:
    rows = []
    for i in range(rng.integers(3, 8)):
        ref, alt = rng.choice(list("ACGT"), 2, replace=False)
        ref = str(ref) + dna(rng, 0, 3)
        position = int(rng.choice([rng.integers(1, 2000), 100_000 * rng.integers(1, 900)]))
        rows.append([f"chr{rng.integers(1, 6)}", str(position), f"rs{i}", ref, str(alt)])
    return rows


def variant_content(rows: list[Row]) -> Any:
    return [(r[0], int(r[1]), r[2], r[3], tuple(r[4].split(","))) for r in rows]


VARIANT_KINDS: tuple[Kind, ...] = ("contig", "position", "text", "dna", "dna")


def make_vcf(rng: Rng) -> GoodTable:
    rows = [[*row, ".", "PASS", f"X={i}"] for i, row in enumerate(variants(rng))]
    header = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO"]
    kinds: tuple[Kind, ...] = (*VARIANT_KINDS, "other", "other", "other")
    return GoodTable(kinds, rows, variant_content, header, above="##fileformat=VCFv4.2\n",
                     needed=(0, 1, 3))  # fmt: skip


def make_variant_table(rng: Rng) -> GoodTable:
    rows = [[*row, f"{rng.normal():.3f}"] for row in variants(rng)]
    header = ["chrom", "pos", "id", "ref", "alt", "score"]
    kinds: tuple[Kind, ...] = (*VARIANT_KINDS, "other")
    return GoodTable(kinds, rows, variant_content, header, str(rng.choice([",", "\t", ";"])),
                     needed=(0, 1, 3))  # fmt: skip


def make_variant_lines(rng: Rng) -> GoodText:
    rows = variants(rng)
    lines = [
        json.dumps(dict(zip(("chrom", "pos", "id", "ref", "alt"), row, strict=True)
                        ) | {"pos": int(row[1])})
        for row in rows
    ]  # fmt: skip
    kinds = zip(VARIANT_KINDS[:3], rows[0][:3], strict=True)
    wanted: list[tuple[str, Kind]] = [(word, kind) for kind, word in kinds]
    whole = variant_content(rows)
    return GoodText("".join(f"{line}\n" for line in lines), whole, find_values(lines[0], wanted),
                    cut_motifs)  # fmt: skip


def load_variants(path: Path) -> Any:
    with open_variants(path) as source:
        return [(r.chrom, r.pos, r.id, r.ref, r.alts) for r in source.records()]


CLASSES = (["active", "inactive"], ["True", "False"], ["0", "1", "2"], ["up&down", "none", "5-UTR"])


def make_classes(rng: Rng) -> GoodTable:
    names = CLASSES[rng.integers(len(CLASSES))]
    n = len(names) * int(rng.integers(2, 5))
    rows = [[name(rng, i), dna(rng), names[i % len(names)]] for i in range(n)]
    return GoodTable(("text", "dna", "class"), rows, lambda rows: [tuple(r) for r in rows],
                     ["name", "sequence", "label"], str(rng.choice([",", "\t", ";"])),
                     needed=(1, 2))  # fmt: skip


def make_values(rng: Rng) -> GoodTable:
    n = int(rng.integers(6, 12))
    scale = float(rng.choice([1, 5000]))
    rows = [[name(rng, i), dna(rng), f"{scale * rng.normal():.3f}"] for i in range(n)]
    return GoodTable(("text", "dna", "float"), rows,
                     lambda rows: [(r[0], r[1], float(r[2])) for r in rows],
                     ["name", "sequence", "label"], str(rng.choice([",", "\t", ";"])),
                     needed=(1, 2))  # fmt: skip


def load_examples(path: Path) -> Any:
    found, _, classes = read_examples(path, TableColumns(own=True))
    labels = [classes[i] for i in found.labels] if classes else found.labels.tolist()
    return list(zip(found.names, [s.decode() for s in found.sequences], labels, strict=True))


def make_queries(rng: Rng) -> GoodTable:
    rows = [[name(rng, i), dna(rng)] for i in range(int(rng.integers(3, 9)))]
    return GoodTable(("text", "dna"), rows, lambda rows: [tuple(r) for r in rows], ["id", "seq"],
                     str(rng.choice([",", "\t"])), needed=(0, 1))  # fmt: skip


def load_queries(path: Path) -> Any:
    return [(query.name, query.sequence.decode()) for query in read_queries(path)]


def make_label_bed(rng: Rng) -> GoodTable:
    rows = []
    for i in range(int(rng.integers(4, 9))):
        start = 100_000 * int(rng.integers(0, 50))
        rows.append([f"chr{i}", str(start), str(start + int(rng.integers(1000, 90_000))),
                     ["low", "high"][i % 2]])  # fmt: skip
    return GoodTable(("contig", "position", "position", "class"), rows,
                     lambda rows: [(r[0], int(r[1]), int(r[2]), r[3]) for r in rows],
                     needed=(0, 1, 2, 3))  # fmt: skip


def make_label_table(rng: Rng) -> GoodTable:
    rows = [[f"chr{i}", ["yeast", "human", "fly"][i % 3]] for i in range(int(rng.integers(6, 9)))]
    return GoodTable(("contig", "class"), rows, lambda rows: [(r[0], 0, -1, r[1]) for r in rows],
                     needed=(0, 1))  # fmt: skip


@dataclass
class Genome:
    """What of a store a table of labels is laid on: chr0 to chr9."""

    names = tuple(f"chr{i}" for i in range(10))
    lengths = np.full(10, 20_000_000)
    offsets = np.arange(10) * 20_000_000


def load_labels(path: Path) -> Any:
    table = read_labels(path)
    genome: Any = Genome()
    place_labels(table, genome)
    labels = [table.classes[i] for i in table.labels]
    starts, ends = table.starts.tolist(), table.ends.tolist()
    return list(zip(table.contigs, starts, ends, labels, strict=True))


def cut_last(found: Any, whole: Any) -> bool:
    """All records but the last as they were, and of the last one the beginning of its letters."""
    return (
        0 < len(found) <= len(whole)
        and found[:-1] == whole[: len(found) - 1]
        and whole[len(found) - 1][-1].startswith(found[-1][-1])
    )


def make_fasta(rng: Rng) -> GoodText:
    content = [(name(rng, i), dna(rng, 70, 200)) for i in range(int(rng.integers(2, 5)))]
    text = "".join(
        f">{title} about it\n"
        + "".join(f"{letters[i : i + 60]}\n" for i in range(0, len(letters), 60))
        for title, letters in content
    )
    wanted: list[tuple[str, Kind]] = [(title, "name") for title, _ in content]
    wanted += [(letters[:60], "lines") for _, letters in content]
    return GoodText(text, content, find_values(text, wanted), cut_last)


def load_fasta(path: Path) -> Any:
    return [(record.name, record.sequence.decode().upper()) for record in read_fasta(path)]


def make_genbank(rng: Rng) -> GoodText:
    letters = dna(rng, 200, 400)
    genes = [
        (name(rng, i).replace("-", ""), 10 * i + 5, 10 * i + 5 + int(rng.integers(10, 60)))
        for i in range(3)
    ]
    lines = [
        f"LOCUS       plasmid1         {len(letters):>11} bp    DNA     linear   SYN 01-JAN-2000",
        "DEFINITION  made for a test.", "ACCESSION   plasmid1", "VERSION     plasmid1.1",
        "FEATURES             Location/Qualifiers",
        f"     source          1..{len(letters)}",
    ]  # fmt: skip
    for gene, start, end in genes:
        lines += [
            f"     gene            {start + 1}..{end}",
            f'                     /gene="{gene}"',
        ]
    lines.append("ORIGIN")
    for i in range(0, len(letters), 60):
        groups = [letters[j : j + 10] for j in range(i, min(i + 60, len(letters)), 10)]
        lines.append(f"{i + 1:>9} {' '.join(groups).lower()}")
    text = "".join(f"{line}\n" for line in [*lines, "//"])
    content = [("plasmid1.1", letters)]
    content += [(gene, letters[start:end]) for gene, start, end in genes]
    wanted: list[tuple[str, Kind]] = [(gene, "text") for gene, *_ in genes]
    wanted.append((f"{genes[0][1] + 1}..{genes[0][2]}", "position"))
    wanted.append((letters[:10].lower(), "lines"))
    return GoodText(text, content, find_values(text, wanted))


def load_genbank(path: Path) -> Any:
    records = [(record.name, record.sequence.decode()) for record in read_fasta(path)]
    return records + [(f.name, f.letters.decode()) for f in read_features(path, ["gene"])]


def motif_counts(rng: Rng) -> list[tuple[str, str, np.ndarray]]:
    return [
        (f"MA{i:04d}.1", name(rng, i), rng.multinomial(20, [0.25] * 4, int(rng.integers(4, 9))))
        for i in range(int(rng.integers(1, 4)))
    ]


def motif_content(found: list[tuple[str, str, np.ndarray]]) -> Any:
    return [(title, alias, np.round(counts / 20, 4).tolist()) for title, alias, counts in found]


def cut_motifs(found: Any, whole: Any) -> bool:
    return bool(found) and found == whole[: len(found)]


def make_jaspar(rng: Rng) -> GoodText:
    made = motif_counts(rng)
    text = "".join(
        f">{title}\t{alias}\n"
        + "".join(
            f"{letter}  [ {' '.join(f'{n:>3}' for n in counts[:, i])} ]\n"
            for i, letter in enumerate("ACGT")
        )
        for title, alias, counts in made
    )
    wanted: list[tuple[str, Kind]] = [(made[0][0], "name"), (made[-1][1], "name")]
    at = text.index("[") + 1
    digits = re.compile(r"\d+").search(text, at)
    values = [*find_values(text, wanted), (digits.start(), digits.end(), "position")]
    return GoodText(text, motif_content(made), values, cut_motifs)  # type: ignore[arg-type]


def make_meme(rng: Rng) -> GoodText:
    made = motif_counts(rng)
    text = "MEME version 4\n\nALPHABET= ACGT\n\n" + "".join(
        f"MOTIF {title} {alias}\n"
        f"letter-probability matrix: alength= 4 w= {len(counts)} nsites= 20\n"
        + "".join(" ".join(f"{n / 20:.4f}" for n in row) + "\n" for row in counts)
        + "\n"
        for title, alias, counts in made
    )
    wanted: list[tuple[str, Kind]] = [(made[0][0], "name"), (made[-1][1], "name"),
                                      (f"{made[0][2][0, 0] / 20:.4f}", "float")]  # fmt: skip
    at = text.index(" w= ") + 4
    values = [*find_values(text, wanted), (at, at + 1, "position")]
    return GoodText(text, motif_content(made), values, cut_motifs)  # type: ignore[arg-type]


def make_transfac(rng: Rng) -> GoodText:
    made = motif_counts(rng)
    text = "".join(
        f"AC {title}\nXX\nID {alias}\nXX\nP0      A      C      G      T\n"
        + "".join(
            f"{i:02d} " + " ".join(f"{n:>6}" for n in row) + "\n" for i, row in enumerate(counts, 1)
        )
        + "XX\n//\n"
        for title, alias, counts in made
    )
    wanted: list[tuple[str, Kind]] = [(made[0][0], "name"), (made[-1][1], "text")]
    return GoodText(text, motif_content(made), find_values(text, wanted), cut_motifs)


def load_motifs(path: Path) -> Any:
    return [(m.id, m.name, np.round(m.matrix, 4).tolist()) for m in read_motifs(path)]


CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"  # NCBI 1, in TCAG order
CODONS = [a + b + c for a in "TCAG" for b in "TCAG" for c in "TCAG"]


def codon_content(rows: list[Row]) -> Any:
    counts = {row[0]: float(row[1]) for row in rows}
    totals: dict[str, float] = {}
    for codon, amino in zip(CODONS, CODE, strict=True):
        totals[amino] = totals.get(amino, 0.0) + counts[codon]
    return {
        codon: round(max(1e-3, counts[codon] / totals[amino]), 6)
        for codon, amino in zip(CODONS, CODE, strict=True)
    }


def make_codons(rng: Rng) -> GoodTable:
    rows = [[codon, str(rng.integers(100, 90_000))] for codon in CODONS]
    return GoodTable(("dna", "float"), rows, codon_content, None, str(rng.choice(["\t", ",", " "])),
                     needed=(0, 1))  # fmt: skip


def load_codons(path: Path) -> Any:
    return {codon: round(weight, 6) for codon, weight in read_codon_usage(str(path), 1)}


def make_genomes(rng: Rng) -> GoodTable:
    rows = [[f"g{i}.fa", f"genome{i}", f"{rng.uniform(0.1, 3):.2f}", ["fly", "yeast"][i % 2]]
            for i in range(int(rng.integers(4, 8)))]  # fmt: skip
    header = ["path", "name", "weight", "species"]

    def content(rows: list[Row]) -> Any:
        return sorted((row[1], float(row[2]), row[3]) for row in rows)

    return GoodTable(("other", "name", "float", "class"), rows, content, header, defaults=True,
                     needed=(0, 1, 2, 3))  # fmt: skip


def load_genomes(path: Path) -> Any:
    for i in range(8):
        (path.parent / f"g{i}.fa").touch()
    return [(row.name, row.weight, row.species) for row in read_genome_list(path).rows]


READERS = {
    "FASTA": Reader(".fa", make_fasta, load_fasta),
    "GenBank and its features": Reader(".gb", make_genbank, load_genbank),
    "BED": Reader(".bed", make_bed, load_bed),
    "VCF": Reader(".vcf", make_vcf, load_variants),
    "table of variants": Reader(".csv", make_variant_table, load_variants),
    "JSON lines of variants": Reader(".jsonl", make_variant_lines, load_variants),
    "labelled classes": Reader(".csv", make_classes, load_examples),
    "labelled values": Reader(".tsv", make_values, load_examples),
    "unlabelled sequences": Reader(".csv", make_queries, load_queries),
    "labels of intervals": Reader(".bed", make_label_bed, load_labels),
    "labels of contigs": Reader(".tsv", make_label_table, load_labels),
    "list of genomes": Reader(".tsv", make_genomes, load_genomes),
    "JASPAR": Reader(".jaspar", make_jaspar, load_motifs),
    "MEME": Reader(".meme", make_meme, load_motifs),
    "TRANSFAC": Reader(".transfac", make_transfac, load_motifs),
    "codon usage": Reader(".txt", make_codons, load_codons),
}
"""Every kind of file that people bring, and its reader."""
