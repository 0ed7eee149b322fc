"""Genomes of related species before a model reads them: `genodiff.build_relatives`,
`list_relatives`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import Ge

from genodiff.errors import UsageError
from genodiff.io.input_file import planning
from genodiff.io.target import check_target
from genodiff.jobs.machine import count_jobs
from genodiff.jobs.options import OUT, Force, Offline, Plan
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb


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


@verb(
    "data relatives",
    function="build_relatives",
    help="""
Download and index genomes of related species, for `--relatives`.

RELATIVES are recipes by name, lists of genomes (.tsv: path or URL, name, species, sha256), and
FASTA files. Without any, the recipes are listed.
""",
)
@dataclass(frozen=True, kw_only=True)
class RelativesRequest(Request[BuiltRelatives]):
    """Download related genomes, verify their hashes, and index them, once.

    `relatives` are recipes by name (`genodiff.list_relatives`), lists of genomes (.tsv) and FASTA
    files. `only` selects genomes by name. They are built in the cache folder, where `relatives=`
    finds them by the same names; or in the folder `out`, which can be passed to `relatives=` and
    moved. `jobs` are built in parallel (default: as many as cores and memory allow). An interrupted
    build resumes, to the same bytes. With `plan` nothing is downloaded or built.

    Raises `DataError` naming each unavailable genome, after all others are built; and
    `MachineError` for insufficient disk or memory, before anything is downloaded.

    >>> genodiff.build_relatives("saccharomyces", plan=True).row["to_build"]  # doctest: +SKIP
    8
    """

    relatives: Annotated[
        str | Path | Sequence[str | Path],
        Option("Recipes by name, lists of genomes, FASTA files.", ("RELATIVES",), is_word=True),
    ] = field(default=(), kw_only=False)
    out: Annotated[
        Path | str | None,
        Option("Folder to build in, to be passed to --relatives [the cache folder].", OUT),
    ] = None
    only: Annotated[
        Sequence[str], Option("Name of a genome to include; one or several [all].")
    ] = ()
    jobs: Annotated[
        int | None,
        Ge(1),
        Option("Genomes built in parallel (default: --threads, or as cores and memory allow)."),
    ] = None
    offline: Offline = False
    force: Force = False
    plan: Plan = False

    @property
    def named(self) -> list[str | Path]:
        """What is named."""
        one = isinstance(self.relatives, str | Path)
        return [self.relatives] if one else list(self.relatives)  # type: ignore[arg-type, list-item]

    @classmethod
    def make(cls, *args: Any, **kwargs: Any) -> Self:
        """Raises `UsageError` where nothing is named: recipes are listed by `list_relatives`."""
        made = super().make(*args, **kwargs)
        if not made.named:
            fix = "give a recipe, a list or FASTA files"
            raise UsageError("no relatives are named", fix=fix)
        return made

    def answer(self, *given: Any) -> BuiltRelatives:
        """What was built; a list of the recipes where nothing is named."""
        from genodiff.runs.relative_lists import BUILT, choose_genomes, list_genomes, write_built
        from genodiff.runs.relatives import build_relatives as build
        from genodiff.runs.relatives import find_home, find_memory, open_relatives
        from genodiff.runs.relatives_plan import check_relatives_room, plan_relatives

        if not self.named:
            return list_relatives()  # type: ignore[return-value]
        out = self.out
        listed = choose_genomes(list_genomes(self.named, fetches=True), self.only)
        if out is not None:
            check_target(Path(out) / BUILT, force=self.force, inputs=self.named)
        cores = self.jobs or count_jobs()
        with planning(self.plan):
            found = plan_relatives(listed, home=out, jobs=cores)
        if self.plan:
            return BuiltRelatives(Path(found["folder"]), found)
        check_relatives_room(found)
        build(listed, home=out, jobs=cores, offline=self.offline)
        open_relatives(listed, home=out, offline=True)
        if out is not None:
            write_built(Path(out), listed.rows, lambda row: find_memory(row, out))
        found = plan_relatives(listed, home=out, jobs=cores)
        return BuiltRelatives(find_home(out), found)

    def list_rows(self, answer: Any) -> list[Any]:
        return [answer.row] if self.named else list(answer)

    def show(self, answer: Any) -> None:
        for row in () if self.named else answer:
            size = f"{row['genomes']} genomes, {row['bases'] / 1e6:,.1f} Mb"
            print(f"{row['name']:<15} {size:<24} {row['built']} built  {row['description']}")
        if self.named:
            print("\n".join(answer.describe()))
        if self.named and not self.plan:
            files = [self.out] if self.out else self.named
            print("give " + " ".join(f"--relatives {one}" for one in files))
