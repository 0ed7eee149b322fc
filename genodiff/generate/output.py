"""Samples as FASTA with headers that say how they were drawn, and a JSON sidecar file.

    >genodiff_000001 length=1024 seed=1 sampler=ancestral steps=256 nfe=231 checkpoint=<12 hex>

A filled template keeps its name; its own description follows ours. The sidecar `out.fa.json` never
describes another FASTA file than the one beside it. So the old sidecar is deleted before the new
FASTA gets its name, and the new sidecar is written afterwards.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from genodiff import __version__
from genodiff.diffusion.sampler import SAMPLERS
from genodiff.generate.infill import Template
from genodiff.generate.sample import (
    AUTO_STEPS,
    Sampling,
    choose_sampler,
    fitting_batch,
    infill,
    stride_of,
)
from genodiff.io.atomic import write_json
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_fasta
from genodiff.io.target import describe_file, is_stream
from genodiff.runs.model import TrainedModel


class WrittenSamples(NamedTuple):
    """Numbers of written records, of their bases or tokens, and of network calls on one window."""

    records: int
    positions: int
    evaluations: int


def write_samples(
    target: str | Path | IO[bytes],
    model: TrainedModel,
    *,
    n: int = 1,
    length: int | None = None,
    templates: Sequence[Template] | None = None,
    template_file: str | None = None,
    how: Sampling | None = None,
    seed: int = 1,
    sidecar: str | Path | None = None,
    line_width: int = 60,
    tick: Callable[[int], None] | None = None,
) -> WrittenSamples:
    """Write `n` new sequences, or `n` fillings of each template.

    A new sequence has `length` bases, by default the trained length. A path is written atomically.
    The sidecar goes to `sidecar`, by default beside a path; an open binary file has none by
    default. `line_width` 0 writes each sequence on one line. After each network call, `tick`
    receives the number of windows in it. Raises `UsageError`, `MachineError`.
    """
    how = choose_sampler(how, model.objective)
    if how.batch_size is None and templates is None:
        how = replace(how, batch_size=fitting_batch(model, length))
    if sidecar is None and isinstance(target, str | Path) and not is_stream(target):
        sidecar = f"{target}.json"
    alphabet = model.alphabet
    entries: list[dict[str, Any]] = []

    def drafts() -> Iterator[np.ndarray]:
        if templates is None:
            yield from (
                np.full(length or model.config.data.seq_len, alphabet.mask_id, np.uint8)
                for _ in range(n)
            )
        else:
            yield from (template.ids(alphabet) for template in templates for _ in range(n))

    def records() -> Iterator[Record]:
        for sample in infill(model, drafts(), how=how, seed=seed, tick=tick):
            name = f"genodiff_{sample.number + 1:06d}"
            entry: dict[str, Any] = {"name": name, "length": len(sample.ids), "nfe": sample.nfe}
            described = ""
            if templates is None:
                text = alphabet.decode(sample.ids).encode("ascii")
            else:
                template = templates[sample.number // n]
                entry["name"] = (
                    template.name if n == 1 else f"{template.name}.{sample.number % n + 1}"
                )
                entry["filled"] = int(template.gaps.sum())
                text, described = template.filled(sample.ids, alphabet), template.description
            entries.append(entry)
            ours = (
                f"length={len(text)} seed={seed} {describe_draw(how, sample.nfe)} nfe={sample.nfe} "
                f"checkpoint={model.digest}"
            )
            yield Record(entry["name"], f"{ours} {described}".rstrip(), text, 0)
        if sidecar is not None:
            Path(sidecar).unlink(missing_ok=True)

    write_fasta(target, records(), line_width=line_width or sys.maxsize)
    written = WrittenSamples(
        len(entries), sum(e["length"] for e in entries), sum(e["nfe"] for e in entries)
    )
    if sidecar is not None:
        write_json(
            sidecar,
            {
                "genodiff": __version__,
                "seed": seed,
                "sampler": how.sampler,
                "steps": count_steps(how),
                "temperature": how.temperature,
                "top_p": how.top_p,
                "stride": stride_of(model, how),
                "allow_n": how.allow_n,
                "template": template_file,
                "run": model.run.name,
                "step": model.step,
                "checkpoint": model.digest,
                "evaluations": written.evaluations,
                **describe_target(target),
                "records": entries,
            },
        )
    return written


def describe_target(target: str | Path | IO[bytes]) -> dict[str, Any]:
    """What a sidecar says of the written file; nothing of a stream."""
    if not isinstance(target, str | Path) or is_stream(target):
        return {}
    return {"file": describe_file(target)}


def count_steps(how: Sampling) -> int | None:
    """The number of steps in which each window is filled; None if the sampler has no steps."""
    return (how.steps or AUTO_STEPS) if SAMPLERS[str(how.sampler)].uses_steps else None


def describe_draw(how: Sampling, nfe: int) -> str:
    """How a record was drawn, for its header, with the settings that are not the default."""
    said = f"sampler={how.sampler} steps={count_steps(how) or nfe}"
    fine = {
        "temperature": how.temperature,
        "top_p": how.top_p,
        "stride": how.stride,
        "allow_n": how.allow_n,
    }
    usual = Sampling()
    return said + "".join(
        f" {name}={value}" for name, value in fine.items() if value != getattr(usual, name)
    )
