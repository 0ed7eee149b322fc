"""Samples as FASTA with headers that say how they were drawn, and a JSON sidecar file.

    >genodiff_000001 length=1024 seed=1 sampler=ancestral steps=256 nfe=231 checkpoint=<12 hex>

A filled template keeps its name; its own description follows ours.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.diffusion.sampler import SAMPLERS
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import Template
from genodiff.generate.journal import SampleJournal
from genodiff.generate.output_file import SampleFile, Target
from genodiff.generate.sample import (
    AUTO_STEPS,
    Sample,
    Sampling,
    choose_batch_size,
    choose_sampler,
    choose_stride,
    infill,
)
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.screening import Screener
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_fasta
from genodiff.runs.model import TrainedModel
from genodiff.runs.related_model import name_relatives


class WrittenSamples(NamedTuple):
    """Numbers of written records, of their bases or tokens, and of network calls on one window."""

    records: int
    positions: int
    evaluations: int
    told: dict[str, Any]
    """What the sidecar says."""
    filled: int
    """Positions that were drawn; of new sequences all."""


def write_samples(
    target: Target,
    model: TrainedModel,
    *,
    n: int = 1,
    length: int | None = None,
    templates: Sequence[Template] | None = None,
    template_file: str | None = None,
    how: Sampling | None = None,
    seed: int = 1,
    sidecar: str | Path | None = None,
    journal: SampleJournal | None = None,
    line_width: int = 60,
    tick: Callable[[int], None] | None = None,
    guiding: Guiding | None = None,
    screener: Screener | None = None,
) -> WrittenSamples:
    """Write `n` new sequences, or `n` fillings of each template.

    A new sequence has `length` bases, by default the trained length. A path is written atomically.
    The sidecar goes to `sidecar`, by default beside a path; an open binary file has none by
    default. `journal` keeps finished records until the file is there. `line_width` 0 writes each
    sequence on one line. After each network call, `tick` receives the number of windows in it.
    `screener` sees all before anything is written. Raises `UsageError`, `MachineError`;
    `GenodiffError` where the screener refuses.
    """
    how = choose_sampler(how, model)
    if how.batch_size is None and templates is None:
        how = replace(how, batch_size=choose_batch_size(model, length))
    alphabet = model.alphabet
    memory = None if how.memory == "off" else SampleMemory(model, how)
    entries: list[dict[str, Any]] = []

    def drafts() -> Iterator[np.ndarray]:
        if templates is None:
            yield from (
                np.full(length or model.config.data.seq_len, alphabet.mask_id, np.uint8)
                for _ in range(n)
            )
        else:
            yield from (template.ids(alphabet) for template in templates for _ in range(n))

    def draw(first: int) -> Iterable[Sample]:
        left = islice(drafts(), first, None)
        return infill(model, left, how=how, seed=seed, tick=tick, first=first, guiding=guiding)

    def records() -> Iterator[Record]:
        for sample in draw(0) if journal is None else journal.pass_through(draw, tick):
            name = f"genodiff_{sample.number + 1:06d}"
            entry: dict[str, Any] = {"name": name, "length": len(sample.ids), "nfe": sample.nfe}
            if sample.calls is not None:
                entry["oracle_calls"] = sample.calls
            if sample.log_z is not None:
                entry["log_z"] = sample.log_z
            described = ""
            if templates is None:
                text = alphabet.decode(sample.ids).encode("ascii")
            else:
                template = templates[sample.number // n]
                entry["name"] = name_filling(template.name, n, sample.number)
                entry["filled"] = int(template.gaps.sum())
                text, described = template.filled(sample.ids, alphabet), template.description
            ours = describe_record(model, how, seed, len(text), sample.nfe)
            if memory is not None:
                drawn = np.ones(len(text), np.bool_) if templates is None else template.gaps
                entry |= memory.describe_record(sample.ids, drawn)
                ours += f" train_match={(entry['train_match'] or {'length': 0})['length']}"
            entries.append(entry)
            if guiding is not None:
                ours += f" guidance={guiding.name} strength={guiding.strength:g}"
            ours += mark_screened(screener)
            # What holds no gap is not ours: its header stays as it is.
            about = f"{ours} {described}".rstrip() if entry.get("filled", 1) else described
            yield Record(entry["name"], about, text, 0)

    out = SampleFile(target, sidecar, journal, screener)
    with out.open() as file:
        write_fasta(file, records(), line_width=line_width or sys.maxsize, zipped=out.zipped)
        out.screen()
    about = {"template": template_file} | (guiding.describe() if guiding is not None else {})
    if memory is not None:
        about |= memory.describe()
        if templates is None:
            found = [(entry["train_match"] or {"length": 0})["length"] for entry in entries]
            about["train_matches"] = memory.compare(found, length or model.config.data.seq_len)
    return finish_samples(out, model, how, seed, entries, about)


def finish_samples(
    out: SampleFile,
    model: TrainedModel,
    how: Sampling,
    seed: int,
    entries: list[dict[str, Any]],
    about: dict[str, Any],
    evaluations: int | None = None,
) -> WrittenSamples:
    """Write the sidecar of DNA that is in its file; `evaluations` where records share some."""
    if evaluations is None:
        evaluations = sum(e["nfe"] for e in entries)
    told = out.finish(
        {
            "seed": seed,
            "sampler": how.sampler,
            **({"sampler_options": dict(how.options)} if how.options else {}),
            "steps": count_steps(how),
            "temperature": how.temperature,
            "top_p": how.top_p,
            "stride": choose_stride(model, how),
            "allow_n": how.allow_n,
            **about,
            "run": model.run.name,
            "step": model.step,
            "checkpoint": model.digest,
            **({} if model.label is None else {"label": model.label}),
            **name_relatives(model),
            "evaluations": evaluations,
            "records": entries,
        }
    )
    return count_written(entries, evaluations, told)


def count_written(
    entries: list[dict[str, Any]], evaluations: int, told: dict[str, Any]
) -> WrittenSamples:
    """The sums over what the sidecar says of each record."""
    positions = sum(entry["length"] for entry in entries)
    filled = sum(entry.get("filled", entry["length"]) for entry in entries)
    return WrittenSamples(len(entries), positions, evaluations, told, filled)


def name_filling(name: str, n: int, number: int) -> str:
    """The name of a filled template: its own, with a number where it is filled `n` times."""
    return name if n == 1 else f"{name}.{number % n + 1}"


def describe_record(model: TrainedModel, how: Sampling, seed: int, length: int, nfe: int) -> str:
    """What a record's header says of it."""
    return (
        f"length={length} seed={seed} {describe_draw(how, nfe)} nfe={nfe} checkpoint={model.digest}"
    )


def mark_screened(screener: Screener | None) -> str:
    """What a header says of a screener, which lets nothing else be written."""
    return "" if screener is None else f" screened={screener.name}"


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
        "memory": None if how.memory == "off" else how.memory,
    }
    usual = Sampling()
    given = {name: value for name, value in fine.items() if value != getattr(usual, name)}
    return said + "".join(f" {name}={value}" for name, value in {**given, **how.options}.items())
