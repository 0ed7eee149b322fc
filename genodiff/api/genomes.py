"""Many genomes before training: `genodiff.build_genomes`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt

from genodiff.api.sources import OWN
from genodiff.errors import UsageError
from genodiff.jobs.machine import count_jobs
from genodiff.jobs.options import OUT, Offline, Plan
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
        from genodiff.data.genomes.survey import describe_plan

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
        from genodiff.data.genomes.parquet import write_windows
        from genodiff.data.genomes.remote import is_remote
        from genodiff.data.genomes.store import GenomesWindows, find_built_folder, open_genomes
        from genodiff.data.genomes.survey import measure_room, plan_genomes, survey_genomes
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
