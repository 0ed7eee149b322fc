"""Generated DNA beside floors and ceilings: the work of `scorecard`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.alphabet import DNA as LETTERS
from genodiff.alphabet import SOFT
from genodiff.data.dna_windows import DnaWindows
from genodiff.domain import DNA
from genodiff.embedding.embed import Window, embed, make_reading
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.request import EvalOptions
from genodiff.io import atomic
from genodiff.io.motifs import read_motifs
from genodiff.io.process import keep_freed_memory
from genodiff.io.progress import ProgressDisplay, say_slow
from genodiff.io.sequences import read_sequences
from genodiff.io.target import seal_page
from genodiff.jobs.machine import choose_device
from genodiff.jobs.request import find_named
from genodiff.models.opening import open_language
from genodiff.quality.real_sequence import (
    TrainSplit,
    choose_evenly,
    cut_windows,
    draw_some,
    open_real,
    open_real_of_run,
    open_split,
    read_train,
)
from genodiff.quality.requests import ScorecardRequest, is_run
from genodiff.quality.sample_quality import Embed, Measures, compare_motifs, measure_sets
from genodiff.quality.scorecard import Ids
from genodiff.quality.scorecard_figures import list_sample_findings
from genodiff.runs.model import load_model
from genodiff.version import __version__

_PAGE = "genodiff.reports.scorecard_page:render_scorecard"


def measure_scorecard(asked: ScorecardRequest) -> dict[str, Any]:
    """What `genodiff.scorecard` returns."""
    device, seed = choose_device(asked.device), asked.seed
    listed = () if asked.motifs is None else read_motifs(asked.motifs)
    given = (ids for ids in read_ids(asked.samples) if len(ids))
    sequences, total = draw_some(given, asked.most, seed)
    if not sequences:
        raise DataError("there is no sample to measure", fix="give at least one sequence")
    length = int(np.median([len(ids) for ids in sequences]))
    with ProgressDisplay() as display:
        display.show("reading real sequence")
        n = len(sequences)
        if asked.run is not None:
            # Windows of `length` of the split, and the train split of the same data.
            split = _open_split(asked.run, asked.split, length, asked.fasta, asked.offline)
            beside = open_real_of_run(split, n, seed=seed)
        else:
            train = open_train(asked.train, asked.fasta, asked.offline)
            beside = open_real(cut_windows(read_ids(asked.real), length), n, train, seed=seed)
        network = asked.embed if asked.embed is not None else asked.run
        reader = None if network is None else open_embedding(network, device)
        how = Measures(("kmers", "cnn") if asked.cnn else ("kmers",), listed, reader, seed)
        sets = {"samples": sequences, "real": beside.floor, **beside.markov}
        measured: dict[str, Any] = {"sets": measure_sets(sets, beside, how, display.show)}
        if listed:
            chosen = choose_evenly(sequences, min(n, len(beside.target)))
            measured["motifs"] = compare_motifs(chosen, beside.target, listed)
    found = {
        "genodiff": __version__,
        "samples": total,
        "compared": min(n, len(beside.target)),
        "length": length,
        "train_bases": beside.bases,
        **measured,
        "findings": list_sample_findings(measured["sets"]),
    }
    if asked.html is not None:
        samples = asked.samples
        name = samples.name if isinstance(samples, Path) else "sequences in memory"
        with say_slow(f"drawing {asked.html}"):
            atomic.write_text(Path(asked.html), seal_page(find_named(_PAGE)(name, found)))
    return found


def read_ids(given: Any) -> Iterator[Ids]:
    """The sequences in `given` as ids, one by one; none where it is None."""
    if given is not None:
        yield from (LETTERS.encode(record.sequence) for record in read_sequences(given))


def open_train(train: Any, fasta: str | Path | None, offline: bool) -> TrainSplit:
    """What is known of `train`: a run, or sequences, or None."""
    if train is None:
        return TrainSplit()
    if is_run(train):
        return open_split(_open_split(train, "test", None, fasta, offline))
    if isinstance(train, Iterator):
        train = list(train)  # it is read twice
    if str(train) == "-":
        raise UsageError("--train is read twice, and stdin is not", fix="give a file")
    return read_train(lambda: read_ids(train))


def open_embedding(run: str | Path, device: str) -> Embed:
    """A function from sequences to the embeddings of a run: last layer, mean, both strands."""
    model = open_language(run, device)
    network = model.backbone
    how = make_reading(network, model.alphabet, [-1], "mean", "average")
    keep_freed_memory()

    def read(sequences: Any) -> Any:
        texts = [LETTERS.decode(ids & np.uint8(0xFF ^ SOFT)).encode() for ids in sequences]
        windows = (Window(str(i), 0, len(text), "", text) for i, text in enumerate(texts))
        rows = [row for _, row in embed(network, model.alphabet, windows, how)]
        return np.stack(rows).astype(np.float64)

    return read


def _open_split(
    run: str | Path, split: Any, length: int | None, fasta: str | Path | None, offline: bool
) -> DnaWindows:
    model = load_model(Path(run), device="cpu")
    if model.alphabet.domain != DNA.name:
        what = "a scorecard needs DNA, and this is a run of text"
        raise UsageError(what, fix="use `genodiff eval RUN --text FILE`")
    if length is not None:
        section = model.config.data.model_copy(update={"seq_len": length})
        model = model._replace(config=model.config.model_copy(update={"data": section}))
    options = EvalOptions(split=split, offline=offline, fasta=None if fasta is None else str(fasta))
    data = open_data(model, options)
    assert isinstance(data.windows, DnaWindows)
    return data.windows
