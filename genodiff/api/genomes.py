"""Many genomes before training, and genomes of related species before a model reads them:
`genodiff.build_genomes`, `build_relatives`, `list_relatives`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import Ge, Gt

from genodiff.api.sources import OWN
from genodiff.errors import UsageError
from genodiff.io.input_file import planning
from genodiff.io.target import check_target
from genodiff.jobs.machine import count_jobs
from genodiff.jobs.options import OUT, Force, Offline, Plan
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb


@dataclass(frozen=True)
class BuiltGenomes:
    """Genomes that training can read."""

    path: Path
    row: dict[str, Any]
    """As `genodiff data genomes --json` prints: of each genome bases, windows and its share."""
    parquet: dict[str, int]
    """Rows that were written of each split."""

    def describe(self) -> list[str]:
        """The same for a person to read."""
        from genodiff.data.genomes.mixing import describe_plan

        return describe_plan(self.row)


@verb(
    "data genomes",
    function="build_genomes",
    help="""
Build the stores of many genomes, assign them to splits, and report their sampling shares.

LIST is a table with a header line, separated by tabs: path (a file or an https:// URL), name,
weight, species, split (cluster, assembly, chromosome, train, valid, test, or a BED file), sha256.
""",
)
@dataclass(frozen=True, kw_only=True)
class GenomesRequest(Request[BuiltGenomes]):
    """Build the stores of a list of genomes if necessary, assign them to splits, and count them.

    `genomes` is a list (docs/how-to/many-genomes.md), or the folder or URL of a built one. `out` is
    the folder to build in (default: in the cache folder, where `genodiff.train` looks). `jobs`
    genomes are built in parallel (default: the number of cores). The windows of each split have
    `seq_len` bases, and with `parquet` they are written to that folder as tables for Hugging Face
    `datasets`. With `plan` nothing is built. Raises `UsageError`, `DataError` naming each bad line,
    `MachineError`.
    """

    genomes: Annotated[
        str | Path,
        Option("A list of genomes, or the folder or URL of built ones.", ("LIST",), is_word=True),
    ] = field(kw_only=False)
    out: Annotated[
        Path | str | None, Option("Folder to build in (default: in the cache folder).", OUT)
    ] = None
    jobs: Annotated[
        int | None,
        Ge(1),
        Option("Genomes built in parallel (default: --threads, or the number of cores)."),
    ] = None
    seq_len: Annotated[int, Option("Window length to count windows by.")] = 1024
    temperature: Annotated[
        float, Gt(0), Option("Shares are weight x windows^(1/T): 1 by size, high values equal.")
    ] = 1.0
    parquet: Annotated[
        Path | str | None,
        Option("Also write the windows to this folder, for Hugging Face datasets.", is_output=True),
    ] = None
    offline: Offline = False
    force: Annotated[bool, Option("Build again even if it exists.")] = False
    plan: Plan = False

    def answer(self, *given: Any) -> BuiltGenomes:
        from genodiff.data.genomes.collection import build_collection
        from genodiff.data.genomes.listing import read_genome_list
        from genodiff.data.genomes.mixing import measure_room, plan_genomes, survey_genomes
        from genodiff.data.genomes.parquet import write_windows
        from genodiff.data.genomes.store import (
            GenomesWindows,
            find_built_folder,
            is_remote,
            open_genomes,
        )
        from genodiff.data.recipe import SPLITS, Recipe
        from genodiff.errors import DataError

        temperature, seq_len, out = self.temperature, self.seq_len, self.out
        recipe, name = Recipe(name=OWN), str(self.genomes)
        is_list = not is_remote(name) and not Path(name).is_dir()
        if out is not None and not is_list:
            fix = "leave it out, or give a list"
            raise UsageError("--out, and genomes that are built", fix=fix)
        if self.plan:
            found = plan_genomes(name, recipe, seq_len, temperature)
            return BuiltGenomes(Path(found["folder"]), found, {})
        folder = Path(name)
        if is_list:
            listed = read_genome_list(name)
            folder = find_built_folder(name) if out is None else Path(out)
            jobs = self.jobs or count_jobs()
            build_collection(listed, folder, jobs=jobs, offline=self.offline, force=self.force)
        store = open_genomes(folder if is_list else name, offline=self.offline)
        row = survey_genomes(store, recipe, seq_len, temperature) | measure_room(store.path)
        written: dict[str, int] = {}
        for split in SPLITS if self.parquet is not None else ():
            try:
                windows = GenomesWindows(store, recipe, split, seq_len)
            except DataError:
                continue  # the split is empty: the notes say so
            written[split] = write_windows(windows, store.genomes, Path(str(self.parquet)))
        return BuiltGenomes(store.path, row, written)

    def list_rows(self, answer: Any) -> list[Any]:
        return [answer.row | {"parquet": answer.parquet}]

    def show(self, answer: Any) -> None:
        print("\n".join(answer.describe()))
        for split, rows in answer.parquet.items():
            print(f"{self.parquet}: {rows:,} rows of {split}")
        if not self.plan:
            print(f"genomes {answer.path}")


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
