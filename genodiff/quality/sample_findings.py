"""What sets samples apart from real sequence, in sentences: where an interval is off the floor's.

A finding needs two 95 % intervals that do not overlap, that of the samples and that of other real
sequence. This is stricter than a test at 5 %. No finding says only that none of these figures
can tell the samples from real DNA.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Part = Mapping[str, Any]
Ends = tuple[float, float]


class Trait(NamedTuple):
    """A figure of a set, with what it says where it is above (or below) the floor."""

    name: str
    read: Callable[[Part], tuple[float, Ends] | None]
    says: str
    bad_above: bool = True
    form: str = ".3f"


def _with_error(pick: Callable[[Part], Any], key: str = "value") -> Callable[[Part], Any]:
    def read(part: Part) -> tuple[float, Ends] | None:
        found = pick(part)
        if found is None or found["se"] is None:
            return None
        half = 1.96 * found["se"]
        return found[key], (found[key] - half, found[key] + half)

    return read


def _share(table: str, name: str) -> Callable[[Part], Any]:
    def read(part: Part) -> tuple[float, Ends] | None:
        found = part[table]
        return None if found is None else (found[name], tuple(found[f"{name}_ci95"]))

    return read


def _list_traits(part: Part) -> list[Trait]:
    words = [
        Trait(
            f"{k}-mers",
            _with_error(lambda one, k=k: one["js"][k]),  # type: ignore[misc]
            f"words of {k} bases are used in other proportions than in real sequence",
        )
        for k in part["js"]
    ]
    told = [
        Trait(
            f"AUROC, {by}",
            _with_error(lambda one, by=by: one["auroc"][by]),  # type: ignore[misc]
            "a classifier tells the samples from real sequence",
        )
        for by in part["auroc"]
    ]
    return [
        Trait(
            "match of 20 bases",
            _share("match", "long"),
            "more samples share 20 bases with train than real sequence does: copied",
            form=".1%",
        ),
        Trait(
            "near copies, train",
            _share("match", "near"),
            "more samples equal a stretch of train in 80 % of their bases: copied with changes",
            form=".1%",
        ),
        Trait(
            "near copies, set",
            _share("within", "near"),
            "samples resemble one another: the generator has collapsed on few sequences",
            form=".1%",
        ),
        *told,
        *words,
        Trait(
            "motifs",
            _with_error(lambda one: one["motifs"]),
            "motifs stand there in other proportions than in real sequence",
            bad_above=False,
        ),
        Trait(
            "Frechet distance",
            _with_error(lambda one: one["fbd"]),
            "embeddings have another law than those of real sequence",
        ),
        Trait(
            "codons",
            _with_error(lambda one: one["codons"]),
            "codons of the longest open frames are used in other proportions",
        ),
        Trait(
            "open frame",
            _with_error(lambda one: one["open_frame"], "mean"),
            "open frames are shorter than those of real sequence",
            bad_above=False,
            form=".1f",
        ),
    ]


def list_sample_findings(sets: Mapping[str, Part]) -> list[dict[str, str]]:
    """The findings of `sets["samples"]` beside `sets["real"]`: the figure, and what it says."""
    found = []
    for trait in _list_traits(sets["samples"]):
        mine, floor = trait.read(sets["samples"]), trait.read(sets["real"])
        if mine is None or floor is None:
            continue
        (value, ends), (beside, limits) = mine, floor
        off = ends[0] > limits[1] if trait.bad_above else ends[1] < limits[0]
        if off:
            shown = f"{value:{trait.form}}, and real sequence {beside:{trait.form}}"
            found.append({"figure": trait.name, "says": f"{trait.says} ({shown})"})
    duplicates = sets["samples"]["duplicates"]
    if duplicates > sets["real"]["duplicates"]:
        says = f"{duplicates:,} samples stand there more than once, on either strand"
        found.insert(0, {"figure": "duplicates", "says": says})
    return found
