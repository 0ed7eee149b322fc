"""Generated DNA beside floors and ceilings: `genodiff.scorecard`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.domain import DNA
from genodiff.errors import DataError, UsageError
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_input, check_run
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.data.dna_windows import DnaWindows
    from genodiff.evaluation.markov import Markov
    from genodiff.quality.scorecard import Ids
    from genodiff.reports.scorecard_rows import FigureRow
    from genodiff.runs.model import TrainedModel
    from genodiff.studies.real_sequence import RealSequence
    from genodiff.studies.sample_quality import Embed
    from genodiff.studies.train_text import TrainText

    Train = tuple[TrainText | None, Markov | None, int]

MOST = 1000
"""Sequences of each set, by default: more make all figures surer, and the verb slower."""


@own_defaults()
def scorecard(
    samples: Any,
    *,
    run: str | Path | None = None,
    real: Any = None,
    train: Any = None,
    motifs: str | Path | None = None,
    embed: str | Path | None = None,
    split: Literal["test", "valid"] = "test",
    fasta: str | Path | None = None,
    cnn: bool = False,
    most: int = MOST,
    html: str | Path | None = None,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """How near generated DNA is to real DNA, beside a floor and Markov sequence, as plain values.

    `samples` is a file, or sequences as strings or records; `most` of them are drawn by `seed` in
    one pass. Real sequence is the `split` of the data of `run` (a run folder; `fasta` is its genome
    where it has moved), or what `real` holds. Then `train`, a run folder or sequences, is what
    Markov models count and what copies are looked for in. `motifs` is a MEME, JASPAR or TRANSFAC
    file. `embed` is a run whose embeddings are compared (default: `run`). `cnn` adds a
    convolutional discriminator, which takes minutes.

    `sets` holds the same figures of the samples, of other real sequence of the same size, and of
    Markov sequence of orders 1, 5 and 8; `findings` says where samples are off the floor. `html` is
    a page to write, and `force` replaces a file there that genodiff did not write. Raises
    `UsageError`, `DataError`, `CheckpointError`, `MachineError`.
    """
    if (run is None) == (real is None):
        raise UsageError(
            "real sequence comes from a run or from a file",
            fix="give --model RUN, or --real FASTA with --train FASTA",
        )
    if run is not None:
        check_run(run)
        if train is not None:
            raise UsageError("--train is for --real", fix="leave it out: the run has a train split")
    if fasta is not None and run is None and not is_run(train):
        raise UsageError("--fasta is for --model and --train RUN", fix="leave it out")
    if most < 2:
        raise UsageError(f"--most {most} is below 2", fix="give 1000, say")
    if embed is not None:
        check_run(embed)
    for given in (samples, real, train, fasta, motifs):
        if isinstance(given, Path):
            check_input(given)
    if html is not None:
        check_page(html, (samples, real, train, fasta, motifs), force=force)
    device = choose_device(device)
    import numpy as np

    from genodiff.io.motifs import read_motifs
    from genodiff.io.progress import ProgressDisplay
    from genodiff.studies.real_sequence import cut_windows, draw_some, open_real
    from genodiff.studies.sample_findings import list_sample_findings
    from genodiff.studies.sample_quality import Measures, measure_all

    listed = () if motifs is None else read_motifs(motifs)
    sequences, total = draw_some((ids for ids in read_ids(samples) if len(ids)), most, seed)
    if not sequences:
        raise DataError("there is no sample to measure", fix="give at least one sequence")
    length = int(np.median([len(ids) for ids in sequences]))
    with ProgressDisplay() as display:
        display.show("reading real sequence")
        if run is not None:
            beside = _open_run(run, split, length, len(sequences), fasta, offline, seed)
        else:
            text, markov, bases = open_train(train, fasta, offline)
            windows = cut_windows(read_ids(real), length)
            beside = open_real(windows, text, len(sequences), markov=markov, bases=bases, seed=seed)
        network = embed if embed is not None else run
        reader = None if network is None else open_embedding(network, device)
        how = Measures(("kmers", "cnn") if cnn else ("kmers",), listed, reader, seed)
        measured = measure_all(sequences, beside, how, display.show)
    found = {
        "genodiff": __version__,
        "samples": total,
        "compared": min(len(sequences), len(beside.target)),
        "length": length,
        "train_bases": beside.bases,
        **measured,
        "findings": list_sample_findings(measured["sets"]),
    }
    if html is not None:
        from genodiff.io import atomic
        from genodiff.io.target import seal_page
        from genodiff.reports.scorecard_page import render_scorecard

        atomic.write_text(Path(html), seal_page(render_scorecard(name_of(samples), found)))
    return found


def check_page(html: str | Path, inputs: tuple[Any, ...], *, force: bool) -> None:
    """Raises where a page must not be written: see `check_target`."""
    from genodiff.io.target import check_target, is_stream

    if is_stream(html):
        raise UsageError("--html needs the name of a file", fix="give --html page.html")
    given = [one for one in inputs if isinstance(one, str | Path)]
    check_target(html, force=force, inputs=given)


def name_of(given: Any) -> str:
    """What a page calls sequences: their file's name."""
    return Path(given).name if isinstance(given, Path) else "sequences in memory"


