"""A trained model with relatives: genomes opened, judged, and fitted to the genome that is read.

Numbers are fitted on windows of that genome, without the network. Where it is the model's own, or
where a verb reads none, they are windows of the valid split; of any other genome they are drawn at
even distances, and whatever is in the cache of the model's own decides nothing. Contigs that hold
a test split of the model's recipe are kept out. The numbers are cached under what decides them.

Genomes of the species that is read are told by their identity (`related_genome.py`) and left out,
unless strains are wanted: with them the held-out answers are in the reference set.

A network with relatives is a backbone as any other (`related_backbone.py`).
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import Recipe
from genodiff.data.store import Store
from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io.faidx import Genome
from genodiff.memory.text import Codes
from genodiff.registry import find_named
from genodiff.runs.config import OWN
from genodiff.runs.known_contigs import LetterSource, StoreLetters
from genodiff.runs.no_network import RELATED, RelatedComposition
from genodiff.runs.related_genome import (
    FIT_LENGTH,
    FIT_WINDOWS,
    draw_fit_windows,
    fit_related,
    is_fitted_to,
    leave_strains_out,
)
from genodiff.runs.related_reader import RelatedReader
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives
from genodiff.runs.relatives_plan import count_waiting
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import (
    cut_windows,
    is_own_genome,
    list_stretches,
    open_trained_store,
)

_NAME_GENOME = "name its FASTA file: --fasta, or --template of sample"
_log = logging.getLogger("genodiff")


class FitTarget(NamedTuple):
    """The genome that relatives are fitted to: windows of it, its letters, its file's sha256."""

    windows: Codes
    letters: LetterSource
    sha256: str


def relate_model(
    model: TrainedModel,
    given: Sequence[str | Path],
    *,
    strains: bool = False,
    fasta: str | Path | None = None,
    plan: bool = False,
) -> TrainedModel:
    """Return `model` with relatives (`relative_lists.py` lists what is taken); without any, itself.

    Genomes that lack are built, and their numbers fitted. With `strains`, genomes of the same
    species are let in. `fasta` is the genome that a verb reads. With `plan` nothing is built or
    fitted: a model whose relatives are not ready remembers what they would take
    (`describe_waiting`). Raises `DataError` for a file that cannot be read, for the model's own
    genome or that of `fasta` among them, and where all are left out; `CheckpointError` where the
    model's genome is not known and there is no `fasta`; `UsageError` for a network of text, or one
    that is not masked.

    >>> model = relate_model(model, ["yeasts.tsv"])  # doctest: +SKIP
    """
    if not given:
        return model if fasta is None else _adapt_to(model, fasta)
    if model.alphabet.domain != "dna" or not model.is_masked:
        what = "--relatives are for masked networks of DNA"
        raise UsageError(what, file=model.run, fix="leave them out")
    listed = list_genomes(given)
    if plan and (waiting := count_waiting(listed)) is not None:
        return model._replace(relatives=waiting)
    with ExitStack() as stack:
        target = open_target(model, fasta, stack)
        if not len(target.windows):
            what = "has no window without N on which relatives are fitted"
            fix = "give a genome with longer contigs, or a run with a valid split"
            raise DataError(what, file=fasta or model.run, fix=fix)
        opened = open_relatives(listed, target=target.letters)
        kept, near = leave_strains_out(opened, target.letters, strains=strains)
    if not kept:
        what = "every relative is a strain of the genome's own species"
        raise DataError(what, file=listed.path, fix="give other species, or --strains")
    if plan and not is_fitted_to(kept, target.windows):
        return model._replace(relatives=count_waiting(listed, fits=True))
    found = fit_related(kept, near, target.windows)
    model, given_to = model.adapt_to(target.windows), (*found[:3], target.sha256)
    network: RelatedReader
    if model.reads_network:
        network = find_named(RELATED)(model.backbone, *given_to).eval()
    else:  # one of NumPy
        network = RelatedComposition(model.network, *given_to)
    return model._replace(
        network=network,
        digest=f"{model.digest}~{found.digest}",
        relatives={"given": [str(one) for one in given], "strains": strains, **found.told},
    )


