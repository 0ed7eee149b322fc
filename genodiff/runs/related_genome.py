"""A genome with related genomes: opened, compared with it, and fitted to it. No network, no torch.

The numbers of each related genome, the tree and its classes are fitted on windows of the target
genome and cached under what decides them, so a second call finds them.

Which relatives are strains of the genome that is judged: told by their bases.

With the same species among them, the held-out answers are in the reference set. So windows of the
target are drawn at even distances, searched in each relative, and their identities measured
(`memory/relatives.py`).
Where most windows are nearly identical, the relative is left out, unless strains are asked for.
A relative with a contig that is the target's, base for base, is refused whatever is asked for.
How near a relative is to a genome is kept in the cache folder.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from genodiff.alphabet import DNA, encode_bases
from genodiff.errors import DataError, MachineError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_json
from genodiff.io.progress import ProgressDisplay
from genodiff.io.target import cache_dir, lock_folder, read_json_object
from genodiff.memory.columns import ColumnNumbers
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.profiles import fit_profiles
from genodiff.memory.relatives import STRAIN, RelativeGenome, Relatives, measure_identities
from genodiff.memory.relatives_fit import fit_relatives, measure_distances
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import ProfileNumbers, VoteNumbers, measure_kappa, weigh_relatives
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import Relative, identify_relatives, open_relatives
from genodiff.runs.relatives_plan import FitClock
from genodiff.settings import Settings

WINDOWS, LENGTH = 200, 1024
UNRELATED = 0.01
"""The share of homologous bases below which a genome is said to be unrelated (bacteria have .002 of
yeast's, one chromosome of a related yeast .035)."""
_MOST_GAPS = 0.1
Kept = TypeVar("Kept", bound=Settings)
_log = logging.getLogger("genodiff")


class Kinship(NamedTuple):
    """How near a relative is to a target: the share of the target's bases that are `homologous`,
    the `identity` of these, the share of windows that are the `same` (above 98 %), and whether it
    is a `strain`, of the same species.
    """

    name: str
    homologous: float
    identity: float
    same: float
    strain: bool


def draw_windows(
    genome: LetterSource,
    n: int = WINDOWS,
    length: int = LENGTH,
    *,
    contigs: Mapping[str, int] | None = None,
) -> Codes:
    """(≤ n, ≤ length): windows at even distances over the contigs (default: all), with few N."""
    contigs = genome.contigs if contigs is None else contigs
    length = min(length, max(contigs.values(), default=0))
    fits = [(name, size) for name, size in contigs.items() if size >= length > 0]
    starts = np.cumsum([0, *(size - length + 1 for _, size in fits)])
    rows = []
    for place in np.unique((np.arange(n) + 0.5) / n * starts[-1] // 1).astype(np.int64).tolist():
        i = int(np.searchsorted(starts, place, "right")) - 1
        if i >= len(fits):
            continue
        at = place - int(starts[i])
        codes = encode_bases(DNA.encode(genome.fetch(fits[i][0], at, at + length)))
        if (codes == NONE).mean() <= _MOST_GAPS:
            rows.append(codes)
    return np.array(rows, np.uint8).reshape(-1, length)


def measure_kinship(relative: Relative, windows: Codes) -> Kinship:
    """How near a relative is to the genome that the windows are from."""
    found = measure_identities(relative.memory, windows)
    homologous = float(found.homologous.mean()) if len(windows) else 0.0
    return Kinship(relative.name, homologous, found.mean, found.share_same, found.is_strain)


def keep_kinships(relatives: Sequence[Relative], genome: LetterSource) -> list[Kinship]:
    """`measure_kinship` of each, cached for a genome that says its `content` or `sha256`."""
    windows: Codes | None = None
    content, found = getattr(genome, "content", None) or getattr(genome, "sha256", None), []
    for one, identity in zip(relatives, identify_relatives(relatives), strict=True):
        key = {"relative": identity, "genome": content, "windows": [WINDOWS, LENGTH, STRAIN]}
        path = cache_dir() / "relatives" / f"{sha256_json(key)[:32]}.json"
        told = read_json_object(path) if content else {}
        if set(told) == set(Kinship._fields):
            found.append(Kinship(**told))
            continue
        windows = draw_windows(genome) if windows is None else windows
        found.append(measure_kinship(one, windows))
        if content:
            with suppress(MachineError):
                atomic.write_json(path, found[-1]._asdict())
    return found


def leave_strains_out(
    relatives: Sequence[Relative], genome: LetterSource, *, strains: bool = False
) -> tuple[list[Relative], list[Kinship]]:
    """The relatives that are no strains (with `strains` all), and how near each is.
    Raises `DataError` where one has a contig of the genome itself, base for base.
    """
    kept = []
    relatives = [one for one in relatives if not _is_same(one, genome)]
    near = keep_kinships(relatives, genome)
    for relative, kinship in zip(relatives, near, strict=True):
        if kinship.strain and not strains:
            what = "%s is left out: %.0f %% of the windows have more than %.0f %% identity, so it "
            what += "is of the same species (--strains includes it)"
            _log.warning(what, relative.name, 100 * kinship.same, 100 * STRAIN)
            continue
        kept.append(relative)
        if kinship.homologous < UNRELATED:
            what = "%s resembles the genome in %.1f %% of its bases only; an unrelated genome "
            what += "makes predictions worse, so leave it out"
            _log.warning(what, relative.name, 100 * kinship.homologous)
    return kept, near


_SURELY = 1000
"""Bases of a contig that two species do not share one by one."""


def _is_same(relative: Relative, genome: LetterSource) -> bool:
    """Whether one genome of a file with many is the genome itself; raises for other relatives."""
    alike, whole = 0, sum(genome.contigs.values())
    for contig, length in genome.contigs.items():
        if relative.contigs.find(genome, contig) is None:
            continue
        alike += length  # a short contig may be the same in two species
        if length >= _SURELY or 2 * alike >= whole:
            what = f"the relative {relative.name} holds {contig} of the genome itself"
            if relative.told.get("records"):
                _log.warning("%s is left out: %s", relative.name, what)
                return True
            fix = "leave it out: a genome cannot be its own relative"
            raise DataError(what, file=relative.told.get("source"), fix=fix)
    return False


FIT_WINDOWS, FIT_LENGTH = 128, 1024
"""Windows that numbers are fitted on, and their bases."""
_VERSION = 9  # of the fit: what another version has cached is not used
_DIGITS = 9


class RelatedGenomes(NamedTuple):
    """Fitted related genomes: `relatives` and `votes`, `told` for a sidecar, and their `digest`;
    `opened` is each of them as a file.

    `fit_profiles` fits the profile classes (`memory/profiles.py`) when called, or reads the cache.
    """

    relatives: Relatives
    votes: VoteNumbers
    fit_profiles: "ProfileFit"
    told: dict[str, Any]
    digest: str
    opened: tuple[Relative, ...]


def relate_genome(
    genome: LetterSource,
    given: Sequence[str | Path],
    *,
    strains: bool = False,
    windows: Codes | None = None,
) -> RelatedGenomes:
    """Fit the related genomes `given` to `windows` (B, L) of `genome`, by default spread over it.

    `given` is what `list_genomes` takes. Genomes of the same species are left out unless `strains`.
    Raises `DataError` for a file that cannot be read, for the genome itself among them, where all
    are left out, and where `genome` has no window to fit on.

    >>> relate_genome(genome, ["paradoxus.fa.gz"]).told["genomes"]  # doctest: +SKIP
    """
    listed = list_genomes(given)
    opened = open_relatives(listed, target=genome)
    kept, near = leave_strains_out(opened, genome, strains=strains)
    if not kept:
        what = "every related genome is of the target's own species"
        raise DataError(what, file=listed.path, fix="give other species, or --strains")
    windows = draw_fit_windows(genome) if windows is None else windows
    if not len(windows):
        what = "has no window without N, on which related genomes are fitted"
        raise DataError(what, file=getattr(genome, "path", None), fix="give a genome with sequence")
    found = fit_related(kept, near, windows)
    told = {"given": [str(one) for one in given], "strains": strains, **found.told}
    return found._replace(told=told)


def draw_fit_windows(genome: LetterSource, contigs: Mapping[str, int] | None = None) -> Codes:
    """(B, L): windows of a genome without N, at even distances over its contigs (default: all)."""
    windows = draw_windows(genome, FIT_WINDOWS, FIT_LENGTH, contigs=contigs)
    return windows[(windows < NONE).all(1)] if len(windows) else windows


def is_fitted_to(kept: Sequence[Relative], windows: Codes) -> bool:
    """Whether the cache has the numbers of opened genomes for these windows of a target."""
    return _read_numbers(_find_numbers(kept, windows), kept) is not None


def fit_related(
    kept: Sequence[Relative], near: Sequence[Kinship], windows: Codes
) -> RelatedGenomes:
    """Fit the opened genomes `kept` to `windows` (B, L) of the target; `near`: their kinships."""
    path = _find_numbers(kept, windows)
    relatives, votes = _fit(kept, windows, path)
    kin = {
        one.name: {k: round(x, 4) if isinstance(x, float) else x for k, x in one._asdict().items()}
        for one in near
    }
    keys = ("name", "species", "fingerprint", "bases")
    genomes = [{key: one.told[key] for key in keys} | kin[one.name] for one in kept]
    told: dict[str, Any] = {"genomes": genomes}
    if left := sorted(kin.keys() - {one.name for one in kept}):
        told["left_out"] = [{"name": name, "why": "of the target's species"} for name in left]
    digest = sha256_json({"fit": _dump(relatives), "of": identify_relatives(kept)})[:8]
    profiles = ProfileFit(relatives, windows, path.with_suffix(".profiles.json"))
    return RelatedGenomes(relatives, votes, profiles, told, digest, tuple(kept))


def _find_numbers(kept: Sequence[Relative], windows: Codes) -> Path:
    """The file in the cache for the numbers of opened genomes that are fitted to windows."""
    key = {
        "version": _VERSION,
        "relatives": identify_relatives(kept),
        "windows": sha256_json(windows.tolist()),
    }
    return cache_dir() / "relatives" / f"{sha256_json(key)[:32]}.json"


def _fit(kept: Sequence[Relative], windows: Codes, path: Path) -> tuple[Relatives, VoteNumbers]:
    """Return the relatives with their numbers, read from the cache or fitted now."""
    with lock_folder(path, "fits relatives"):
        numbers = _read_numbers(path, kept)
        names = ", ".join(one.name for one in kept)
        if numbers is not None:
            _log.info("%s: fitted before, read from the cache", names)
        else:
            each = [_find_numbers([one], windows).with_suffix(".genome.json") for one in kept]
            before = [_read_kept(one, RelativeNumbers) for one in each]
            known = {i: own for i, own in enumerate(before, 1) if own}
            with ProgressDisplay() as display:
                memories, tell = [one.memory for one in kept], FitClock(display, len(kept)).show
                fitted = fit_relatives(memories, windows, tell=tell, known=known)
            over = fitted.align(windows)
            weights = weigh_relatives(measure_distances(over, windows))
            votes = VoteNumbers(weights=tuple(weights.tolist()), kappa=measure_kappa(over, windows))
            numbers = _round({**_dump(fitted), "votes": votes.model_dump(mode="json")})
            for one, genome in zip(each, fitted.genomes, strict=True):
                atomic.write_json(one, genome.numbers.model_dump(mode="json"))
            path.with_suffix(".profiles.json").unlink(missing_ok=True)
            atomic.write_json(path, numbers)
    genomes = tuple(
        RelativeGenome.join(one.memory, RelativeNumbers(**own))
        for one, own in zip(kept, numbers["genomes"], strict=True)
    )
    relatives = Relatives(genomes, ColumnNumbers(**numbers["columns"]))
    return relatives, VoteNumbers(**numbers["votes"])


class ProfileFit(NamedTuple):
    """The fit of `memory/profiles.py` to windows of a target: made when called, kept at `path`."""

    relatives: Relatives
    windows: Codes
    path: Path

    @property
    def is_ready(self) -> bool:
        return _read_kept(self.path, ProfileNumbers) is not None

    def __call__(self) -> ProfileNumbers:
        columns = self.relatives.columns
        assert columns is not None
        with lock_folder(self.path, "fits relatives"):
            known = _read_kept(self.path, ProfileNumbers)
            if known is not None:
                return known
            over = self.relatives.align(self.windows)
            distances = measure_distances(over, self.windows)
            fitted = fit_profiles(over, self.windows, distances, columns.tree, columns.gc)
            numbers = _round(fitted.model_dump(mode="json"))
            atomic.write_json(self.path, numbers)
            return ProfileNumbers(**numbers)


def _round(numbers: Any) -> Any:
    """Round fitted numbers, whose last bits may differ from machine to machine, to `_DIGITS`."""
    if isinstance(numbers, dict):
        return {name: _round(one) for name, one in numbers.items()}
    if isinstance(numbers, list):
        return [_round(one) for one in numbers]
    return float(f"{numbers:.{_DIGITS}g}") if isinstance(numbers, float) else numbers


def _dump(relatives: Relatives) -> dict[str, Any]:
    assert relatives.columns is not None
    return {
        "genomes": [one.numbers.model_dump(mode="json") for one in relatives.genomes],
        "columns": relatives.columns.model_dump(mode="json"),
    }


def _read_kept(path: Path, kind: type[Kept]) -> Kept | None:
    """What was kept of a fit, to the last bit; None where it is not there or damaged."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _read_numbers(path: Path, kept: Sequence[Relative]) -> dict[str, Any] | None:
    """What was kept of a fit, if it is sound and searched each genome as it is now."""
    try:
        numbers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        ColumnNumbers(**numbers["columns"])
        VoteNumbers(**numbers["votes"])
        for one, told in zip(kept, numbers["genomes"], strict=True):
            own = RelativeNumbers(**told)
            if RelativeGenome(one.memory, own).is_distant and not own.far:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return numbers
