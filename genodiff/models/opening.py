"""Whatever a path holds, opened: a run, a published network, or a fine-tuned model.

What is imported follows from what is there, since fine-tuned models and published folders import
what takes seconds, and a run needs none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from genodiff.errors import UsageError
from genodiff.jobs.machine import choose_device
from genodiff.runs.run_paths import CARD, is_no_network, locate
from genodiff.runs.trained_model import TrainedModel, open_composition
from genodiff.vocabulary import Vocabulary

if TYPE_CHECKING:
    from genodiff.data.tokenizer import Tokenizer
    from genodiff.finetuning.fitted_model import FittedModel
    from genodiff.finetuning.kept_labeller import KeptLabeller


class ModelHolder(Protocol):
    """What `genodiff.Model` and `genodiff.FinetunedModel` are to the rooms below them.

    `inner` is the model itself, `memory` what is taken where a request asks for none.
    """

    @property
    def inner(self) -> TrainedModel | FittedModel: ...

    @property
    def memory(self) -> str | None: ...


class Published(NamedTuple):
    """A published network, and the tokenizer that was published with it; None for DNA."""

    model: TrainedModel
    tokenizer: Tokenizer | None


def open_any(
    run: str | Path, device: str, *, tokenizer: str | None = None
) -> TrainedModel | FittedModel | KeptLabeller | Published:
    """The model of a run folder, a checkpoint, a published folder or a fine-tuned run.

    `device` is auto, cpu or cuda. `tokenizer` is for published networks of text. Raises
    `CheckpointError`, and `UsageError` where several models are meant.
    """
    path = locate(run)
    device = choose_device(device, needs_torch=not is_no_network(path))
    if is_no_network(path):
        return open_composition(path, device)
    from genodiff.runs.model import load_model

    if (path / CARD).exists():
        return load_model(path, device=device)
    from genodiff.finetuning.unit_files import is_fitted, labels_bases
    from genodiff.hub.source import find_published_folder, is_published

    path = find_published_folder(path)
    if labels_bases(path):
        from genodiff.finetuning.kept_labeller import KeptLabeller

        return KeptLabeller(path, device)
    if is_fitted(path):
        from genodiff.finetuning.fitted_model import load_fitted

        try:
            return load_fitted(path, device=device)
        except UsageError as fault:  # a sweep of several: its fix is of `genodiff predict`
            fix = "give the folder of one of its units, or the run that they were tuned from"
            raise UsageError(fault.what, file=fault.file, fix=fix) from None
    if is_published(path):
        from genodiff.data.tokenizer import rebuild_tokenizer
        from genodiff.hub.adopt import open_published

        model, files = open_published(path, device, tokenizer=tokenizer)
        if not isinstance(model.alphabet, Vocabulary):
            return Published(model, None)
        return Published(model, rebuild_tokenizer(files, model.alphabet, path))
    return load_model(path, device=device)


def open_model(
    run: str | Path,
    device: str,
    relatives: Sequence[str | Path] = (),
    *,
    strains: bool = False,
    fasta: str | Path | None = None,
    plan: bool = False,
) -> TrainedModel | FittedModel:
    """As `open_any`, without a published network's tokenizer; with relatives where some are given.

    `fasta` is the genome that a verb reads; with `plan` no relatives are built or fitted. Raises as
    `runs/related_model.py`, and `UsageError` for relatives of a fine-tuned model.
    """
    model = open_any(run, device)
    model = model.model if isinstance(model, Published) else model
    if isinstance(model, TrainedModel):
        if not relatives and model.reads_network:
            return model
        from genodiff.runs.related_model import relate_model

        return relate_model(model, relatives, strains=strains, fasta=fasta, plan=plan)
    refuse_relatives(run, relatives)
    from genodiff.finetuning.kept_labeller import KeptLabeller

    if isinstance(model, KeptLabeller):
        what = "a model that labels bases is read by `genodiff predict` alone"
        raise UsageError(what, file=run, fix="load the run that it was tuned from")
    return model


def refuse_relatives(run: str | Path, relatives: Sequence[str | Path]) -> None:
    """Raises `UsageError` where a fine-tuned model is to read relatives."""
    if relatives:
        what = "a fine-tuned model cannot use related genomes"
        raise UsageError(what, file=run, fix="leave --relatives out")


def open_language(
    run: str | Path, device: str, relatives: Sequence[str | Path] = (), **how: Any
) -> TrainedModel:
    """As `open_model`. Raises `UsageError` for a fine-tuned model."""
    return refuse_fitted(open_model(run, device, relatives, **how))


def refuse_fitted(model: TrainedModel | FittedModel | KeptLabeller) -> TrainedModel:
    """The model, where it is a language model. Raises `UsageError` for a fine-tuned one."""
    if isinstance(model, TrainedModel):
        return model
    what = "a fine-tuned model predicts; its language model samples and has a likelihood"
    raise UsageError(f"{model.folder}: {what}", fix="load the run that it was tuned from")