def is_run(given: Any) -> bool:
    """Whether `given` is a folder: a run or a checkpoint."""
    return isinstance(given, str | Path) and Path(given).is_dir()


def read_ids(given: Any) -> Iterator[Ids]:
    """The sequences in `given` as ids, one by one; none where it is None."""
    from genodiff.alphabet import DNA as LETTERS
    from genodiff.io.sequences import read_sequences

    if given is not None:
        yield from (LETTERS.encode(record.sequence) for record in read_sequences(given))


def open_train(train: Any, fasta: str | Path | None, offline: bool) -> Train:
    """A text to search, a Markov model and the bases of `train`: a run, or sequences, or None."""
    from genodiff.studies import real_sequence
    from genodiff.studies.train_text import TrainText

    if train is None:
        return None, None, 0
    if is_run(train):
        windows = _open_split(train, "test", None, fasta, offline)
        return real_sequence.open_train(windows.store, windows.legacy)
    if isinstance(train, Iterator):
        train = list(train)  # it is read twice
    if str(train) == "-":
        raise UsageError("--train is read twice, and stdin is not", fix="give a file")
    markov, bases = real_sequence.count_markov(read_ids(train))
    return TrainText(lambda: read_ids(train)), markov, bases


def open_embedding(run: str | Path, device: str) -> Embed:
    """A function from sequences to the embeddings of a run: last layer, mean, both strands."""
    import numpy as np

    from genodiff.alphabet import DNA as LETTERS
    from genodiff.alphabet import SOFT
    from genodiff.embedding.embed import Window, embed, make_reading
    from genodiff.kernels.allocator import keep_freed_memory
    from genodiff.models.opening import open_language

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


def _open_run(
    run: str | Path,
    split: Any,
    length: int,
    n: int,
    fasta: str | Path | None,
    offline: bool,
    seed: int,
) -> RealSequence:
    """Real sequence of the split, in windows of `length`, and the train split of the same data."""
    from genodiff.studies.real_sequence import open_real_of_run

    windows = _open_split(run, split, length, fasta, offline)
    return open_real_of_run(windows, n, seed=seed, legacy_caduceus_tiling=windows.legacy)


def _open_split(
    run: str | Path, split: Any, length: int | None, fasta: str | Path | None, offline: bool
) -> DnaWindows:
    from genodiff.data.dna_windows import DnaWindows
    from genodiff.evaluation.eval_data import open_data
    from genodiff.evaluation.eval_options import EvalOptions
    from genodiff.runs.model import load_model

    model: TrainedModel = load_model(Path(run), device="cpu")
    if model.alphabet.domain != DNA.name:
        raise UsageError(
            "a scorecard is of DNA, and this is a run of text", fix="use `genodiff judge`"
        )
    if length is not None:
        section = model.config.data.model_copy(update={"seq_len": length})
        model = model._replace(config=model.config.model_copy(update={"data": section}))
    options = EvalOptions(split=split, offline=offline, fasta=None if fasta is None else str(fasta))
    data = open_data(model, options)
    assert isinstance(data.windows, DnaWindows)
    return data.windows


def list_rows(sets: Mapping[str, Any]) -> list[FigureRow]:
    """The rows of a table of `sets`, with their digits."""
    from genodiff.reports.scorecard_rows import list_scorecard_rows

    return list_scorecard_rows(sets)
