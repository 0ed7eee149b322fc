"""A trained model with relatives: genomes opened, judged, and fitted to the genome that is read.

Numbers are fitted on windows of that genome, without the network. Where it is the model's own, or
where a verb reads none, they are windows of the valid split; of any other genome they are drawn at
even distances, and whatever is in the cache of the model's own decides nothing. Contigs that hold
a test split of the model's recipe are kept out. The numbers are cached under what decides them.

Genomes of the species that is read are told by their identity (`related_genome.py`) and left out,
unless strains are wanted: with them the held-out answers are in the reference set.

`RelatedBackbone` is a backbone as any other, so whatever reads a model (its bound, scores,
samplers, maps) reads the relatives too.
"""

import copy
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.alphabet import ID_CODES
from genodiff.backbones.backbone import Backbone
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import Recipe
from genodiff.data.store import Store
from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io.faidx import Genome
from genodiff.memory.ancestry import Ancestry
from genodiff.memory.evidence import Floats
from genodiff.memory.profiles import ProfileScores
from genodiff.memory.relating import relating
from genodiff.memory.relatives import Relatives
from genodiff.memory.spellings import score_spellings
from genodiff.memory.text import MOST_WINDOW, NONE, Codes
from genodiff.memory.tree import share_bases
from genodiff.memory.votes import (
    VoteNumbers,
    count_votes,
    measure_change,
    score_heads,
    score_votes,
)
from genodiff.runs.config import OWN
from genodiff.runs.feed import find_recipe
from genodiff.runs.known_contigs import LetterSource, StoreLetters
from genodiff.runs.model import TrainedModel
from genodiff.runs.related_genome import (
    FIT_LENGTH,
    FIT_WINDOWS,
    ProfileFit,
    draw_fit_windows,
    fit_related,
    is_fitted_to,
    leave_strains_out,
)
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives
from genodiff.runs.relatives_plan import count_waiting
from genodiff.runs.training_memory import is_own_genome, list_stretches, open_trained_store

_NAME_GENOME = "name its FASTA file: --fasta, or --template of sample"
_log = logging.getLogger("genodiff")
PLACE_CHANNELS = 4
"""Of `RelatedBackbone.describe_places`."""


