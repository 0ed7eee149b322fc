"""Sampling requests, one class for each domain.

A request knows what its samples cost before it draws and writes them.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.tokenizer import Tokenizer
from genodiff.domain import DNA, TEXT, Domain
from genodiff.errors import CheckpointError, UsageError
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import Template
from genodiff.generate.journal import SampleJournal
from genodiff.generate.output import WrittenSamples, write_samples
from genodiff.generate.output_file import Target
from genodiff.generate.sample import Sampling, Workload, choose_sampler, measure_workload
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.screening import Screener
from genodiff.generate.text_output import (
    TextTemplate,
    make_draft,
    make_prompt_template,
    read_template,
    write_texts,
)
from genodiff.io.identity import sha256_json
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.model import TrainedModel
from genodiff.runs.tokenizer_files import open_model_tokenizer
from genodiff.version import __version__


class SampleRequest(ABC):
    """`n` new sequences, or `n` fillings of each template, drawn with the settings `how`.

    `n` None is the domain's default, or 1 for templates.
    """

    domain: Domain
    lengths: list[int]
    """Number of positions of each sequence or template."""

    def __init__(
        self, model: TrainedModel, how: Sampling | None, n: int | None, fills: bool
    ) -> None:
        """Check that the model and the sampler fit the request.

        Raises `CheckpointError` for a model of another domain, and `UsageError` for a sampler that
        does not fit the model's objective.
        """
        if model.alphabet.domain != self.domain.name:
            raise CheckpointError(
                f"is a {model.alphabet.domain} model",
                file=model.run,
                fix=f"give a {self.domain.name} run, or another flag than "
                f"{self.domain.output_flag}",
            )
        self.model = model
        self.how = choose_sampler(how, model)
        self.n = n or (1 if fills else self.domain.n_samples)

    screener: Screener | None = None
    """What sees DNA before it is written."""

    @cached_property
    def memory(self) -> SampleMemory | None:
        """The memory of the training genome, where samples are drawn with it."""
        if self.how.memory == "off":
            return None
        return SampleMemory(self.model, self.how, self._find_genome())

    def _find_genome(self) -> LetterSource | None:
        """The genome whose regions are filled, which each leave their own locus out."""
        return None

    @abstractmethod
    def gaps(self) -> Iterable[NDArray[np.bool_]]:
        """For each sequence or template, a mask (length,) of the positions to fill."""

    @abstractmethod
    def write(
        self,
        target: Target,
        seed: int,
        *,
        sidecar: str | Path | None = None,
        journal: SampleJournal | None = None,
        tick: Callable[[int], None] | None = None,
    ) -> WrittenSamples:
        """Draw all samples with `seed` and write them to `target`.

        `sidecar`, `journal` and `tick` are those of `write_samples`. Raises `UsageError`,
        `MachineError`.
        """

    @abstractmethod
    def describe(self) -> Any:
        """What is sampled, as plain values: equal for equal requests."""

    def digest(self, seed: int) -> str:
        """Names the request: everything that decides its records, and nothing else."""
        how = asdict(self.how)
        del how["batch_size"]
        if self.memory is None:  # as it was before there was a memory
            del how["memory"]
        else:
            how["memory"] = [self.how.memory, self.memory.identify()]
        values = {
            "genodiff": __version__,
            "domain": self.domain.name,
            "checkpoint": self.model.digest,
            "device": next(self.model.backbone.parameters()).device.type,
            "seed": seed,
            "n": self.n,
            "how": how,
            "of": self.describe(),
        }
        return sha256_json(values)

    def workload(self) -> Workload:
        """The network calls that one filling of each template needs."""
        return measure_workload(self.model, self.gaps(), how=self.how)


class DnaRequest(SampleRequest):
    """DNA sequences, written as FASTA."""

    domain = DNA

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling | None = None,
        n: int | None = None,
        *,
        length: int | None = None,
        templates: Sequence[Template] | None = None,
        template_file: str | None = None,
        line_width: int = 60,
        guiding: Guiding | None = None,
    ) -> None:
        super().__init__(model, how, n, templates is not None)
        self.guiding = guiding
        self.templates, self.template_file, self.line_width = templates, template_file, line_width
        self.lengths = (
            [length or model.config.data.seq_len]
            if templates is None
            else [len(template.text) for template in templates]
        )

    def describe(self) -> Any:
        what = self._describe_drafts()
        return what if self.guiding is None else [what, self.guiding.describe()]

    def _describe_drafts(self) -> Any:
        if self.templates is None:
            return self.lengths
        return [[t.name, t.description, hashlib.sha256(t.text).hexdigest()] for t in self.templates]

    def gaps(self) -> Iterable[NDArray[np.bool_]]:
        if self.templates is None:
            return [np.ones(self.lengths[0], bool)]
        return (template.gaps for template in self.templates)

    def write(
        self,
        target: Target,
        seed: int,
        *,
        sidecar: str | Path | None = None,
        journal: SampleJournal | None = None,
        tick: Callable[[int], None] | None = None,
    ) -> WrittenSamples:
        return write_samples(
            target,
            self.model,
            n=self.n,
            length=self.lengths[0],
            templates=self.templates,
            template_file=self.template_file,
            how=self.how,
            seed=seed,
            sidecar=sidecar,
            journal=journal,
            line_width=self.line_width,
            tick=tick,
            guiding=self.guiding,
            screener=self.screener,
        )


class TextRequest(SampleRequest):
    """Text: new, after a prompt, or in the gaps of a template file."""

    domain = TEXT

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling | None = None,
        n: int | None = None,
        *,
        length: int | None = None,
        prompt: str | None = None,
        template: str | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """Read the template, if there is one. `tokenizer` None is that of the run.

        Raises `DataError` for a template that is not text or has no gap. Also raises what
        `SampleRequest` raises.
        """
        if prompt is not None and template is not None:
            raise UsageError("--prompt and --template exclude each other", fix="give one of them")
        super().__init__(model, how, n, template is not None)
        self.tokenizer = tokenizer or open_model_tokenizer(model.run, model.alphabet)
        self.padded = model.config.data.packing == "padded"
        tokens = length or model.config.data.seq_len
        if length is None and self.padded and self.tokenizer.vocabulary.start_id is not None:
            tokens -= 1
        if template is not None:
            self.templates = [read_template(template)]
        elif prompt is not None:
            self.templates = [make_prompt_template(prompt, tokens, self.tokenizer)]
        else:
            self.templates = [TextTemplate((tokens,))]
        self.lengths = [len(make_draft(t, self.tokenizer, False).ids) for t in self.templates]
        self.about: dict[str, Any] = {"prompt": prompt, "template": template}

    def describe(self) -> Any:
        return [list(template.parts) for template in self.templates]

    def gaps(self) -> Iterable[NDArray[np.bool_]]:
        mask = self.model.alphabet.mask_id
        return [make_draft(t, self.tokenizer, self.padded).ids == mask for t in self.templates]

    def write(
        self,
        target: Target,
        seed: int,
        *,
        sidecar: str | Path | None = None,
        journal: SampleJournal | None = None,
        tick: Callable[[int], None] | None = None,
    ) -> WrittenSamples:
        return write_texts(
            target,
            self.model,
            self.tokenizer,
            self.templates,
            n=self.n,
            how=self.how,
            seed=seed,
            sidecar=sidecar,
            journal=journal,
            about=self.about,
            tick=tick,
        )
