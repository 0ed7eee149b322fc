"""A model from disk: `genodiff.load`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import UsageError
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import is_no_network, locate

if TYPE_CHECKING:
    import polars as pl

    from genodiff.api.model import Model


@own_defaults()
def load(
    path: str | Path,
    *,
    device: str = "auto",
    tokenizer: str | None = None,
    memory: Literal["on", "off"] | None = None,
    relatives: Sequence[str | Path] = (),
    strains: bool = False,
    fasta: str | Path | None = None,
) -> Model:
    """Load the model of a run folder, a checkpoint, a published folder or a fine-tuned run.

    For a run the weights are the averaged ones, for a run folder the newest. A fine-tuned run (the
    folder of a sweep with one saved model, or of one unit) gives a `FinetunedModel`, whose
    `predict` returns classes or values. A published folder is one of Caduceus or of the MDLM
    family, as the authors' `save_pretrained` writes it; none of its code is executed, and nothing
    is written. `device` is auto, cpu or cuda. `tokenizer` (a name or a path) is for published
    networks of text.

    `memory` is the default of methods that take one: "on" adds retrieval from the training genome,
    whose index is built here if necessary; "off" disables it; None uses it if the run was trained
    with it. `predict` and `embed` use the network alone.

    `relatives`, FASTA files, lists of genomes (.tsv) or recipes of related species, are used
    wherever the network is evaluated; genomes of its own species are left out without `strains`.
    `fasta` is the target genome that they are fitted to (default: the training genome). The first
    use of a genome indexes it and fits its parameters (about 90 s); no process is started.

    Raises `CheckpointError`, naming the file and the fault; `MachineError` for an unavailable
    device; `UsageError` if several models match, or for a memory that the network cannot have;
    `DataError` if the training genome is not available.
    """
    if memory not in (None, "on", "off"):
        raise UsageError(f"no memory '{memory}'", fix="give on or off")
    path = locate(path)
    device = choose_device(device, needs_torch=not is_no_network(path))
    from genodiff.api.model import Model
    from genodiff.models.opening import Published, open_any, refuse_relatives
    from genodiff.runs.related_model import relate_model
    from genodiff.runs.trained_model import TrainedModel

    opened = open_any(path, device, tokenizer=tokenizer)
    trained, own = opened if isinstance(opened, Published) else (opened, None)
    if not isinstance(trained, TrainedModel):
        from genodiff.api.finetuned import FinetunedModel

        if memory == "on":
            what = "a fine-tuned model has no memory of a training genome"
            raise UsageError(what, file=path, fix="leave memory out")
        refuse_relatives(path, relatives)
        return FinetunedModel(trained)
    if memory == "on":
        from genodiff.runs.training_memory import open_loci

        open_loci(trained, None, memory)
    trained = relate_model(trained, relatives, strains=strains, fasta=fasta)
    return Model(trained, own, memory)


def score_variants(
    run: str | Path, variants: Any, *, device: str = "auto", **options: Any
) -> pl.DataFrame:
    """Score each ALT of a file or table of variants; returns a polars frame.

    It is `genodiff.load(run).score_variants(variants, fasta=fasta, ...)`.
    """
    frame: pl.DataFrame = load(run, device=device).score_variants(variants, **options)
    return frame
