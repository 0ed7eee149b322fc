"""`report.html`: one run on one page that needs no network, no fonts and no scripts.

The page also says what is not known. `render_page` turns the parts of a run folder into plain
values, the template only lays them out, with everything escaped but the figures, which are ours.
The same inputs give the same bytes.

Samples are compared with held-out real sequence, Markov sequence and the toy's source, all from the
run's own recipe and files, as far as they are on this machine. The k-mer counts of the train split
are the ones that the evaluation made.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import DNA, LETTERS, SOFT, encode_bases
from genodiff.counter import Purpose, generator
from genodiff.data.dna_store import DnaStore, build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.kmers import measure_shared_cover, shared_kmers
from genodiff.data.recipe import SPLITS, Recipe
from genodiff.data.store import split_stretches
from genodiff.data.toy import ToySource
from genodiff.domain import TEXT
from genodiff.errors import DataError, GenodiffError
from genodiff.evaluation.lines import MARKOV_ORDER, count_train_words
from genodiff.evaluation.markov import fit
from genodiff.io import atomic
from genodiff.io.progress import say_slow
from genodiff.io.target import seal_page
from genodiff.reports import blocks, figures
from genodiff.reports.comparison import Comparison, Ids, compare_sequences
from genodiff.reports.evaluation import Evaluation
from genodiff.reports.findings import list_evaluation_findings, list_findings, measure_gap_closed
from genodiff.reports.folder import RunParts, read_folder
from genodiff.reports.template import render_template
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import find_recipe
from genodiff.statistics.seeds import TOO_FEW

_OWN = "Other evaluations of the run's own data"
_FOREIGN = "On other data"
_SECTIONS = "headline", "training", "detail", "generated", "configuration", "provenance"


def write_report(
    run: Path, out: Path | None = None, *, samples: Path | None = None, offline: bool = True
) -> Path:
    """Write the report of the run folder `run`, atomically, and return its path.

    The default for `out` is `run`/report.html. `samples` is a file in place of the run's own.
    `offline`: real sequence to compare samples with is taken from data that are already here, never
    fetched. Raises CheckpointError where `run` is no run folder.
    """
    target = run / "report.html" if out is None else out
    with say_slow(f"drawing {target}"):
        folder = read_folder(run, samples)
        reference, note = open_reference(folder, offline=offline)
        comparison = None if reference is None else reference.comparison(folder)
        windows = [] if reference is None else reference.windows()
        page = render_page(folder, comparison, note, windows)
    atomic.write_text(target, seal_page(page))
    return target


def render_page(
    folder: RunParts,
    comparison: Comparison | None = None,
    note: str = "",
    windows: Sequence[tuple[str, str]] = (),
) -> str:
    """The page as text.

    `comparison` sets samples beside real DNA, and `note` says why there is none. `windows` has a
    line for each split.
    """
    evaluation, samples, unit = folder.evaluation, folder.samples or [], folder.domain.size_unit
    context: dict[str, Any] = dict.fromkeys(("lines", "regions", "contigs"), ())
    context |= {"headline": None, "soft_mask": "", "contigs_left": 0}
    lines: list[figures.BitsLine] = []
    if evaluation is not None:
        lines, left = blocks.list_lines(evaluation), len(evaluation.contigs) - blocks.MOST_CONTIGS
        context |= {
            "headline": blocks.make_headline(evaluation, folder.with_memory),
            "lines": blocks.list_line_rows(evaluation, lines),
            "regions": blocks.list_region_rows(evaluation),
            "soft_mask": blocks.describe_soft_mask(evaluation),
            "contigs": blocks.list_contig_rows(evaluation),
            "contigs_left": max(0, left),
        }
    titles = [f"Bits per {unit}", "Training", "Bits by region", folder.domain.samples_title]
    titles += ["Configuration", "Provenance"]
    context |= {
        "unit": unit,
        "is_text": folder.domain is TEXT,
        "name": folder.path.resolve().name,
        "subtitle": blocks.subtitle(folder),
        "contents": list(zip(_SECTIONS, titles, strict=True)),
        "commands": blocks.list_commands(folder),
        "again": f"genodiff report {shlex.quote(str(folder.path))}",
        "others": list_other_tables(folder),
        "findings": list_findings(folder),
        "figures": _figures(folder, comparison, lines),
        "training": blocks.describe_training(folder),
        "card": blocks.make_card(comparison) if comparison is not None else None,
        "card_note": note,
        "samples": [blocks.sample(s, folder.domain) for s in samples[: blocks.MOST_SAMPLES]],
        "samples_total": f"{len(samples):,}",
        "config": folder.config_text,
        "provenance": blocks.list_provenance(folder.provenance, list(windows)),
    }
    return render_template("page.html.jinja", context)


def _figures(
    folder: RunParts, comparison: Comparison | None, lines: list[figures.BitsLine]
) -> dict[str, str]:
    """The figures that these parts allow; the others are empty strings."""
    drawn = dict.fromkeys(("line", "curves", "mask_rate", "kmers", "js", "gc", "runs"), "")
    evaluation, unit = folder.evaluation, folder.domain.size_unit
    uniform = figures.BitsLine("uniform", "uniform", folder.domain.uniform_bits)
    anchors = [x for x in lines if x.role != "model"] or [uniform]
    scale = evaluation.tokens_per_byte if evaluation is not None else 1.0
    model = next((x for x in lines if x.role == "model"), None)
    if evaluation is not None:
        drawn["line"] = figures.draw_number_line(lines, measure_gap_closed(evaluation), unit)
    if folder.metrics is not None and folder.metrics.get("loss_bits"):
        loss = [scale * bits for bits in folder.metrics["loss_bits"]]
        steps, rows = folder.metrics["step"], blocks.read_validations(folder)
        valid = [(step, scale * bits, scale * half) for step, bits, half in rows]
        drawn["curves"] = figures.draw_curves(steps, loss, valid, anchors, model, unit)
    if evaluation is not None and (curve := blocks.read_curve(evaluation)):
        rate, bits, half = zip(*curve, strict=True)
        drawn["mask_rate"] = figures.draw_mask_rate_curve(
            rate, bits, half, evaluation.bits_per_base, anchors, unit
        )
    if comparison is not None:
        card = comparison.card
        drawn["kmers"] = figures.draw_trinucleotides(comparison.words, comparison.spectra)
        sets = [figures.Series("samples", "samples", card.js_samples)]
        if card.js_markov is not None:
            sets.append(figures.Series("markov", comparison.markov_name, card.js_markov))
        sets.append(figures.Series("real", "other real sequence (floor)", card.js_floor))
        drawn["js"] = figures.draw_distances(card.kmer_sizes, sets)
        drawn["gc"] = figures.gc_histogram(blocks.make_series(comparison, "gc"))
        drawn["runs"] = figures.draw_homopolymers(blocks.make_series(comparison, "homopolymers"))
    return drawn


def list_other_tables(folder: RunParts) -> list[dict[str, Any]]:
    """Title and rows of each other table; other data never stand in one with the run's own."""
    rows: dict[str, list[dict[str, Any]]] = {_OWN: [], _FOREIGN: []}
    for name, e in folder.evaluations.items():
        if name != folder.headline:
            title = _OWN if folder.is_own(name) else _FOREIGN
            rows[title].append(_other_row(name, e, folder.weights))
    return [{"title": title, "rows": found} for title, found in rows.items() if found]


