"""`RUN/eval.json`: all evaluations of a run, each under a name that describes it.

    {"test": {...}, "test, 20 of 765 windows, no baselines": {...}, "test of other.fa": {...}}

A newer evaluation replaces an older one with equal values of `_IDENTITY`. Among the evaluations of
one split, data set and context the fullest has the short name ("test"); the names of the others
state what they lack. Fullest means, in this order: of the run's present weights (else of the latest
step), soft-masked bases counted, most windows, most masks, with baselines, with an order
(--order), newest.

Data that the run was not trained on (by its fingerprint in provenance.json) are named "SPLIT of
FILE" or "SPLIT of FILE (BED)", evaluations of whole contigs "SPLIT in whole contigs". A network
with retrieval from the training genome is another model, named "SPLIT with memory" or "SPLIT with
exhaustive memory". Other entries of the file keep their names.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from genodiff.errors import GenodiffError, MachineError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_json
from genodiff.io.target import cache_dir, check_target, lock_folder, read_json_object
from genodiff.runs.checkpoint import CARD
from genodiff.runs.folder import PROVENANCE
from genodiff.runs.run_paths import check_may_write
from genodiff.runs.sealed_files import read_json

log = logging.getLogger("genodiff")

EVAL = "eval.json"
_GROUP = ("fingerprint", "split", "context", "seq_len", "block")
_IDENTITY = (*_GROUP, "checkpoint", "windows", "windows_total", "repeats", "seed", "soft_masked")
_ORDER = ("name", "steps", "options", "complete", "evaluations")
_SHORTENED = 8  # digits of a fingerprint or checkpoint that tell two like names apart

Evaluations = dict[str, dict[str, Any]]


def find_evaluation_file(
    run: Path, out: str | Path | None = None, *, force: bool = False
) -> Path | None:
    """Choose the file for an evaluation of `run`: `out`, else RUN/eval.json.

    Returns None, with a message, for a read-only run of another user. Raises as `check_target`
    does; a JSON object is accepted as a target, since its other entries are preserved.
    """

    def known(path: Path) -> bool:
        return bool(read_json_object(path))

    if out is not None:
        check_target(out, force=force, known=known)
        return Path(out)
    try:
        check_may_write(run, "give --out FILE")
        check_target(run / EVAL, force=force, known=known)
    except MachineError as fault:
        log.warning("%s: %s; the figures are not saved (use --out FILE)", run / EVAL, fault.what)
        return None
    return run / EVAL


def write_evaluation(run: Path, result: dict[str, Any], path: Path | None = None) -> str:
    """Add a result of `evaluate` to RUN/eval.json (or `path`); returns its name there.

    Raises `MachineError`.
    """
    path = path or run / EVAL
    trained_on = (_read(run / PROVENANCE).get("data") or {}).get("fingerprint")
    weights = str(_read(run / CARD).get("weights_sha256") or "")
    # The lock stands in the cache: a run folder holds nothing that is not of the run.
    lock = cache_dir() / "locks" / sha256_json([str(path.parent.resolve())])[:16]
    with lock_folder(lock, "writes an evaluation"):
        kept = join_evaluation(_read(path), result, trained_on, weights)
        atomic.write_json(path, kept)
    return next(name for name, one in kept.items() if one is result)


def join_evaluation(
    kept: Evaluations, result: dict[str, Any], trained_on: str | None, weights: str = ""
) -> Evaluations:
    """Return `kept` with `result`, all under their names.

    `trained_on` is the fingerprint of the run's own data, and `weights` the digest of its model.
    """
    others = {name: one for name, one in kept.items() if not _is_evaluation(one)}
    key = identify_evaluation(result)
    older = [one for one in kept.values() if _is_evaluation(one)]
    ours = [*(one for one in older if identify_evaluation(one) != key), result]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in ours:
        group_of = (*(one.get(key) for key in _GROUP), _describe_memory(one))
        groups.setdefault(group_of, []).append(one)
    named: Evaluations = {}
    for group in sorted(groups.values(), key=lambda group: min(map(_created, group))):
        group.sort(key=lambda one: rank_evaluation(one, weights), reverse=True)
        short = _free_name(named, name_evaluation(group[0], trained_on), group[0], "fingerprint")
        named[short] = group[0]
        for one in group[1:]:
            named[_free_name(named, f"{short}, {_describe(one, group[0])}", one, "created")] = one
    for name, one in others.items():
        named[name if name not in named else f"{name} (earlier)"] = one
    return named


def name_memory(result: dict[str, Any]) -> str:
    """Fingerprint of the memory used; empty without one."""
    return str((result.get("memory") or {}).get("fingerprint") or "")


def identify_evaluation(result: dict[str, Any]) -> tuple[Any, ...]:
    """Key of an evaluation: a newer one with an equal key replaces an older one."""
    mixture = result.get("adaptive_mixture") is not None
    mixed_in = result.get("memory") or {}
    memory = sha256_json([name_memory(result), mixed_in.get("numbers"), mixed_in.get("effort")])
    order = sha256_json([(result.get("order") or {}).get(key) for key in _ORDER])
    figures = has_baselines(result), mixture, memory, order
    return (*(result.get(key) for key in _IDENTITY), *figures)


def has_baselines(result: dict[str, Any]) -> bool:
    """Whether Markov models or n-grams were counted."""
    return bool(result.get("markov_bits"))


def rank_evaluation(result: dict[str, Any], weights: str = "") -> tuple[Any, ...]:
    """Order evaluations by completeness: see the module."""
    checkpoint = str(result.get("checkpoint") or "")
    return (
        bool(checkpoint) and weights.startswith(checkpoint),
        result.get("step") or 0,
        result.get("soft_masked", 1),
        (result.get("windows") or 0) / max(result.get("windows_total") or 1, 1),
        result.get("repeats") or 1,
        has_baselines(result),
        result.get("adaptive_mixture") is not None,
        result.get("order") is not None,
        _created(result),
    )


def name_evaluation(result: dict[str, Any], trained_on: str | None) -> str:
    """The short name: split, data and context."""
    name = str(result["split"])
    if trained_on not in (None, result["fingerprint"]):
        name += f" of {name_data(result)}"
        name += f" ({Path(result['bed']).name})" if result.get("bed") else ""
    name += " in whole contigs" * (result["context"] == "contig")
    name += f" in blocks of {result['block']}" if result.get("block") else ""
    return name + _describe_memory(result)


def _describe_memory(result: dict[str, Any]) -> str:
    if not name_memory(result):
        return ""
    effort = result["memory"].get("effort") or {"scored": 0}
    return " with memory" if effort["scored"] is not None else " with exhaustive memory"


def name_data(result: dict[str, Any]) -> str:
    """Name of the evaluated file or recipe."""
    if "text" in result and result["recipe"] != "own":
        return str(result["recipe"])
    return Path(result.get("fasta") or result.get("text") or result["recipe"]).name


def _describe(result: dict[str, Any], fullest: dict[str, Any]) -> str:
    """Describe an evaluation that is not the fullest."""
    words = []
    if result.get("step") != fullest.get("step"):
        words.append(f"step {result.get('step')}")
    words.append(f"{result.get('windows')} of {result.get('windows_total')} windows")
    if (repeats := result.get("repeats") or 1) > 1:
        words.append(f"{repeats} masks each")
    if not result.get("soft_masked", 1):
        words.append("without soft-masked bases")
    if result.get("seed") != fullest.get("seed"):
        words.append(f"seed {result.get('seed')}")
    if not has_baselines(result):
        words.append("no baselines")
    elif result.get("adaptive_mixture") is None and fullest.get("adaptive_mixture") is not None:
        words.append("no mixture")
    if (result.get("order") or {}).get("name") != (fullest.get("order") or {}).get("name"):
        words.append("no order" if result.get("order") is None else result["order"]["name"])
    return ", ".join(words)


def _free_name(taken: Iterable[str], name: str, result: dict[str, Any], key: str) -> str:
    """`name`, with the start of the evaluation's `key` where that is taken."""
    if name not in taken:
        return name
    longer = f"{name} ({str(result.get(key))[: _SHORTENED if key == 'fingerprint' else None]})"
    return longer if longer not in taken else f"{longer} {sha256_json(result)[:_SHORTENED]}"


def _is_evaluation(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(k), str) for k in _GROUP[:3])


def _created(result: dict[str, Any]) -> str:
    return str(result.get("created") or "")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return read_json(path)
    except GenodiffError as fault:
        log.warning("%s; it is ignored", fault)
        return {}
