"""The words of `--model`, judged before any network is loaded: this module imports no torch."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from genodiff.domain import DNA, TEXT, DomainName
from genodiff.errors import UsageError, did_you_mean
from genodiff.registry import Registry
from genodiff.runs.run_paths import list_ready_models, locate

SCRATCH = "scratch"
EVERY_BASELINE = "baselines"


class Baseline(NamedTuple):
    """What is fitted beside the networks of a table, and where its function stands.

    `fit` makes a predictor of a `BaselineData`; as "module:name" it is imported when it is fitted.
    """

    fit: str | Callable[[Any], Any]
    domains: tuple[DomainName, ...] = (DNA.name,)
    is_drawn: bool = False
    """Its fit draws from the seed. Another is the same for all seeds on the same rows."""
    is_kept: bool = False
    """Its fits have a form in which they are kept."""
    needs_places: bool = False
    """It reads coordinates, and answers with classes."""


BASELINES: Registry[Baseline] = Registry("baseline")
"""A plug-in adds its own: `BASELINES.add("gc", Baseline(fit_gc))`."""
_IN = "genodiff.finetuning.baselines"
BASELINES.add("majority", Baseline(f"{_IN}:fit_majority", (DNA.name, TEXT.name)))
BASELINES.add("length-tree", Baseline(f"{_IN}:fit_length_tree", (DNA.name, TEXT.name)))
BASELINES.add("kmer-lr", Baseline("genodiff.finetuning.count_regression:fit_kmers", is_kept=True))
BASELINES.add("cnn", Baseline(f"{_IN}:fit_network", is_drawn=True, is_kept=True))
for _name in ("lookup-same", "lookup-overlap"):
    BASELINES.add(_name, Baseline(f"{_IN}:fit_lookup", needs_places=True))
for _name in ("bow-lr", "char-lr"):
    BASELINES.add(_name, Baseline("genodiff.finetuning.count_regression:fit_text", (TEXT.name,)))


def list_baselines(domain: DomainName | None = None, **wanted: bool) -> tuple[str, ...]:
    """The baselines, of a domain, that are as `wanted`: `is_kept=True`, for example."""
    return tuple(
        name
        for name, one in BASELINES.items()
        if domain in (None, *one.domains)
        and all(getattr(one, what) == value for what, value in wanted.items())
    )


def split_words(words: Sequence[str], baselines: Sequence[str]) -> list[tuple[str | None, str]]:
    """The (name, word) pairs that are meant: NAME=WORD has a name.

    `baselines` means all baselines. Raises `UsageError` for a word that is neither a baseline, nor
    scratch, nor a path.
    """
    found: list[tuple[str | None, str]] = []
    for word in words:
        if word == EVERY_BASELINE:
            found += [(None, name) for name in baselines]
            continue
        name, equals, rest = word.partition("=")
        named = bool(equals) and "/" not in name and bool(rest)
        found.append((name, rest) if named else (None, word))
    for _, word in found:
        if is_path(word, baselines) and "/" not in word and not locate(word, there=False).exists():
            known = [*baselines, SCRATCH, EVERY_BASELINE, *list_ready_models()]
            what = f"no model '{word}': neither a path, a pretrained model nor a baseline"
            raise UsageError(f"{what}; {did_you_mean(word, known)}")
    if not found:
        raise UsageError("no model", fix="give --model RUN, --model scratch or --model baselines")
    return found


def is_path(word: str, baselines: Sequence[str]) -> bool:
    """Whether a word names a run or a checkpoint."""
    return word not in baselines and word != SCRATCH and not word.startswith(f"{SCRATCH}:")
