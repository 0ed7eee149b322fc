"""A loaded model and what it does: `genodiff.Model`. Torch is imported by what reads a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.design.request import HeldDesignsRequest
from genodiff.embedding.request import HeldEmbeddingRequest
from genodiff.errors import UsageError
from genodiff.evaluation.request import LikelihoodRequest
from genodiff.generate.request import HeldSampleRequest, InfillRequest
from genodiff.io.sequences import is_single, read_records, read_texts
from genodiff.jobs.request import method
from genodiff.kernels.defaults import own_defaults
from genodiff.maps.request import DependencyRequest, HeldTracksRequest, SaturationRequest
from genodiff.runs.config import RunConfig
from genodiff.runs.trained_model import TrainedModel
from genodiff.variants.request import HeldScoreRequest

if TYPE_CHECKING:
    import torch
    from jaxtyping import Int
    from torch import Tensor

    from genodiff.api.network import Network
    from genodiff.data.tokenizer import Tokenizer
    from genodiff.diffusion.objective import Objective
    from genodiff.finetuning.fitted_model import FittedModel


_MARK = b"?"  # a gap, as well as N

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Bits:
    """Bits per base (of text: per byte): lower is better; 2 is a guess among A, C, G, T."""

    value: float
    ci95: tuple[float, float] | None
    """95 % interval; None for fewer than five windows."""
    windows: int
    """Windows that were scored."""
    tokens: int
    """Bases (or tokens) that were scored."""
    figure: Literal["exact", "bound"]
    """The likelihood itself, or an upper bound on its bits."""

    def __float__(self) -> float:
        return self.value


class Model:
    """A trained model, as returned by `genodiff.load`.

    Sequences are given as strings, `Bio.Seq` and `Bio.SeqRecord` objects, lists or mappings of
    such, as a polars or pandas frame, columns or rows with named fields, or as a path to a FASTA,
    GenBank or EMBL file. A string of DNA letters is a sequence, any other string a path. The column
    of sequences is called sequence, seq or dna, or is the only text column; name or id names them.
    Invalid input raises a `genodiff.errors.GenodiffError` of one line.

    >>> m = genodiff.load("runs/demo")
    >>> m.infill("ACGTNNNNACGT")
    """

    def __init__(
        self,
        trained: TrainedModel,
        tokenizer: Tokenizer | None = None,
        memory: Literal["on", "off"] | None = None,
    ) -> None:
        """`memory` is the default of methods that take one."""
        self._trained, self._tokenizer, self.memory = trained, tokenizer, memory

    def __repr__(self) -> str:
        weights = sum(p.numel() for p in self.network.parameters())
        what = type(self._trained.backbone).__name__
        return f"<genodiff.Model {self.path}: {what}, {weights:,} weights, {self.alphabet.domain}>"

    @property
    def path(self) -> Path:
        """The run folder, or the published folder."""
        return self._trained.run

    @property
    def trained(self) -> TrainedModel:
        """Network, process, alphabet and configuration, as internal functions take them."""
        return self._trained

    @property
    def inner(self) -> TrainedModel | FittedModel:
        """The model as lower rooms take it, whichever kind it is."""
        return self._trained

    @property
    def alphabet(self) -> Alphabet:
        """Tokens and their ids; `alphabet.encode("ACGT")` gives ids, `alphabet.decode` letters."""
        return self._trained.alphabet

    @property
    def config(self) -> RunConfig:
        """All settings of the run: `config.backbone`, `config.data.seq_len` and so on."""
        return self._trained.config

    @property
    def objective(self) -> Objective:
        """The training objective, with its bound and its samplers."""
        return self._trained.objective

    @property
    def step(self) -> int:
        """Training step of the weights; 0 for published ones."""
        return self._trained.step

    @property
    def digest(self) -> str:
        """The first 12 hex digits of the sha256 of the weights, as sidecars name them."""
        return self._trained.digest

    @property
    def device(self) -> torch.device:
        """Device of the network."""
        return next(self.network.parameters()).device

    @cached_property
    def network(self) -> Network:
        """The `torch.nn.Module`: ids (B, L) of any integer type → logits (B, L, V).

        It shares its weights with this model, and is initially in evaluation mode.
        """
        from genodiff.api.network import Network

        return Network(self._trained.backbone)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of a model of text. Raises `CheckpointError` for DNA."""
        from genodiff.runs.feed import open_model_tokenizer

        if self._tokenizer is None:
            self._tokenizer = open_model_tokenizer(self.path, self.alphabet)
        return self._tokenizer

    def to(self, device: str | torch.device) -> Self:
        """Move the network to `device`; returns this model."""
        self.network.to(device)
        return self

    def with_label(self, label: str) -> Self:
        """Return this model for one class: `label` is one of `config.classes`, of `train --labels`.

        It shares its weights with this one. Raises `UsageError` for another label.
        """
        return type(self)(self._trained.of_class(label), self._tokenizer, self.memory)

    @own_defaults()
    def encode(self, sequences: Any) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
        """Encode sequences: ids (B, L), padded on the right, and the length of each row, on the
        device.

        N is visible here, and `?` is the mask. For text, `sequences` is a string or a list of
        strings. Raises `DataError` for a letter without an id.
        """
        import torch

        if self.alphabet.domain == "dna":
            rows = []
            for record in read_records(sequences, extra=_MARK):
                row = self.alphabet.encode(record.sequence.replace(_MARK, b"N")).astype(np.int64)
                row[np.frombuffer(record.sequence, np.uint8) == _MARK[0]] = self.alphabet.mask_id
                rows.append(torch.from_numpy(row))
        else:
            texts = read_texts(sequences)
            rows = [torch.tensor(ids.astype(np.int64)) for ids in self.tokenizer.encode(texts)]
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=self.alphabet.pad_id
        )
        return ids.to(self.device), lengths.to(self.device)

    @own_defaults()
    def predict(
        self,
        sequences: Any,
        *,
        leave_one_out: bool = False,
        every: int | None = None,
        batch_size: int = 32,
    ) -> Any:
        """Probabilities of A, C, G, T at each position: (L, 4), float64, rows that sum to 1.

        Every N, n and ? is masked. At a masked position the row is p(base | all visible bases),
        from one pass. At a known base the row is one-hot. At another ambiguity code (R, Y, ...),
        which the network reads as N, the row is NaN.

        `leave_one_out` gives p(base | all others) at every position: each is masked in turn, which
        takes L passes and is exact. `every=k` masks every k-th base in one pass: k passes instead
        of L, and approximate, because bases masked together do not see one another. On 2 kb of DNA,
        k = 16 took 0.29 s instead of 28.8 s, with a correlation of 0.988 to the exact values.

        One sequence gives one array, several a list of arrays. The batch size affects only the last
        bits. Raises `UsageError` for text and for autoregressive models, `DataError` for letters
        that are not DNA.
        """
        if self.alphabet.domain != "dna":
            what = f"the model is of {self.alphabet.domain}, and probabilities are of A, C, G, T"
            raise UsageError(what, fix="use m.network for the logits of its tokens")
        if every is not None and not leave_one_out:
            raise UsageError("every without leave_one_out", fix="give both")
        from genodiff.generate.infill import Template
        from genodiff.scoring import probabilities as read

        given = [
            Template(one.name, one.description, one.sequence)
            for one in read_records(sequences, extra=_MARK)
        ]
        drafts = [template.ids(self.alphabet) for template in given]
        if leave_one_out:
            how: dict[str, Any] = {"every": every, "batch_size": batch_size}
            found = [read.leave_one_out(self._trained, ids, **how) for ids in drafts]
        else:
            some = read.fill_probabilities(self._trained, drafts, batch_size=batch_size)
            known = np.full((self.alphabet.padded_size, 4), np.nan)
            known[list(self._trained.diffusion.targets)] = np.eye(4)
            found = [
                np.where((ids == self.alphabet.mask_id)[:, None], rows, known[ids])
                for ids, rows in zip(drafts, some, strict=True)
            ]
        return found[0] if is_single(sequences, _MARK) else found

    embed = method("embed", HeldEmbeddingRequest)
    score = method("score", HeldScoreRequest)
    score_variants = method("score_variants", HeldScoreRequest)
    log_likelihood = method("log_likelihood", LikelihoodRequest)
    ism = method("ism", SaturationRequest)
    dependencies = method("dependencies", DependencyRequest)
    tracks = method("tracks", HeldTracksRequest)
    sample = method("sample", HeldSampleRequest)
    infill = method("infill", InfillRequest)
    redesign = method("redesign", HeldDesignsRequest)

    @own_defaults()
    def bits(
        self,
        sequences: Any = None,
        *,
        split: Literal["test", "valid", "train"] = "test",
        seed: int = 1,
        repeats: int = 1,
        max_windows: int | None = None,
        memory: Literal["on", "off"] | None = None,
        batch_size: int = 32,
    ) -> Bits:
        """Bits per base with a 95 % confidence interval (for text: bits per byte): lower is better.

        Without `sequences`, for the run's own `split`, as in `genodiff eval`. With `sequences` (of
        DNA), each is cut into windows of the trained length. Under a diffusion objective the figure
        is an upper bound on -log2 p, estimated with `repeats` masks per window; under an
        autoregressive one it is exact. Only A, C, G and T count. `memory` is that of
        `score_variants`. Raises `DataError` if there is nothing to score or the run's data are not
        available.
        """
        how: dict[str, Any] = {"seed": seed, "repeats": repeats, "batch_size": batch_size}
        how["memory"] = memory or self.memory
        if sequences is None:
            from genodiff.evaluation.evaluate import evaluate

            told = evaluate(self._trained, split, baselines=False, max_windows=max_windows, **how)
            value = told["bits_per_byte" if "bits_per_byte" in told else "bits_per_base"]
            ci95 = None if told["ci95_bits"] is None else tuple(told["ci95_bits"][:2])
            return Bits(value, ci95, told["windows"], told["tokens"], told["figure"])
        if max_windows is not None or split != "test":
            what = "split and max_windows are of the run's own data, and sequences are given"
            raise UsageError(what, fix="leave them out")
        from genodiff.evaluation.exact_order import score_sequences

        records = read_records(sequences) if self.alphabet.domain == "dna" else []
        bits, bases, windows = score_sequences(self._trained, records, **how)
        ends = bits.ends(least=0)
        ci95 = None if ends is None else (ends[0], ends[1])
        return Bits(bits.value, ci95, windows, bases, self.objective.figure)
