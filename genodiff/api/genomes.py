"""Many genomes before training: `genodiff.build_genomes`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genodiff.api.sources import OWN
from genodiff.errors import UsageError


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


def build_genomes(
    genomes: str | Path,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    seq_len: int = 1024,
    temperature: float = 1.0,
    parquet: str | Path | None = None,
    plan: bool = False,
    offline: bool = False,
    force: bool = False,
) -> BuiltGenomes:
    """The stores of a list of genomes: built where they are not there, dealt to splits, counted.

    `genomes` is a list (docs/how-to/many-genomes.md), or the folder or URL of what was built of
    one. `out` is the folder to build in (default: in the cache folder, where `genodiff.train` finds
    it). `jobs` genomes are built at a time (default: as many as there are cores). The windows of
    each split have `seq_len` bases, and with `parquet` they are written to that folder as tables
    for Hugging Face `datasets`. With `plan` nothing is built. Raises `UsageError`, `DataError`
    naming each bad line, `MachineError`.
    """
    from genodiff.data.genomes.collection import build_collection
    from genodiff.data.genomes.listing import read_genome_list
    from genodiff.data.genomes.parquet import write_windows
    from genodiff.data.genomes.remote import is_remote
    from genodiff.data.genomes.store import GenomesWindows, find_built_folder, open_genomes
    from genodiff.data.genomes.survey import measure_room, plan_genomes, survey_genomes
    from genodiff.data.recipe import SPLITS, Recipe
    from genodiff.errors import DataError
    from genodiff.io.process import count_usable_cores

    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} is below 1", fix="give 1 or more")
    if not 0 < temperature <= 1e6:
        raise UsageError(f"--temperature {temperature} is not above 0", fix="give 1, for example")
    recipe, name = Recipe(name=OWN), str(genomes)
    is_list = not is_remote(name) and not Path(name).is_dir()
    if out is not None and not is_list:
        raise UsageError("--out, and genomes that are built", fix="leave it out, or give a list")
    if plan:
        found = plan_genomes(name, recipe, seq_len, temperature)
        return BuiltGenomes(Path(found["folder"]), found, {})
    folder = Path(name)
    if is_list:
        listed = read_genome_list(name)
        folder = find_built_folder(name) if out is None else Path(out)
        build_collection(
            listed, folder, jobs=jobs or count_usable_cores(), offline=offline, force=force
        )
    store = open_genomes(folder if is_list else name, offline=offline)
    row = survey_genomes(store, recipe, seq_len, temperature) | measure_room(store.path)
    written: dict[str, int] = {}
    for split in SPLITS if parquet is not None else ():
        try:
            windows = GenomesWindows(store, recipe, split, seq_len)
        except DataError:
            continue  # the split is empty: the notes say so
        written[split] = write_windows(windows, store.genomes, Path(str(parquet)))
    return BuiltGenomes(store.path, row, written)
