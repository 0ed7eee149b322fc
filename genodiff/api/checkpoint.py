"""Run folders, checkpoints and published weights: judged, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from genodiff.io.target import check_new_folder
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_may_write, locate

Layout = Literal["caduceus", "mdlm", "safetensors"]


@own_defaults()
def check_checkpoint(path: str | Path) -> dict[str, Any]:
    """What stands in a run folder, a checkpoint or a published folder, after all of it was read.

    Of a run: step, digest, checkpoints, parameters. Of published weights: layout, digest, files,
    config, vocabulary. Nothing is written. Raises `CheckpointError` for the first fault.
    """
    from genodiff.hub.source import is_published, read_source
    from genodiff.runs.embedded_memory import has_memory, read_embedded
    from genodiff.runs.model import check_folder
    from genodiff.runs.run_paths import locate

    path = locate(path, there=False)
    found = read_source(path).record() if is_published(path) else check_folder(path)
    if has_memory(Path(path)):
        card = read_embedded(Path(path), verify=True)
        found["memory"] = {"fingerprint": card["fingerprint"], **card["file"]}
    return found


@own_defaults()
def import_checkpoint(
    source: str | Path,
    *,
    out: str | Path,
    seq_len: int | None = None,
    raw: bool = False,
    tokenizer: str | None = None,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Make the run folder `out` of published weights; what was found, with a probe of the network.

    `seq_len` is the window of later evaluation and training (default: the source's, or 1,024).
    `raw` takes the weights of a training checkpoint, not their averages. `tokenizer` (a name or a
    path) is for networks of text. With `plan` everything is judged and nothing written. No code
    among the files is run. Raises `CheckpointError`, `UsageError`.
    """
    out = Path(out)
    if not plan:
        check_new_folder(out, force=force)
    choose_device(device)
    from genodiff.hub.adopt import adopt_network, copy_model
    from genodiff.hub.source import find_published_folder, read_source
    from genodiff.runs.checkpoint import CARD

    if (own := find_published_folder(source) / CARD).exists():  # as `export --format safetensors`
        return copy_model(own.parent, out, plan=plan, force=force)
    read = read_source(source, averaged=not raw, tokenizer=tokenizer, offline=offline)
    if plan:
        parameters = sum(tensor.numel() for tensor in read.tensors.values())
        return read.record() | {"parameters": parameters, "out": str(out)}
    return adopt_network(read, out, seq_len=seq_len, seed=seed, tokenizer=tokenizer, force=force)


@own_defaults()
def export_checkpoint(
    run: str | Path,
    *,
    out: str | Path | None = None,
    format: Layout | None = None,
    fused: bool | None = None,
    license: str | None = None,
    half: bool = False,
    with_memory: bool = False,
    device: str = "auto",
    force: bool = False,
) -> dict[str, Any]:
    """Write a published folder of a run, with a model card: by default RUN/export.

    `format` None is the layout of the network's kind. The network that the reference's
    `from_pretrained` makes of it has the same logits. `fused` writes the form with fused_add_norm,
    or without; None is the network's own. `license` is for the card. `half` keeps the weights of
    the format "safetensors" in 16 bits. `with_memory` puts the train split inside, at 2 bits a
    base: `memory="on"` then needs no other file. Raises `CheckpointError`, `UsageError`,
    `DataError`.
    """
    run = locate(run)
    if out is None:
        check_may_write(run, "give --out FOLDER")
    folder = run / "export" if out is None else Path(out)
    check_new_folder(folder, force=force)
    choose_device(device)
    from genodiff.hub.export import export_model

    return export_model(
        run, folder, layout=format, fused=fused, licence=license, half=half,
        with_memory=with_memory, force=force,
    )  # fmt: skip
