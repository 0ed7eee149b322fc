"""`genodiff sample --domain text`: new text, after a prompt or into a template's gaps."""

import logging
import sys
import time
from pathlib import Path
from typing import Any

import torch

from genodiff.errors import CheckpointError, UsageError
from genodiff.generate.sample import Sampling, Workload, fitting_batch, settled, workload
from genodiff.generate.text import TextTemplate, draft, prompted, read_template, write_texts
from genodiff.io.progress import format_duration
from genodiff.runs.model import Model
from genodiff.runs.tokenizer_files import model_tokenizer

_log = logging.getLogger("genodiff")
DEFAULT_N = 4


class TextRequest:
    """What is to be written, ready to be counted and filled. Raises `UsageError`, `DataError`,
    `CheckpointError`.
    """

    def __init__(
        self,
        model: Model,
        n: int | None,
        length: int | None,
        prompt: str | None,
        template: str | None,
        how: Sampling,
    ) -> None:
        if prompt is not None and template is not None:
            raise UsageError("--prompt and --template exclude each other", fix="give one of them")
        if model.alphabet.domain != "text":
            raise CheckpointError(
                f"is a {model.alphabet.domain} model",
                file=model.run,
                fix="give a text run, or --fasta for DNA",
            )
        self.model, self.how = model, settled(how, model.objective)
        self.tokenizer = model_tokenizer(model.run, model.alphabet)
        tokens = length or model.config.data.seq_len
        padded = (
            model.config.data.packing == "padded" and self.tokenizer.vocabulary.start_id is not None
        )
        tokens -= int(padded and length is None)
        if template is not None:
            self.templates = [read_template(template)]
        elif prompt is not None:
            self.templates = [prompted(prompt, tokens, self.tokenizer)]
        else:
            self.templates = [TextTemplate((tokens,))]
        self.n = n or (DEFAULT_N if template is None else 1)
        self.about: dict[str, Any] = {"prompt": prompt, "template": template}

    def workload(self) -> Workload:
        """What one filling of each template takes."""
        mask, padded = self.model.alphabet.mask_id, self.model.config.data.packing == "padded"
        return workload(
            self.model,
            [draft(t, self.tokenizer, padded).ids == mask for t in self.templates],
            how=self.how,
        )

    def write(self, out: str, seed: int, sidecar: str | None, tick: Any) -> None:
        """Write all of it."""
        target: Any = sys.stdout.buffer if out == "-" else out
        settings: dict[str, Any] = {
            "n": self.n,
            "how": self.how,
            "seed": seed,
            "sidecar": sidecar,
            "about": self.about,
            "tick": tick,
        }
        written = write_texts(target, self.model, self.tokenizer, self.templates, **settings)
        _log.info("%s: %d records, %d tokens, %d evaluations", out, *written)

    def print_plan(self, work: Workload, out: str) -> None:
        """Say on stdout what sampling would take; the time comes from one evaluation on this
        machine.
        """
        model, n = self.model, self.n
        size = max(len(draft(t, self.tokenizer, False).ids) for t in self.templates)
        window = min(model.config.data.seq_len, size)
        rows = min(self.how.batch_size or fitting_batch(model, window), n * len(self.templates))
        xt = torch.full(
            (rows, window), model.alphabet.mask_id, device=next(model.backbone.parameters()).device
        )
        with torch.inference_mode():
            model.backbone(xt)
            began = time.perf_counter()
            model.backbone(xt).cpu()
            each = (time.perf_counter() - began) / rows
        weights = sum(p.numel() for p in model.backbone.parameters())
        trained = f"{model.alphabet.name}, trained on {model.config.data.seq_len:,} tokens"
        print(f"model        {weights:,} parameters, {trained}, {model.digest}")
        print(f"records      {n * len(self.templates):,} of {size:,} tokens")
        print(f"to fill      {n * work.bases:,} tokens in {n * work.windows:,} windows")
        print(f"evaluations  about {n * work.evaluations:,.0f} of the network on one window")
        print(f"time         about {format_duration(n * work.evaluations * each)} on {xt.device}")
        print(f"files        {out}" + ("" if out == "-" else f", {Path(out)}.json"))


def refuse_flags_of_dna(
    out: str | None, fasta: str | None, domain: str | None, **given: object
) -> str:
    """The output's name. Raises `UsageError` where flags contradict one another."""
    if fasta is not None:
        raise UsageError(
            "--fasta is for DNA, and text goes to --out",
            fix="give --out FILE, or leave --domain text out",
        )
    if domain == "dna":
        raise UsageError(
            "--out and --prompt are for text, and --domain says dna", fix="give --fasta FILE"
        )
    if out is None:
        raise UsageError("no file to write", fix="give --out FILE, or --out - for stdout")
    for name, value in given.items():
        if value:
            raise UsageError(
                f"--{name.replace('_', '-')} is for DNA, and this is text", fix="leave it out"
            )
    return out