def _other_row(name: str, e: Evaluation, weights: str) -> dict[str, Any]:
    best, windows = e.best_line(), ""
    said = [finding.text for finding in list_evaluation_findings(e)]
    if e.checkpoint and weights and not weights.startswith(e.checkpoint):
        step = "" if e.step is None else f" (step {e.step:,})"
        said.append(f"Made from other weights than model.safetensors{step}.")
    if e.windows is not None and e.windows_total is not None:
        again = f", {e.repeats} masks each" if e.repeats and e.repeats > 1 else ""
        windows = f"{e.windows:,} of {e.windows_total:,}{again}"
    return {
        "name": name,
        "scored": f"{e.tokens:,}",
        "windows": windows,
        "bits": f"{'=' if e.figure == 'exact' else '≤'} {e.bits_per_base:.3f}",
        "interval": blocks.format_interval(e.ci95_bits) or TOO_FEW,
        "best": "" if best is None else f"{best.bits:.3f} ({best.kind.title})",
        "notes": " ".join(said),
    }


MOST_REAL = 512  # windows
MOST_LENGTH = 1 << 14  # bases of each, and of each Markov sequence
MOST_COPIED = 1 << 27  # bases of a train split in which copies are looked for, for up to a minute
ORDER = 5  # of the Markov sequence where no evaluation says which order is best


