"""A trained model with relatives: genomes opened, judged, and fitted to the model's own genome.

Numbers are fitted on windows of the run's valid split, without the network and without the test
split. They are kept in the cache folder under what decides them, so a second call finds them.

Genomes of the model's own species are told by their identity (`strains.py`) and left out, unless
strains are wanted: with them a test is a look-up. So are those of the genome that a verb reads. It
is taken for the model's own where that is not to be had, as for published weights alone.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import make_user_recipe
from genodiff.data.store import Store
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.io.faidx import Genome
from genodiff.memory.text import NONE, Codes
from genodiff.runs.known_contigs import StoreLetters
from genodiff.runs.model import TrainedModel
from genodiff.runs.related_backbone import RelatedBackbone
from genodiff.runs.related_genome import FIT_LENGTH, FIT_WINDOWS, fit_related
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives
from genodiff.runs.strains import leave_strains_out
from genodiff.runs.training_memory import list_stretches, open_trained_store

_log = logging.getLogger("genodiff")


def relate_model(
    model: TrainedModel,
    given: Sequence[str | Path],
    *,
    strains: bool = False,
    fasta: str | Path | None = None,
    offline: bool = False,
) -> TrainedModel:
    """`model` with relatives (`relative_lists.py` says what is taken); without any, itself.

    What lacks is built and fitted. With `strains`, genomes of the same species are let in. `fasta`
    is the genome that a verb reads. Raises `DataError` for a file that cannot be read, for the
    model's own genome or that of `fasta` among them, and where all are left out; `CheckpointError`
    where the model's genome is not known and there is no `fasta`; `UsageError` for a network of
    text, or one that is not masked.

    >>> model = relate_model(model, ["yeasts.tsv"])  # doctest: +SKIP
    """
    if not given:
        return model
    if model.alphabet.domain != "dna" or model.objective.kind != "masked":
        what = "--relatives are for masked networks of DNA"
        raise UsageError(what, file=model.run, fix="leave them out")
    listed = list_genomes(given)
    store = _open_own(model, fasta, offline)
    opened = open_relatives(listed, offline=offline)
    windows = cut_fit_windows(store)
    if not len(windows):
        what = "has no window without N in its valid split, on which relatives are fitted"
        raise DataError(what, file=model.run, fix="give a run with a valid split")
    kept, near = leave_strains_out(opened, StoreLetters(store), strains=strains)
    if fasta is not None:
        with Genome(fasta, goes_round=True) as genome:
            if not genome.contigs.items() <= store.contigs.items():
                kept, near = leave_strains_out(kept, genome, strains=strains)
    if not kept:
        what = "every relative is a strain of the model's own species"
        raise DataError(what, file=listed.path, fix="give other species, or --strains")
    found = fit_related(kept, near, windows)
    return model._replace(
        backbone=RelatedBackbone(model.backbone, found.relatives, found.votes).eval(),
        digest=f"{model.digest}~{found.digest}",
        relatives={"given": [str(one) for one in given], "strains": strains, **found.told},
    )


def _open_own(model: TrainedModel, fasta: str | Path | None, offline: bool) -> Store:
    """The genome that a model was trained on; where it is not to be had, that of `fasta`."""
    other = "name its FASTA file (--fasta), or leave --relatives out"
    try:
        return open_trained_store(model, offline, fasta, needed_for="relatives", fix=other)
    except (CheckpointError, DataError) as fault:
        if fasta is None:
            raise
        _log.warning("%s; %s is taken for it", fault.what, fasta)
    return build_dna_store(make_user_recipe(fasta), fasta, offline=True, tell_splits=False)


def cut_fit_windows(store: Store) -> Codes:
    """(B, L): windows of the valid split without N, evenly spaced."""
    cut: list[Codes] = []
    stretches = [codes for _, _, codes in list_stretches(store, "valid")]
    length = min(FIT_LENGTH, max(map(len, stretches), default=0))
    for codes in stretches:
        for start in range(0, len(codes) - length + 1, max(length, 1)):
            window = codes[slice(start, start + length)]
            if len(window) and (window < NONE).all():
                cut.append(window)
    if not cut:
        return np.zeros((0, 0), np.uint8)
    chosen = np.linspace(0, len(cut) - 1, min(FIT_WINDOWS, len(cut))).astype(int)
    return np.stack([cut[i] for i in chosen])
