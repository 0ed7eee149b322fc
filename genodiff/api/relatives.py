"""Genomes of related species before a model reads them: `genodiff.build_relatives`,
`list_relatives`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genodiff.errors import UsageError
from genodiff.io.target import check_target


@dataclass(frozen=True)
class BuiltRelatives:
    """Relatives that a model can read, or a plan to build them."""

    path: Path
    row: dict[str, Any]
    """As `genodiff data relatives --json` prints: of each genome its state, and what is needed."""

    def describe(self) -> list[str]:
        """The same for a person to read."""
        from genodiff.runs.relatives_plan import describe_relatives

        return describe_relatives(self.row)


def list_relatives() -> list[dict[str, Any]]:
    """The recipes of relatives: name, description, genomes, bases, and how many are `built`.

    >>> [row["name"] for row in genodiff.list_relatives()][-1]
    'sarbecoviruses'
    """
    from genodiff.data.genomes.listing import read_genome_list
    from genodiff.runs.relative_lists import list_relative_recipes
    from genodiff.runs.relatives import is_built

    found = []
    for recipe in list_relative_recipes():
        rows = read_genome_list(recipe.path).rows
        found.append(
            {
                "name": recipe.name,
                "description": recipe.description,
                "genomes": len(rows),
                "bases": sum(row.bases for row in rows),
                "built": sum(map(is_built, rows)),
                "path": str(recipe.path),
            }
        )
    return found


def build_relatives(
    relatives: str | Path | Sequence[str | Path],
    *,
    out: str | Path | None = None,
    only: Iterable[str] = (),
    jobs: int | None = None,
    plan: bool = False,
    offline: bool = False,
    force: bool = False,
) -> BuiltRelatives:
    """Fetch the genomes of relatives, check them by their hashes, and index them, once.

    `relatives` are recipes by name (`genodiff.list_relatives`), lists of genomes (.tsv) and FASTA
    files. `only` names those that are taken. They are built in the cache folder, where `relatives=`
    finds them by the same names; or in the folder `out`, which `relatives=` takes itself, and which
    may be moved. `jobs` are built at a time (default: as many as cores and memory allow). A build
    that was killed goes on, to the same bytes. With `plan` nothing is fetched or built.

    Raises `DataError` naming each genome that cannot be had, when all others are built; and
    `MachineError` where disk or memory lacks, before anything is fetched.

    >>> genodiff.build_relatives("saccharomyces", plan=True).row["to_build"]  # doctest: +SKIP
    8
    """
    from genodiff.io.process import count_usable_cores
    from genodiff.runs.relative_lists import BUILT, choose_genomes, list_genomes, write_built
    from genodiff.runs.relatives import build_relatives as build
    from genodiff.runs.relatives import find_home, find_memory, open_relatives
    from genodiff.runs.relatives_plan import check_relatives_room, plan_relatives

    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} is below 1", fix="give 1 or more")
    given = [relatives] if isinstance(relatives, str | Path) else list(relatives)
    if not given:
        raise UsageError("no relatives are named", fix="give a recipe, a list or FASTA files")
    listed = choose_genomes(list_genomes(given, fetches=True), only)
    if out is not None:
        check_target(Path(out) / BUILT, force=force, inputs=given)
    cores = jobs or count_usable_cores()
    found = plan_relatives(listed, home=out, jobs=cores)
    if plan:
        return BuiltRelatives(Path(found["folder"]), found)
    check_relatives_room(found)
    build(listed, home=out, jobs=cores, offline=offline)
    open_relatives(listed, home=out, offline=True)
    if out is not None:
        write_built(Path(out), listed.rows, lambda row: find_memory(row, out))
    found = plan_relatives(listed, home=out, jobs=cores)
    return BuiltRelatives(find_home(out), found)
