"""What is wrong with the words of a command line, in one sentence."""

from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from genodiff.errors import did_you_mean, printable

_NEAR = 0.7  # of two flags without their dashes; less suggests what nobody meant
_FEW = 24  # flags that a message may list
_READ_RELATIVES = "eval, score, tracks, ism, dependencies, embed, sample, redesign, finetune bases"


def explain(error: CycloptsError) -> str:
    """What is wrong, with the nearest name where one is near, and where help is."""
    what = _describe(error)
    return f"{what}{'' if what.endswith('?') else ';'} see `{_command(error)} --help`"


def _command(error: CycloptsError) -> str:
    return " ".join(["genodiff", *(error.command_chain or ())])


def _describe(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens and error.app is not None:
        # The text of cyclopts would import every verb, and its list of verbs is cut off.
        name = error.unused_tokens[0]
        known = [verb for verb in error.app if not verb.startswith("-")]
        if "table" in known and Path(name).suffix:  # of `finetune`, a file where a suite belongs
            own = f"sequences of your own: `{_command(error)} table --train {printable(name)}`"
            return f"'{printable(name)}' is no suite; {own}"
        return f"unknown command '{printable(name)}'; {did_you_mean(name, known)}"
    if isinstance(error, UnknownOptionError):
        return _describe_option(error)
    if isinstance(error, UnusedCliTokensError):
        words = " ".join(printable(word) for word in error.unused_tokens or ())
        of_suite = (error.command_chain or ())[:1] == ("finetune",) and " " not in words
        return f"unexpected argument {words}{f'. A model: --model {words}' * of_suite}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        if error.keyword is None:
            return f"{error.argument.name} is missing"
        if error.argument.token_count()[0] == 1:
            return f"{error.keyword} needs a value"
    what = " ".join(str(error).split()).rstrip(".")
    token = error.token if isinstance(error, CoercionError) else None
    if token is not None and token.keyword == "--memory" and Path(token.value).suffix:
        return f"{what}. Genomes of others are read with --relatives {printable(token.value)}"
    return what


_SAME = (
    ("genes", "features", "annotation", "gff", "gff3", "gtf"), ("fasta", "genome", "reference"),
    ("out", "output", "outdir"), ("region", "bed", "regions", "targets"),
)  # fmt: skip
"""Words that other tools, or other verbs, use for an option."""


def _describe_option(error: UnknownOptionError) -> str:
    given = (error.token.keyword or error.token.value).split("=", 1)[0]
    names = chain.from_iterable(one.names for one in error.argument_collection if one.parse)
    known = {name.lstrip("-"): name for name in names if name.startswith("-")}
    shown = f"Unknown option: {printable(given)}"
    if given in ("--relatives", "--strains"):
        return f"{shown}. Relatives are read by a trained run: give them to {_READ_RELATIVES}"
    bare = given.lstrip("-").lower()
    near = [name for group in _SAME if bare in group for name in group if name in known]
    near += get_close_matches(bare, known, n=1, cutoff=_NEAR)
    near += [name for name in (bare.partition("-")[0],) if name in known]  # --keep-constrained
    if near:
        return f"{shown}. Did you mean {known[near[0]]}?"
    flags = [flag for flag in known.values() if flag.startswith("--") and "." not in flag]
    positive = [flag for flag in flags if not flag.startswith("--no-")]
    return f"{shown}. Known: {', '.join(sorted(positive))}" if len(positive) <= _FEW else shown
