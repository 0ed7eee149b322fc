"""The figures on the card of a pretrained model: bits, sanity checks, truths, and baselines.

Each figure has its 95 % interval: of windows for bits, of genes, variants or promoters drawn whole
for the rest. Subsets are small enough that a model takes ten minutes on one core.
"""

import csv
import gzip
import json
import sys
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("relatives", "variants", "likelihood")]

from page import line_bits  # noqa: E402
from paired import Draws, make_auroc, make_gap  # noqa: E402
from paired import interval as spell  # noqa: E402
from yeast_laws import LAWS, Gene, draw_variants, is_frame, is_of, read_genes  # noqa: E402

import genodiff  # noqa: E402
from genodiff.io import atomic  # noqa: E402
from genodiff.io import genes as annotated  # noqa: E402
from genodiff.io.faidx import Genome  # noqa: E402

LAW_LIMIT, TRUTHS, EVERY_PLACE, SEED = 600, 600, 5, 1
COUNTED = {
    "8": "baseline, Markov order 8",
    "adaptive_from_train": "baseline, adaptive mixture of the train split alone",
    "adaptive": "baseline, adaptive mixture that also learns as it reads",
}
ALONE, OWN = "network alone", "retrieval from the training genome"
TAUGHT, TABLE = "network alone, wildtype", "substitution type alone"
RELATED, VOTES = "relatives", "votes of related genomes"
SPENT = "seconds of CPU"
VALID = ("chrXVI",)  # contigs of the valid split that have introns
Row = tuple[str, int, str, str]  # contig, place from 1, REF, ALT


class Sources(NamedTuple):
    """The files that a model is measured with; what is None is left out."""

    fasta: Path
    relatives: tuple[Path, ...] = ()
    genes: Path | None = None
    truth: Path | None = None


