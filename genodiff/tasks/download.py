"""Fetches a benchmark's own files into the cache, in the layout that its reader expects."""

from pathlib import Path

from genodiff.data.fetch import fetch
from genodiff.data.recipe import Recipe, Source
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir

PARTS = ("train", "test")


def fetch_task(url: str, suite: str, task: str, classes: tuple[str, ...], *, offline: bool) -> Path:
    """The suite's folder in the cache; files of the task that are missing are fetched.

    Raises `DataError` with the remedy where a file can or may not be fetched.
    """
    home = cache_dir() / "tasks" / suite
    for path, source in list_wanted_files(url, home, suite, task, classes).items():
        if path.exists():
            continue
        fix = f"give the folder that holds {suite} with --data"
        if source is None:
            raise DataError(
                f"the data of {suite} are not here, and no command can fetch them",
                file=path,
                fix=fix,
            )
        try:
            found = fetch(Recipe(name=suite, sources=(source,)), offline=offline)[0]
        except DataError as fault:
            raise DataError(fault.what, fix=fix) from None
        atomic.write_bytes(path, found.read_bytes())
    return home


def list_wanted_files(
    url: str, home: Path, suite: str, task: str, classes: tuple[str, ...]
) -> dict[Path, Source | None]:
    """The files of a task in the cache, and where each comes from.

    The source is None where no command can fetch the file.
    """
    if not url:
        return {home: None}
    by_class = "{class}" in url
    found: dict[Path, Source | None] = {}
    for part in PARTS:
        for name in classes if by_class else ("",):
            at = url.replace("{task}", task).replace("{part}", part).replace("{class}", name)
            ending = at.rpartition("/")[2].partition(".")[2]
            path = (
                home / task / part / f"{name}.{ending}"
                if by_class
                else home / task / f"{part}.{ending}"
            )
            found[path] = Source(
                url=at,
                filename=f"{part}-{path.name}" if by_class else path.name,
                licence=f"see the suite {suite}",
            )
    return found
