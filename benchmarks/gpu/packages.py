"""Unpacks what the lent machine lacks from the archive that travelled along, and nothing else.

    python benchmarks/gpu/packages.py CARRIED SITE

SITE is a folder for PYTHONPATH. CARRIED/site.tar.xz goes there, unless it is there already. Says
what is there, and what `import genodiff` still lacks. Needs only Python and pip's `packaging`.
"""

import sys
import tarfile
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "pyproject.toml"


def find_lacking() -> list[str]:
    """Requirements of genodiff, and of what it requires, that are not met here."""
    import tomllib

    from packaging.requirements import Requirement

    waiting = tomllib.loads(CORE.read_text())["project"]["dependencies"]
    lacking, seen = [], set()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        name = wanted.name.replace("_", "-").replace(".", "-").lower()
        try:
            here = version(wanted.name)
        except PackageNotFoundError:
            lacking.append(f"{wanted} (missing)")
            continue
        if not wanted.specifier.contains(here, prereleases=True):
            lacking.append(f"{wanted} (here: {here})")
        if name not in seen:
            seen.add(name)
            # torch's own libraries are part of the machine's image.
            waiting += [] if name == "torch" else requires(wanted.name) or []
    return sorted(set(lacking))


def main() -> None:
    archive, site = Path(sys.argv[1]) / "site.tar.xz", Path(sys.argv[2])
    done = site / ".unpacked"
    if archive.exists() and not done.exists():
        with tarfile.open(archive) as source:
            source.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.4 on
            source.extractall(site)
        done.touch()
    sys.path.insert(0, str(site))
    there = sorted(f"{d.metadata['Name']} {d.version}" for d in distributions(path=[str(site)]))
    print("unpacked:", ", ".join(there) or "nothing", flush=True)
    print("lacking:", "; ".join(find_lacking()) or "nothing", flush=True)


if __name__ == "__main__":
    main()