class ReferenceData(NamedTuple):
    """The data of a run, open for reading."""

    recipe: Recipe
    store: DnaStore
    config: RunConfig

    def windows(self) -> list[tuple[str, str]]:
        """Of each split, how many windows it has and what was left out of it."""
        found = []
        for split in SPLITS:
            try:
                found.append((split, self._windows(split, self.config.data.seq_len).summary()))
            except GenodiffError as fault:
                found.append((split, fault.what))
        return found

    def comparison(self, folder: RunParts) -> Comparison | None:
        """The run's samples beside real and Markov sequence.

        It is None without samples, or with fewer than two real windows.
        """
        samples = [DNA.encode(s.sequence) for s in folder.samples or [] if s.sequence]
        if not samples:
            return None
        evaluation = folder.evaluation
        split = "test" if evaluation is None else evaluation.split
        split = split if split in SPLITS else "test"
        length = min(int(np.median([len(s) for s in samples])), MOST_LENGTH)
        try:
            tiles = self._windows(split, length).spread(MOST_REAL)
        except DataError:  # the samples are longer than every held-out interval
            tiles = self._windows(split, self.config.data.seq_len).spread(MOST_REAL)
        if len(tiles) < 2:
            return None
        real = [
            np.asarray(self.store.flat[a : a + n]) & np.uint8(0xFF ^ SOFT)
            for a, n in zip(tiles.flat_start, tiles.length, strict=True)
        ]
        lines = {} if evaluation is None else evaluation.markov()
        order = min((k for k in lines if k > 0), key=lambda k: lines[k], default=ORDER)
        words = count_train_words(self.store, MARKOV_ORDER, legacy_caduceus_tiling=tiles.legacy)
        markov = fit(words)
        drawn = markov.sample(
            len(samples), length, generator(self.config.seed, Purpose.BASELINE), order
        )
        toy = self.recipe.generator == "toy" and self.store.source.path is None
        is_large = self.store.splits.intervals["train"].n_bases > MOST_COPIED
        return compare_sequences(
            samples,
            real,
            [DNA.encode(LETTERS[row].tobytes()) for row in drawn],
            markov_name=f"Markov {order}",
            source_bits=measure_source_bits if toy else None,
            copied=None if toy or is_large else self._copied,
        )

    def _copied(self, sequences: Sequence[Ids]) -> float:
        """The share of the bases of `sequences` in 24-mers that train has too, on either strand."""
        codes = [encode_bases(ids) for ids in sequences]
        train = split_stretches(
            self.store, "train", legacy_caduceus_tiling=self.config.data.legacy_caduceus_tiling
        )
        share = measure_shared_cover(codes, shared_kmers(codes, train))
        return float(np.average(share, weights=[max(len(c), 1) for c in codes]))

    def _windows(self, split: str, length: int) -> DnaWindows:
        legacy = self.config.data.legacy_caduceus_tiling
        return DnaWindows(self.store, self.recipe, split, length, legacy_caduceus_tiling=legacy)


def open_reference(folder: RunParts, *, offline: bool = True) -> tuple[ReferenceData | None, str]:
    """The data of the run in `folder`, or None and the reason in words."""
    what = "The samples are not compared with real sequence"
    if folder.settings is None:
        return None, f"{what}: the run's configuration cannot be read."
    config = folder.settings
    if config.domain == TEXT.name:
        return None, ""
    try:
        recipe = find_recipe(config)
        fasta = None if config.fasta is None else Path(config.fasta)
        return ReferenceData(recipe, build_dna_store(recipe, fasta, offline=offline), config), ""
    except (GenodiffError, OSError) as fault:
        return None, f"{what}, which is not available: {fault}"


def measure_source_bits(sequences: Sequence[Ids]) -> float:
    """Bits per base of a set under the toy's true source, each sequence a fresh draw."""
    toy = ToySource()
    longest = max(len(s) for s in sequences)
    rows = np.full((len(sequences), longest), DNA.pad_id, np.uint8)
    for row, ids in zip(rows, sequences, strict=True):
        row[: len(ids)] = ids
    return toy.bits_per_base(rows)