class Kept:
    """What was worked out, in a file, so that the same command goes on where it stopped."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        if path is not None and path.exists():
            self.known = json.loads(path.read_text(encoding="utf-8"))

    def find(self, name: str, work_out: Callable[[], Any]) -> Any:
        if name not in self.known:
            began = time.process_time()
            self.known[name] = work_out()
            spent = time.process_time() - began
            print(f"{name}: {spent:.0f} s of CPU", file=sys.stderr, flush=True)
            self.known[SPENT] = self.known.get(SPENT, 0.0) + spent
            if self.path is not None:
                atomic.write_text(self.path, json.dumps(self.known))
        return self.known[name]

    @property
    def spent(self) -> float:
        """Seconds of CPU of all that is there."""
        return float(self.known.get(SPENT, 0.0))


class Model:
    """A ready model in each of its ways: alone, with its memory, with relatives."""

    def __init__(self, folder: Path, sources: Sources, kept: Kept) -> None:
        self.folder, self.sources, self.kept = folder, sources, kept

    def evaluate(self, what: str, **given: Any) -> dict[str, Any]:
        """What `genodiff eval` says of the test split."""
        common = {"fasta": self.sources.fasta, "seed": SEED, "keep": False, "device": "cpu"}
        found: dict[str, Any] = self.kept.find(
            f"bits, {what}, {given}", lambda: genodiff.evaluate(self.folder, **common, **given)
        )
        return found

    def score(self, what: str, rows: list[Row]) -> dict[str, np.ndarray]:
        """The score of each row by each way: nats, ALT less REF."""
        related = list(map(str, self.sources.relatives))
        ways: dict[str, dict[str, Any]] = {ALONE: {}, OWN: {"memory": "on"}}
        if self.taught:
            ways[TAUGHT] = {"method": "wildtype"}
        ways |= {RELATED: {"relatives": related}} if related else {}
        found: dict[str, list[float | None]] = {}
        for way, given in ways.items():
            name = f"{what}, {way}, {given}"
            found |= self.kept.find(name, partial(self._score, way, rows, given))
        scores = {way: np.array(values, float) for way, values in found.items()}
        if TAUGHT in scores:  # what is left of it without the sequence around
            pairs = np.array([ref + alt for _, _, ref, alt in rows])
            means = {pair: scores[TAUGHT][pairs == pair].mean() for pair in set(pairs.tolist())}
            scores[TABLE] = np.array([means[pair] for pair in pairs.tolist()])
        return scores

    @cached_property
    def taught(self) -> bool:
        """Whether the model was trained with a teacher."""
        return genodiff.load(self.folder, device="cpu").config.teacher is not None

    def _score(
        self, way: str, rows: list[Row], given: dict[str, Any]
    ) -> dict[str, list[float | None]]:
        method = given.pop("method", "llr")
        model = genodiff.load(self.folder, device="cpu", **({"memory": "off"} | given))
        frame = model.score_variants(rows, fasta=self.sources.fasta, method=method)
        columns = {way: "score"} | ({VOTES: "votes"} if way == RELATED else {})
        return {name: frame[column].to_list() for name, column in columns.items()}


def make_table(
    title: str, note: str, columns: list[str], rows: dict[str, list[Any]], **more: Any
) -> dict[str, Any]:
    listed = [{"name": name, "cells": cells} for name, cells in rows.items()]
    return {"title": title, "note": note, "columns": columns, "rows": listed, **more}


def measure_bits(model: Model, most: int | None) -> dict[str, Any]:
    """Bits of the test split: the network alone, with its memory, with relatives, and counting."""
    found = model.evaluate("alone", max_windows=most, repeats=2)
    own = model.evaluate("own", max_windows=most, memory="on", baselines=False)
    rows = {ALONE: _read_bits(found), f"with its {OWN}": _read_bits(own)}
    related = [str(path) for path in model.sources.relatives]
    if related:
        name = "with " + ", ".join(path.name.split(".")[0] for path in model.sources.relatives)
        told = model.evaluate("related", max_windows=most, relatives=related, baselines=False)
        rows[name] = _read_bits(told)
    for line, name in COUNTED.items():
        bits = found["markov_bits"].get(line, line_bits(found, line))
        if bits is not None:
            rows[name] = [[round(bits, 4)]]
    windows = f"{found['windows']:,} of {found['windows_total']:,} windows of the test split"
    note = f"{windows}; upper bounds for the network, exact values for the baselines."
    return make_table("Bits per base", note, ["bits"], rows)


def _read_bits(found: dict[str, Any]) -> list[list[float]]:
    return [[round(one, 4) for one in (found["bits_per_base"], *found["ci95_bits"])]]


def measure_laws(model: Model, stretches: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """The checks on genes of the test split; introns, which are few, of the valid one too."""
    assert model.sources.genes is not None
    with Genome(model.sources.fasta) as genome:
        whole = read_frames(model.sources.genes, genome)
    inside = [g for g in whole if g.intron is None and _lies_in(g, stretches)]
    introns = [g for g in whole if g.intron is not None and g.contig in (*stretches, *VALID)]
    drawn = draw_variants([*inside, *introns], set(stretches), LAW_LIMIT, SEED)
    scores = model.score("laws", [(v.contig, v.pos, v.ref, v.alt) for v in drawn])
    draws = Draws([v.gene for v in drawn])
    rows = {}
    for law, high, low in LAWS:
        up, down = (np.array([is_of(v, kind) for v in drawn]) for kind in (high, low))
        if up.any() and down.any():
            name = f"{law.replace(' - ', ' − ')} ({up.sum():,}, {down.sum():,})"
            rows[name] = [
                spell(*draws.measure(make_gap(score, up, down))) for score in scores.values()
            ]
    note = (
        "Mean score of one kind of substitution minus that of another, in nats (numbers of each in "
        "parentheses), resampling whole genes of the test split; a check is passed if the interval "
        "is above 0."
    )
    checks = make_table("Sanity checks of coding constraint", note, list(scores), rows, law=True)
    coding = np.array([v.kind in ("synonymous", "missense") for v in drawn])
    truth = np.array([v.kind == "synonymous" for v in drawn])[coding]
    genes = np.array([v.gene for v in drawn])[coding]
    note = "Substitutions of one base in codons of the test split, resampling whole genes."
    apart = {way: score[coding] for way, score in scores.items()}
    return [checks, judge("Synonymous against missense", note, apart, truth, genes)]


def _lies_in(gene: Gene, stretches: dict[str, tuple[int, int]]) -> bool:
    start, end = stretches.get(gene.contig, (0, 0))
    return start <= gene.start and gene.end <= end


def read_frames(path: Path, genome: Genome) -> list[Gene]:
    """The open reading frames of an annotation that the genome agrees with."""
    if ".bed" in path.name:
        return read_genes(path, genome)
    found = []
    turn = str.maketrans("ACGT", "TGCA")
    for one in annotated.read_genes(path, genome.contigs):
        if len(one.coding) == 1:
            ((start, end),) = one.coding
            sequence = genome.fetch(one.contig, start, end).decode().upper()
            sequence = sequence if one.strand > 0 else sequence.translate(turn)[::-1]
            if is_frame(sequence):
                found.append(Gene(one.contig, start, end, one.name, one.strand, sequence, None))
    return found


def judge(title: str, note: str, scores: dict[str, Any], truth: np.ndarray, block: Any) -> Any:
    """A table of AUROC, a row for each score."""
    draws = Draws(block)
    rows = {way: [spell(*draws.measure(make_auroc(s, truth)))] for way, s in scores.items()}
    note = f"{note} AUROC: 0.5 is random. {truth.sum():,} of {len(truth):,} are positive."
    return make_table(title, note, ["AUROC"], rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def measure_natural(model: Model, stretches: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """SNVs that strains of yeast have, beside controls of the same bases and class."""
    assert model.sources.truth is not None
    rows = [r for r in read_rows(model.sources.truth) if r["chrom"] in stretches]
    rng = np.random.default_rng(SEED)
    rows = [rows[i] for i in sorted(rng.choice(len(rows), min(TRUTHS, len(rows)), replace=False))]
    snvs = [(r["chrom"], int(r["pos"]), r["ref"], r["alt"]) for r in rows]
    scores = model.score("natural", snvs)
    strong = np.array([(r["alt"] in "GC") - (r["ref"] in "GC") for r in rows], float)
    pairs = ({"A", "G"}, {"C", "T"})
    scores |= {
        "baseline: GC is unchanged": -np.abs(strong),
        "baseline: transition": np.array([{r["ref"], r["alt"]} in pairs for r in rows], float),
        "baseline: synonymous": np.array(
            [not r["kind"].startswith("missense") for r in rows], float
        ),
    }
    note = "SNVs of six strains beside controls of the same bases and the same class of position."
    truth = np.array([r["natural"] == "1" for r in rows])
    return judge("Natural variants", note, scores, truth, np.arange(len(rows)))


def measure_footprints(model: Model, _: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """The places of E. coli promoters that matter most for expression."""
    assert model.sources.truth is not None
    rows = read_rows(model.sources.truth)[::EVERY_PLACE]
    (contig,) = {one for one, _ in _list_contigs(model.sources.fasta)}
    base = [r["ref_plus_strand"] for r in rows]
    given: list[Row] = []
    for r, own in zip(rows, base, strict=True):
        given += [(contig, int(r["pos_MG1655"]), own, x) for x in "ACGT" if x != own]
    known = model.score("footprints", given)
    scores = {way: -s.reshape(-1, 3).mean(1) for way, s in known.items()}
    index = np.array([int(r["index"]) for r in rows])
    scores["baseline: distance to -35 and -10"] = -np.minimum(abs(index - 80), abs(index - 105))
    scores["baseline: GC"] = np.array([one in "GC" for one in base], float)
    told = np.array([float(r["info_mean"]) for r in rows])
    note = f"The 5 % of places that say most of expression, of every {EVERY_PLACE}th place."
    top = told >= np.quantile(told, 0.95)
    block = np.array([r["gene"] for r in rows])
    return judge("Footprints in promoters", note, scores, top, block)


def _list_contigs(fasta: Path) -> list[tuple[str, int]]:
    with Genome(fasta) as genome:
        return list(genome.contigs.items())


TRUTH_SETS: dict[str, Callable[[Model, dict[str, tuple[int, int]]], dict[str, Any]]] = {
    "yeast": measure_natural,
    "yeast-taught": measure_natural,
    "ecoli": measure_footprints,
}


def measure(
    name: str,
    folder: Path,
    sources: Sources,
    stretches: dict[str, tuple[int, int]],
    most: int | None = None,
    kept: Kept | None = None,
) -> list[dict[str, Any]]:
    """The tables of a model's card."""
    model = Model(folder, sources, kept or Kept(None))
    tables = [measure_bits(model, most)]
    if sources.genes is not None:
        tables += measure_laws(model, stretches)
    if sources.truth is not None and name in TRUTH_SETS:
        tables.append(TRUTH_SETS[name](model, stretches))
    return tables
