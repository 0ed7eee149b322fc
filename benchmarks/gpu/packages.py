"""Installs what the lent machine lacks from the wheels that travelled along, and nothing else.

    python benchmarks/gpu/packages.py CARRIED SITE

A wheel of CARRIED/wheels or CARRIED/large is installed where its distribution is missing or older
than the wheel; one of CARRIED/peers, whatever is there. SITE is a folder for PYTHONPATH; what
stands in it is not installed again. Says what it did, and what `import genodiff` still lacks. Needs
only Python and pip.
"""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "pyproject.toml"


def name_wheel(path: Path) -> tuple[str, str]:
    """(name, version) of a wheel, the name as packages are compared."""
    name, number = path.name.split("-")[:2]
    return name.replace("_", "-").replace(".", "-").lower(), number


def order_version(text: str) -> tuple[int, ...]:
    """The numbers of a version; what follows them does not count."""
    numbers = []
    for part in text.split("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def choose_wheels(folder: Path) -> list[Path]:
    """The wheels that have to be installed here."""
    chosen = sorted((folder / "peers").glob("*.whl"))
    for path in sorted([*(folder / "wheels").glob("*.whl"), *(folder / "large").glob("*.whl")]):
        name, number = name_wheel(path)
        try:
            here = version(name)
        except PackageNotFoundError:
            chosen.append(path)
            continue
        if order_version(here) < order_version(number):
            chosen.append(path)
    return chosen


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
    folder, site = map(Path, sys.argv[1:3])
    site.mkdir(parents=True, exist_ok=True)
    if str(site) not in sys.path:
        sys.path.insert(0, str(site))
    chosen = choose_wheels(folder)
    standing = {d.metadata["Name"].lower().replace("_", "-") for d in distributions(path=[site])}
    chosen = [path for path in chosen if name_wheel(path)[0] not in standing]
    print("installing:", ", ".join(path.name for path in chosen) or "nothing", flush=True)
    if chosen:
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        command += ["--no-compile", "--no-cache-dir", "--upgrade", "--target", str(site)]
        done = subprocess.run([*command, *map(str, chosen)], check=False)
        if done.returncode:  # one wheel that does not fit must not stop the others
            for path in chosen:
                subprocess.run([*command, str(path)], check=False)
    done = subprocess.run(
        [sys.executable, "-c", "import packages; print(*packages.find_lacking(), sep='\\n')"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print("lacking:", done.stdout.strip() or done.stderr.strip()[-500:] or "nothing", flush=True)


if __name__ == "__main__":
    main()
