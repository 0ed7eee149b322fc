"""The models of a benchmark by short names: checkpoints, random weights, baselines.

A suite is of DNA or of text, and so are its networks. A text network reads with the tokenizer that
it was trained with.

A word of `--model` is one of
    PATH, NAME=PATH        a run folder or checkpoint of ours
    scratch                random weights: the network of the first checkpoint named, or else of the
                           default preset
    scratch:PRESET         random weights of a preset
    a baseline's name      or `baselines` for all of them
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from torch import nn

from genodiff.alphabet import DNA as DNA_ALPHABET
from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import PRESETS
from genodiff.data.tokenizer import ByteTokenizer
from genodiff.domain import DOMAINS, TEXT, DomainName
from genodiff.errors import CheckpointError, UsageError, did_you_mean, printable
from genodiff.finetuning.batches import Encoder, SentenceEncoder
from genodiff.finetuning.model_words import SCRATCH, is_path, split_words
from genodiff.io.file_kinds import canonical_json
from genodiff.runs.feed import open_model_tokenizer, read_tokenizer
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.run_paths import NO_FEATURES, is_no_network, locate
from genodiff.settings import Settings
from genodiff.vocabulary import BYTES

_ALPHABETS: dict[str, Alphabet] = {alphabet.domain: alphabet for alphabet in (DNA_ALPHABET, BYTES)}


class ModelSpec(Settings):
    """One model of a sweep.

    `path` is the checkpoint that gives the weights or, for random weights, the shape.
    """

    name: str
    kind: Literal["checkpoint", "scratch", "baseline"]
    path: str | None = None
    preset: str | None = None
    digest: str = ""
    domain: DomainName = "dna"

    def shape(self) -> tuple[Any, Alphabet]:
        """The settings of the network and its alphabet."""
        if self.path is not None:
            return open_model(self.path).config.backbone, open_model(self.path).alphabet
        preset = self.preset or DOMAINS[self.domain].preset
        return PRESETS[preset], _ALPHABETS[self.domain]

    def encoder(self) -> Encoder:
        """What makes ids: the alphabet or, for text, the run's tokenizer (without one, bytes)."""
        return _sentences(self.path) if self.domain == TEXT.name else self.shape()[1]

    def tokenizer_files(self) -> dict[str, bytes]:
        """The files of a text network's tokenizer, by name; none for DNA and for plain bytes."""
        if self.domain != TEXT.name or self.path is None:
            return {}
        return read_tokenizer(open_model(self.path).run)

    def network(self, seed: int, device: str = "cpu") -> tuple[nn.Module, Alphabet]:
        """A new network for one fit, its weights read or drawn from `seed`, and its alphabet."""
        settings, alphabet = self.shape()
        if self.kind == "checkpoint":
            assert self.path is not None
            return load_model(self.path, device).backbone, alphabet
        network = settings.build(alphabet.padded_size, alphabet.complement, seed=seed)
        return network.to(device), alphabet

    def describe(self) -> dict[str, Any]:
        """What a row says of the network: kind, parameters, training; nothing for a baseline."""
        if self.kind == "baseline":
            return {}
        settings, alphabet = self.shape()
        found = {
            "network": settings.kind,
            "parameters": settings.n_parameters(alphabet.padded_size),
        }
        if self.kind == "checkpoint":
            model = open_model(str(self.path))
            found |= {"checkpoint": model.digest, "step": model.step}
            found["pretrained_on"] = model.config.recipe
        return found


@lru_cache(maxsize=4)
def _sentences(path: str | None) -> SentenceEncoder:
    if path is None:
        return SentenceEncoder(ByteTokenizer())
    model = open_model(path)
    return SentenceEncoder(open_model_tokenizer(model.run, model.alphabet))


@lru_cache(maxsize=4)
def open_model(path: str) -> TrainedModel:
    """The model at `path`, read once; for looking at, not for training."""
    return load_model(path)


def parse_models(
    words: Sequence[str], baselines: Sequence[str], domain: DomainName = "dna"
) -> list[ModelSpec]:
    """The models of a domain that `--model` names, each once, in that order.

    Raises `UsageError` or `CheckpointError`.
    """
    named = split_words(words, baselines)
    first = next((word for _, word in named if is_path(word, baselines)), None)
    found: list[ModelSpec] = []
    for called, word in named:
        one = _parse_model(called, word, first, baselines, domain)
        if any(one.name == other.name and one != other for other in found):
            fix = "name one of them: --model NAME=PATH"
            raise UsageError(f"two models are called '{one.name}'", fix=fix)
        if one not in found:
            found.append(one)
    return found


def _parse_model(
    alias: str | None, word: str, first: str | None, baselines: Sequence[str], domain: DomainName
) -> ModelSpec:
    values: dict[str, Any] = {"name": alias or word, "domain": domain}
    if word in baselines:
        return ModelSpec(**values, kind="baseline", preset=word)
    if word == SCRATCH and first is not None:
        path = str(locate(first, there=False).absolute())
        _check(path, domain)
        return _add_digest(ModelSpec(**values, kind="scratch", path=path))
    if word == SCRATCH or word.startswith(f"{SCRATCH}:"):
        usual = DOMAINS[domain].preset
        preset = usual if word == SCRATCH else word.partition(":")[2]
        if preset not in PRESETS:
            raise UsageError(f"unknown preset '{preset}'; {did_you_mean(preset, PRESETS)}")
        if PRESETS[preset].paired and not DOMAINS[domain].has_two_strands:
            what = f"preset '{preset}' reads both strands of DNA, and {domain} has one"
            raise UsageError(what, fix=f"give {SCRATCH}:{usual}")
        return _add_digest(ModelSpec(**values, kind="scratch", preset=preset))
    path = str(locate(word, there=False).absolute())
    model = _check(path, domain, word)
    values["name"] = alias or printable(model.run.resolve().name)
    return ModelSpec(**values, kind="checkpoint", path=path, digest=model.digest)


def _check(path: str, domain: DomainName, shown: str | None = None) -> TrainedModel:
    """The model at `path`.

    Raises `UsageError` where it has no network, `CheckpointError` where it is of the other domain.
    """
    model = open_model(path)
    if is_no_network(model.run):
        raise UsageError(NO_FEATURES, fix="give a trained model")
    if model.alphabet.domain != domain:
        own, wanted = DOMAINS[model.alphabet.domain].title, DOMAINS[domain].title
        what = f"is a {own} model; these tasks are of {wanted}"
        raise CheckpointError(what, file=shown or path, fix=f"give a model of {wanted}")
    return model


def _add_digest(model: ModelSpec) -> ModelSpec:
    """The model with the digest of its network's shape."""
    settings, alphabet = model.shape()
    shape = canonical_json(settings.model_dump(mode="json")) + alphabet.fingerprint()
    digest = hashlib.sha256(shape.encode()).hexdigest()[:12]
    return model.model_copy(update={"digest": digest})
