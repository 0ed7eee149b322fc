"""The words of `--model`, judged before any network is loaded: this module imports no torch."""

from collections.abc import Sequence

from genodiff.domain import DNA, TEXT, DomainName
from genodiff.errors import UsageError, did_you_mean
from genodiff.runs.ready_models import list_ready_models
from genodiff.runs.run_paths import find_model_folder

SCRATCH = "scratch"
ADAPTED = "adapted:"
"""Before a run or `scratch`: first trained on the task's own train sequences, without labels."""
EVERY_BASELINE = "baselines"
EVERY_TUNED = "tuned-baselines"

BASELINES = (
    "majority", "length-tree", "kmer-lr", "cnn", "lookup-same", "lookup-overlap",
)  # fmt: skip
"""The names of the baselines of DNA (see `baselines`)."""

TUNED_BASELINES = ("kmer-tuned", "gkm-svm", "pos-kmer-lr", "pos-kmer-gb", "cnn-tuned")
"""Baselines of DNA whose settings are chosen by validation (see `tuned_baselines`)."""

DRAWN_BASELINES = ("cnn", "cnn-tuned")
"""Baselines whose fit draws from the seed. Another is the same for all seeds on the same rows."""

TEXT_BASELINES = ("majority", "length-tree", "bow-lr", "char-lr")
"""The names of the baselines of text."""


def list_baselines(domain: DomainName) -> tuple[str, ...]:
    """The baselines of a domain."""
    return {DNA.name: BASELINES + TUNED_BASELINES, TEXT.name: TEXT_BASELINES}[domain]


def split_words(words: Sequence[str], baselines: Sequence[str]) -> list[tuple[str | None, str]]:
    """The (name, word) pairs that are meant: NAME=WORD has a name.

    `baselines` means all that need no choice of settings, `tuned-baselines` those that do.
    Raises `UsageError` for a word that is neither a baseline, nor scratch, nor a path.
    """
    found: list[tuple[str | None, str]] = []
    for word in words:
        if word in (EVERY_BASELINE, EVERY_TUNED):
            tuned = word == EVERY_TUNED
            meant = [name for name in baselines if (name in TUNED_BASELINES) == tuned]
            if not meant:
                raise UsageError(f"no {word} for such data", fix=f"give --model {EVERY_BASELINE}")
            found += [(None, name) for name in meant]
            continue
        name, equals, rest = word.partition("=")
        named = bool(equals) and "/" not in name and bool(rest)
        found.append((name, rest) if named else (None, word))
    for _, given in found:
        word = given.removeprefix(ADAPTED)
        if word != given and word in (*baselines, EVERY_BASELINE, EVERY_TUNED):
            raise UsageError(
                f"'{given}': a baseline has no pretraining to go on with",
                fix=f"give {ADAPTED}RUN or {ADAPTED}{SCRATCH}",
            )
        if is_path(word, baselines) and "/" not in word and not find_model_folder(word).exists():
            known = [*baselines, SCRATCH, EVERY_BASELINE, EVERY_TUNED, *list_ready_models()]
            what = f"no model '{word}': neither a path, a ready model nor a baseline"
            raise UsageError(f"{what}; {did_you_mean(word, known)}")
    if not found:
        raise UsageError("no model", fix="give --model RUN, --model scratch or --model baselines")
    return found


def is_path(word: str, baselines: Sequence[str]) -> bool:
    """Whether a word names a run or a checkpoint."""
    word = word.removeprefix(ADAPTED)
    return word not in baselines and word != SCRATCH and not word.startswith(f"{SCRATCH}:")