class RelatedBackbone(Backbone):
    """`network` with `relatives` (`memory/relatives.py`); its features are the network's own.

    `votes` is how relatives are counted (`memory/votes.py`); `fit_profiles` returns the numbers of
    `memory/profiles.py` and is called when a profile score is first requested. `fitted_to` is the
    sha256 of the genome's file that all of these are fitted to.
    """

    selects_rows = False

    def __init__(
        self, network: Backbone, relatives: Relatives, votes: VoteNumbers,
        fit_profiles: ProfileFit | None = None, fitted_to: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.network, self.relatives, self.votes = network, relatives, votes
        self.fit_profiles, self.fitted_to = fit_profiles, fitted_to
        self.refitted: dict[str, TrainedModel] = {}  # by the sha256 of another genome
        self.settings, self.vocab_size = network.settings, network.vocab_size
        self.paired, self.label = network.paired, network.label

    def forward(self, xt: Int[Tensor, "B L"], *more: Any, **options: Any) -> Float[Tensor, "B L V"]:
        """Logits (B, L, V): the network's, but at masked bases of which relatives say something."""
        logits: Tensor = relating(self.network, self.relatives)(xt, *more, **options)
        return logits

    @property
    def _given(self) -> tuple[Any, ...]:
        return self.relatives, self.votes, self.fit_profiles, self.fitted_to

    @property
    def d_out(self) -> int:
        """The width of `features`."""
        return self.network.d_out

    def features(self, *given: Any, **options: Any) -> Float[Tensor, "B L D"]:
        """The network's own."""
        return self.network.features(*given, **options)

    def hidden_states(self, *given: Any, **options: Any) -> list[Float[Tensor, "B L D"]]:
        """The network's own."""
        return self.network.hidden_states(*given, **options)

    def read_windows(self, windows: Codes) -> tuple[Floats, Floats, Floats]:
        """What relatives say of each place of windows (B, L), told by all other places.

        That is what each genome has over it, (G, B, L, 4), the factor of each base, (B, L, 4), and
        the part of the first that is homologous. Nothing is asked of the network: where a place is
        hidden, others take the genome's shares.
        """
        columns = self.relatives.columns
        assert columns is not None
        over, homologous = self.relatives.align_homologs(windows)
        prior = np.broadcast_to(share_bases(columns.gc), (*windows.shape, 4))
        return over, self.relatives.combine(over, windows, prior), homologous

    @cached_property
    def ancestry(self) -> Ancestry:
        """What tells the ancestral base of a site (`memory/ancestry.py`)."""
        assert self.relatives.columns is not None
        return Ancestry(self.relatives.columns)

    def score_votes(self, over: Floats, ref: int) -> Floats:
        """(4,): the score of A, C, G and T in place of `ref`, by votes, in nats.

        `over` (G, 4): what each genome has over the place.
        """
        weights, kappa = np.array(self.votes.weights), self.votes.kappa
        votes = count_votes(over, weights)[None]
        return score_votes(votes, np.array([ref]), total=weights.sum(), kappa=kappa)[0]

    def measure_change(self, over: Floats, windows: Codes) -> Floats:
        """(B, L): how quickly the places around each change (`memory/votes.py`).

        `over` (G, B, L, 4): what each genome has over windows (B, L).
        """
        return measure_change(over, windows)

    def score_heads(self, over: Floats, ref: int, change: float) -> Floats:
        """As `score_votes`, each genome counting once; `change`: `measure_change` there."""
        return score_heads(over[:, None], np.array([ref]), np.array([change]))[0]

    def read_profiles(self, over: Floats, windows: Codes) -> Floats:
        """(B, L, 4, 2): the log-likelihood of each base by profiles, and `measure_change`."""
        change = self.measure_change(over, windows)[..., None].repeat(4, -1)
        return np.stack([self._profiles.weigh(over, windows), change], -1)

    def score_profiles(self, over: Floats, ref: int, around: Floats) -> Floats:
        """(4,): the score of each base in place of `ref` by mutation-selection columns.

        `over` (G, 4) as in `score_heads`; `around` (4, 2): of `read_profiles`.
        """
        change = around[[0], 1]
        return self._profiles.compare(around[None, :, 0], over[:, None], np.array([ref]), change)[0]

    def compare_spellings(self, ref: Codes, alt: Codes, span: tuple[int, int]) -> float:
        """Return the score of two spellings (L,) of a window, in nats (`memory/spellings.py`).

        `span`: the first base of `ref` that differs, and the last + 1.
        """
        weights = np.array(self.votes.weights)
        return score_spellings(self.relatives, self._profiles, weights, ref, alt, span)

    @cached_property
    def _profiles(self) -> ProfileScores:
        columns = self.relatives.columns
        assert columns is not None
        assert self.fit_profiles is not None
        return ProfileScores(columns.tree, columns.gc, self.fit_profiles())

    def share_votes(self, over: Floats) -> Floats:
        """(..., 4): the share of all votes that each base has; what is left to 1 says nothing.

        `over` (G, ..., 4): what each genome has.
        """
        weights = np.array(self.votes.weights)
        return count_votes(over, weights / weights.sum())

    def describe_places(self, codes: Codes) -> Floats:
        """(L, 4): which share of the votes has the base of a window itself, the other purine or
        pyrimidine, one of the other two, or says nothing, at each place.

        `codes` (L,), 4 where no base is known: there all say nothing. On the other strand the same.
        """
        known, votes = codes < NONE, self.share_votes(self.relatives.align(codes[None])[:, 0])
        bases = np.where(known, codes, 0)[:, None].astype(np.int64)
        same, transition = (np.take_along_axis(votes, bases ^ way, 1)[:, 0] for way in (0, 2))
        told = np.stack([same, transition, votes.sum(1) - same - transition], 1) * known[:, None]
        return np.concatenate([told, 1 - told.sum(1, keepdims=True)], 1)

    def describe_rows(
        self, ids: Int[Tensor, "B L"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B L 4"]:
        """`describe_places` of each row of token ids, 0 behind its length.

        Raises `UsageError` for a row that is too long to be searched.
        """
        rows, out = ids.cpu().numpy(), torch.zeros(*ids.shape, PLACE_CHANNELS)
        for i, n in enumerate([ids.shape[1]] * len(rows) if lengths is None else lengths.tolist()):
            if n > MOST_WINDOW:
                what = f"with relatives a window has at most {MOST_WINDOW:,} bases, not {n:,}"
                raise UsageError(what, fix="cut it with --window and --stride")
            out[i, :n] = torch.from_numpy(self.describe_places(ID_CODES[rows[i, :n]]))
        return out.to(ids.device)

    def of_class(self, label: int) -> "RelatedBackbone":
        """This network for one class, with the same relatives."""
        return RelatedBackbone(self.network.of_class(label), *self._given)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy of the network, beside the same relatives."""
        return type(self)(copy.deepcopy(self.network, memo), *self._given)

    def __getattr__(self, name: str) -> Any:
        """What is not of relatives is the network's own."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("network", "relatives", "votes", "logits_at"):
                raise
            return getattr(nn.Module.__getattr__(self, "network"), name)


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
    offline: bool = False,
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
    if model.alphabet.domain != "dna" or model.objective.kind != "masked":
        what = "--relatives are for masked networks of DNA"
        raise UsageError(what, file=model.run, fix="leave them out")
    listed = list_genomes(given)
    if plan and (waiting := count_waiting(listed)) is not None:
        return model._replace(relatives=waiting)
    with ExitStack() as stack:
        target = open_target(model, fasta, stack, offline=offline)
        if not len(target.windows):
            what = "has no window without N on which relatives are fitted"
            fix = "give a genome with longer contigs, or a run with a valid split"
            raise DataError(what, file=fasta or model.run, fix=fix)
        opened = open_relatives(listed, offline=offline, target=target.letters)
        kept, near = leave_strains_out(opened, target.letters, strains=strains)
    if not kept:
        what = "every relative is a strain of the genome's own species"
        raise DataError(what, file=listed.path, fix="give other species, or --strains")
    if plan and not is_fitted_to(kept, target.windows):
        return model._replace(relatives=count_waiting(listed, fits=True))
    found = fit_related(kept, near, target.windows)
    model = model.adapt_to(target.windows)
    return model._replace(
        backbone=RelatedBackbone(model.backbone, *found[:3], target.sha256).eval(),
        digest=f"{model.digest}~{found.digest}",
        relatives={"given": [str(one) for one in given], "strains": strains, **found.told},
    )


def refit_model(model: TrainedModel, genome: object) -> TrainedModel:
    """Return an opened model, fitted to the `genome` that is read where that is a file.

    Relatives that were fitted to another genome are fitted again. Raises as `relate_model`.
    """
    if not isinstance(genome, Genome):
        return model
    fasta, told, network = genome.path, model.relatives, model.backbone
    if not isinstance(network, RelatedBackbone) or told is None:
        return relate_model(model, (), fasta=fasta)
    if network.fitted_to == genome.sha256:
        return model
    if genome.sha256 not in network.refitted:
        digest = model.digest.rpartition("~")[0]
        plain = model._replace(backbone=network.network, digest=digest, relatives=None)
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


def open_target(
    model: TrainedModel, fasta: str | Path | None, stack: ExitStack, *, offline: bool
) -> FitTarget:
    """The genome that relatives are fitted to: `fasta`, or that which a model was trained on.

    It is decided by the file and the model's recipe alone, whatever is in the cache.
    """
    store = None
    if not model.reads_network:
        if fasta is None:
            what = f"the model '{model.run.name}' has no genome of its own"
            raise UsageError(what, fix=_NAME_GENOME)
        genome = stack.enter_context(Genome(fasta, goes_round=True))
        return FitTarget(draw_fit_windows(genome), genome, genome.sha256)
    if fasta is None:
        fix = "name its FASTA file (--fasta), or leave --relatives out"
        store = open_trained_store(model, offline, needed_for="relatives", fix=fix)
    else:
        genome = stack.enter_context(Genome(fasta, goes_round=True))
        recipe = _find_recipe(model)
        if is_own_genome(recipe, model.data, genome):
            store = build_dna_store(recipe, fasta, offline=True, tell_splits=False)
    if store is not None:
        return FitTarget(cut_fit_windows(store), StoreLetters(store), store.source.sha256)
    _log.warning(
        "Using %s as the target genome for the relatives (it is not the model's training genome)",
        fasta,
    )
    tests = list_test_lengths(recipe)
    rest = {name: n for name, n in genome.contigs.items() if n not in tests}
    if not rest:
        _log.warning("%s contains only contigs of the model's test split", fasta)
    windows = draw_fit_windows(genome, rest or genome.contigs)
    return FitTarget(windows, genome, genome.sha256)


def _find_recipe(model: TrainedModel) -> Recipe:
    """The recipe of a model's training genome; one that accepts any where it is not known here."""
    try:
        return find_recipe(model.config)
    except GenodiffError:
        return Recipe(name=OWN)


def list_test_lengths(recipe: Recipe) -> set[int]:
    """The lengths of a recipe's contigs with bases of its test split: a contig that is called
    otherwise in another file is known by its length.
    """
    pieces = () if recipe.splits is None or recipe.splits.test == "rest" else recipe.splits.test
    names = {one if isinstance(one, str) else one[0] for one in pieces}
    return {recipe.contigs[name] for name in names if name in recipe.contigs}


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
