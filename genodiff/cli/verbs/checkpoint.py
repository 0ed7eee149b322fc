"""Check a run folder or checkpoint; read and write published weights."""

import json as json_module
import logging
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from genodiff.api.checkpoint import check_checkpoint, export_checkpoint, import_checkpoint
from genodiff.api.memory import fit_memory
from genodiff.cli.common import OUTPUT, Common, Force, Json, ModelPath, convert_whole_number

checkpoint = App(name="checkpoint")
_log = logging.getLogger("genodiff")


@checkpoint.command
def check(
    path: ModelPath,
    *,
    json: Json = False,
) -> None:
    """Read everything in a run folder or checkpoint and judge it; exit 4 where it is not sound.

    Nothing is written. Published weights are judged as `checkpoint import` judges them.
    """
    found = check_checkpoint(path)
    if json:
        print(json_module.dumps(found, indent=2))
    elif "layout" in found:
        print(
            f"{path}: sound, in a published layout; make a run folder of it: genodiff "
            f"checkpoint import {path}",
            file=sys.stderr,
        )
    else:
        steps = ", ".join(str(step) for step in found["checkpoints"]) or "none"
        print(
            f"{path}: sound; model of step {found['step']} ({found['digest']}), "
            f"checkpoints: {steps}",
            file=sys.stderr,
        )


@checkpoint.command(name="import")
def import_(
    source: Annotated[
        Path,
        Parameter(help="A folder of save_pretrained, or a weight file with its config beside it."),
    ],
    /,
    *,
    out: Annotated[Path, OUTPUT, Parameter(help="The run folder to make.")],
    seq_len: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Window length of later evaluation and training (default: the source's, or 1024).",
        ),
    ] = None,
    raw: Annotated[
        bool,
        Parameter(
            negative="", help="Of a training checkpoint the weights themselves, not their averages."
        ),
    ] = False,
    tokenizer: Annotated[
        str | None,
        Parameter(help="Of a network of text: bytes, text8, gpt2, bert-base-uncased, or a path."),
    ] = None,
    plan: Annotated[
        bool, Parameter(negative="", help="Read and judge, say what was found, and write nothing.")
    ] = False,
    force: Force = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Make a run folder of published weights (Caduceus, DiT, DiMamba).

    No code among them is run. The network is tried once at the end.
    """
    common.prepare()
    found = import_checkpoint(
        source,
        out=out,
        seq_len=seq_len,
        raw=raw,
        tokenizer=tokenizer,
        seed=common.seed,
        device=common.device,
        offline=common.offline,
        plan=plan,
        force=force,
    )
    if json or plan:
        print(json_module.dumps(found, indent=2))
    if plan:
        return
    probe = found["probe"]
    bits = f"sanity check: {probe['bits_per_base']:.3f} bits a token on a few of the vocabulary"
    if probe["sequence"].startswith("AluY"):  # without a word on it, 2.2 would look like a fault
        bits = f"sanity check: {probe['bits_per_base']:.3f} bits a base on AluY, a human repeat"
        bits += " (a guess pays 2; of your genome it says nothing)"
    strands = probe["strands_differ"]
    _log.info(
        "%s: %s parameters of %s (%s); %s%s; next: genodiff embed %s --fasta FILE",
        out,
        f"{found['parameters']:,}",
        found["layout"],
        found["digest"],
        bits,
        "" if strands is None else f", strands differ by {strands:.0e}",
        out,
    )


@checkpoint.command
def export(
    run: ModelPath,
    *,
    format: Annotated[
        Literal["caduceus", "mdlm", "safetensors"] | None,
        Parameter(
            help="A published layout (default: that of the network's kind), or our own.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, OUTPUT, Parameter(help="The folder to make (default: RUN/export).")
    ] = None,
    fused: Annotated[
        bool | None,
        Parameter(
            negative="--unfused",
            help="Write the form with fused_add_norm, or without (default: the network's own).",
        ),
    ] = None,
    license: Annotated[
        str | None, Parameter(help="Licence of the weights, for the model card.")
    ] = None,
    half: Annotated[
        bool,
        Parameter(negative="", help="Of our own format: keep the weights in 16 bits, not 32."),
    ] = False,
    with_memory: Annotated[
        bool,
        Parameter(
            negative="", help="Put the train split inside, at 2 bits a base, for --memory on."
        ),
    ] = False,
    force: Force = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Write a folder that the reference's from_pretrained loads, with a model card.

    The network there has the same logits.
    """
    common.prepare()
    found = export_checkpoint(
        run,
        out=out,
        format=format,
        fused=fused,
        license=license,
        half=half,
        with_memory=with_memory,
        device=common.device,
        force=force,
    )
    if json:
        print(json_module.dumps(found, indent=2))
    _log.info(
        "%s: step %d (%s) as %s: %s",
        found["out"],
        found["step"],
        found["checkpoint"],
        found["format"],
        ", ".join(found["files"]),
    )


@checkpoint.command(name="fit-memory")
def fit_memory_(
    run: ModelPath,
    *,
    windows: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Windows of each class: unique, touched, repeat.",
        ),
    ] = 60,
    draws: Annotated[
        int, Parameter(converter=convert_whole_number, help="Masks for each window.")
    ] = 3,
    force: Force = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Fit the numbers of a run's memory on its valid split: how often and how faithfully it copies.

    They are kept in RUN/memory.json, and --memory on takes them from then on.
    """
    common.prepare()
    found = fit_memory(
        run,
        windows=windows,
        draws=draws,
        seed=common.seed,
        device=common.device,
        offline=common.offline,
        force=force,
    )
    if json:
        print(json_module.dumps(found, indent=2))
    told = found["fitted_on"]
    _log.info(
        "%s: bits per base on %s masked windows of the valid split: %.4f without the memory, %.4f "
        "with the numbers of before, %.4f with these; next: genodiff eval %s --memory on",
        Path(run) / "memory.json",
        f"{told['rows']:,}",
        told["bits_alone"],
        told["bits_before"],
        told["bits_after"],
        run,
    )
