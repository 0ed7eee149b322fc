"""New sequences and filled ones, in memory: what `genodiff sample` writes to files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from genodiff.data.tokenizer import Tokenizer
from genodiff.errors import UsageError
from genodiff.generate.infill import Template
from genodiff.generate.sample import Sampling, infill, require_positive, sample
from genodiff.generate.text_output import (
    TextTemplate,
    fill_text,
    make_draft,
    make_prompt_template,
    parse_template,
)
from genodiff.runs.model import TrainedModel


@dataclass(frozen=True)
class SampledSequence:
    """A new or filled sequence; `nfe` counts the evaluations of the network for it."""

    name: str
    sequence: str
    nfe: int


def sample_sequences(
    model: TrainedModel,
    tokenizer: Tokenizer | None,
    n: int,
    how: Sampling,
    *,
    length: int | None = None,
    prompt: str | None = None,
    seed: int = 1,
) -> Iterator[SampledSequence]:
    """`n` new sequences; with a tokenizer, texts that begin with `prompt`. Raises `UsageError`."""
    require_positive("number of sequences", n)
    require_positive("length", length)
    if tokenizer is not None:
        template = _whole_text(model, tokenizer, length, prompt)
        yield from _fill_texts(model, tokenizer, [template] * n, how, seed)
        return
    if prompt is not None:
        what = "a prompt is for text, and the model is of DNA"
        raise UsageError(what, fix="use infill, with N where bases are to be filled in")
    settings = {name: getattr(how, name) for name in how.__dataclass_fields__}
    for one in sample(model, n, length or model.config.data.seq_len, seed=seed, **settings):
        yield SampledSequence(_name(one.number), model.alphabet.decode(one.ids), one.nfe)


def fill_sequences(
    model: TrainedModel,
    tokenizer: Tokenizer | None,
    given: Sequence[Template] | Sequence[str],
    how: Sampling,
    seed: int,
) -> Iterator[SampledSequence]:
    """Each of `given` filled, in order: templates of DNA, or with a tokenizer texts with gaps."""
    if tokenizer is not None:
        texts = [parse_template(str(text)) for text in given]
        yield from _fill_texts(model, tokenizer, texts, how, seed)
        return
    templates = [one for one in given if isinstance(one, Template)]
    drafts = (template.ids(model.alphabet) for template in templates)
    done = infill(model, drafts, how=how, seed=seed)
    for template, one in zip(templates, done, strict=True):
        text = template.filled(one.ids, model.alphabet).decode("ascii")
        yield SampledSequence(template.name, text, one.nfe)


def _whole_text(
    model: TrainedModel, tokenizer: Tokenizer, length: int | None, prompt: str | None
) -> TextTemplate:
    tokens = length or model.config.data.seq_len
    if length is None and _is_padded(model) and tokenizer.vocabulary.start_id is not None:
        tokens -= 1
    return (
        TextTemplate((tokens,))
        if prompt is None
        else make_prompt_template(prompt, tokens, tokenizer)
    )


def _fill_texts(
    model: TrainedModel,
    tokenizer: Tokenizer,
    templates: Sequence[TextTemplate],
    how: Sampling,
    seed: int,
) -> Iterator[SampledSequence]:
    padded = _is_padded(model)
    drafts = [make_draft(template, tokenizer, padded) for template in templates]
    done = infill(model, (np.asarray(made.ids) for made in drafts), how=how, seed=seed)
    for template, made, one in zip(templates, drafts, done, strict=True):
        text = fill_text(template, made, one.ids, tokenizer, whole=padded).text.decode()
        yield SampledSequence(_name(one.number), text, one.nfe)


def _is_padded(model: TrainedModel) -> bool:
    return model.config.data.packing == "padded"


def _name(number: int) -> str:
    return f"genodiff_{number + 1:06d}"
