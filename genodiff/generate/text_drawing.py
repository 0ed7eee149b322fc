"""New text from a trained model: from nothing, after a prompt, or into the gaps of templates.

Texts stand in the output one after another, with a line `<|endoftext|>` between them. The sidecar
says where each record begins.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from genodiff.data.tokenizer import Tokenizer
from genodiff.domain import TEXT, Domain
from genodiff.generate.drawing import Drawing
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import Tick, infill
from genodiff.generate.samples import Sample
from genodiff.generate.sampling import Sampling
from genodiff.generate.text_templates import (
    END,
    Filled,
    TextTemplate,
    fill_text,
    make_draft,
    make_prompt_template,
)
from genodiff.runs.trained_model import TrainedModel


class TextDrawing(Drawing):
    """`n` fillings of each template."""

    domain: ClassVar[Domain] = TEXT

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        n: int,
        tokenizer: Tokenizer,
        templates: Sequence[TextTemplate],
        sources: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model, how, n, sources)
        self.tokenizer, self.templates = tokenizer, templates
        self.padded = model.config.data.packing == "padded"
        self.drafts = [make_draft(one, tokenizer, self.padded) for one in templates]
        self.lengths = [len(make_draft(one, tokenizer, False).ids) for one in templates]

    def describe(self) -> Any:
        return [list(template.parts) for template in self.templates]

    def gaps(self) -> Iterable[NDArray[np.bool_]]:
        mask = self.model.alphabet.mask_id
        return [draft.ids == mask for draft in self.drafts]

    def draw(self, seed: int, first: int = 0, tick: Tick | None = None) -> Iterator[Sample]:
        wanted = islice((one.ids for one in self.drafts for _ in range(self.n)), first, None)
        return infill(
            self.model, wanted, how=self.how, seed=seed, tick=tick, first=first, parts=self.parts
        )

    def read(self, sample: Sample) -> Filled:
        """A sample as text."""
        at = sample.number // self.n
        template, draft = self.templates[at], self.drafts[at]
        return fill_text(template, draft, sample.ids, self.tokenizer, whole=self.padded)

    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        entries: list[dict[str, Any]] = []
        at = 0
        with out.open() as file:
            for sample in samples:
                filled = self.read(sample)
                head = END + b"\n" if sample.number else b""
                file.write(head + filled.text + b"\n")
                entries.append(
                    {
                        "name": self.name(sample.number),
                        "length": len(sample.ids),
                        "filled": self.templates[sample.number // self.n].gaps,
                        "nfe": sample.nfe,
                        "start": at + len(head),
                        "bytes": len(filled.text),
                        "invalid_utf8": filled.invalid,
                    }
                )
                at += len(head) + len(filled.text) + 1
        said = {"domain": TEXT.name, "tokenizer": self.tokenizer.vocabulary.name}
        return {**said, "separator": END.decode(), **self.tell(seed, entries)}


def make_whole_template(
    model: TrainedModel, tokenizer: Tokenizer, length: int | None, prompt: str | None
) -> TextTemplate:
    """A text of `length` tokens, by default the trained length, that begins with `prompt`."""
    tokens = length or model.config.data.seq_len
    padded = model.config.data.packing == "padded"
    if length is None and padded and tokenizer.vocabulary.start_id is not None:
        tokens -= 1
    if prompt is None:
        return TextTemplate((tokens,))
    return make_prompt_template(prompt, tokens, tokenizer)