def refit_model(model: TrainedModel, genome: object) -> TrainedModel:
    """An opened model, its relatives fitted to the `genome` read. Raises as `relate_model`."""
    if not isinstance(genome, Genome):
        return model
    fasta, told, network = genome.path, model.relatives, model.network
    if not isinstance(network, RelatedReader) or told is None:
        return relate_model(model, (), fasta=fasta)
    if network.fitted_to == genome.sha256:
        return model
    if genome.sha256 not in network.refitted:
        digest = model.digest.rpartition("~")[0]
        plain = model._replace(network=network.network, digest=digest, relatives=None)
        found = relate_model(plain, told["given"], strains=told["strains"], fasta=fasta)
        network.refitted[genome.sha256] = found
    return network.refitted[genome.sha256]


def _adapt_to(model: TrainedModel, fasta: str | Path) -> TrainedModel:
    """The model; without a network, with the base composition of a genome."""
    if model.reads_network:
        return model
    _log.warning("%s without related genomes knows the share of each base alone; give --relatives",
                 model.run.name)  # fmt: skip
    with Genome(fasta, goes_round=True) as genome:
        return model.adapt_to(draw_fit_windows(genome))


def open_target(model: TrainedModel, fasta: str | Path | None, stack: ExitStack) -> FitTarget:
    """The genome that relatives are fitted to: `fasta`, or the model's own, whatever is cached."""
    if fasta is None:
        if not model.reads_network:
            what = f"the model '{model.run.name}' has no genome of its own"
            raise UsageError(what, fix=_NAME_GENOME)
        fix = "name its FASTA file (--fasta), or leave --relatives out"
        return _aim_at(open_trained_store(model, False, needed_for="relatives", fix=fix))
    genome = stack.enter_context(Genome(fasta, goes_round=True))
    if not model.reads_network:
        return FitTarget(draw_fit_windows(genome), genome, genome.sha256)
    recipe = _find_recipe(model)
    if is_own_genome(recipe, model.data, genome):
        return _aim_at(build_dna_store(recipe, fasta, offline=True, tell_splits=False))
    what = "Using %s as the target genome for the relatives (it is not the model's training genome)"
    _log.warning(what, fasta)
    tests = list_test_lengths(recipe)
    rest = {name: n for name, n in genome.contigs.items() if n not in tests}
    if not rest:
        _log.warning("%s contains only contigs of the model's test split", fasta)
    windows = draw_fit_windows(genome, rest or genome.contigs)
    return FitTarget(windows, genome, genome.sha256)


def _aim_at(store: Store) -> FitTarget:
    return FitTarget(cut_fit_windows(store), StoreLetters(store), store.source.sha256)


def _find_recipe(model: TrainedModel) -> Recipe:
    """The recipe of a model's training genome; one that accepts any where it is not known here."""
    try:
        return cast(Recipe, find_named("genodiff.runs.feed:find_recipe")(model.config))
    except GenodiffError:
        return Recipe(name=OWN)


def list_test_lengths(recipe: Recipe) -> set[int]:
    """The lengths of a recipe's test contigs, by which another file's are known."""
    pieces = () if recipe.splits is None or recipe.splits.test == "rest" else recipe.splits.test
    names = {one if isinstance(one, str) else one[0] for one in pieces}
    return {recipe.contigs[name] for name in names if name in recipe.contigs}


def cut_fit_windows(store: Store, split: str = "valid") -> Codes:
    """(B, L): windows of a split without N, evenly spaced."""
    longest = max((len(codes) for _, _, codes in list_stretches(store, split)), default=1)
    cut = cut_windows(store, split, min(FIT_LENGTH, longest))
    return cut[np.linspace(0, len(cut) - 1, min(FIT_WINDOWS, len(cut))).astype(int)]
