"""What the benchmarks of whole commands share: running genodiff, telling of a run without this
machine's folders.
"""

import json
import lzma
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def genodiff(*words: object, capture: bool = False) -> str:
    """Run `genodiff WORDS`, and return its stdout if it is captured; stderr is shown. Its failure
    is ours.
    """
    command = ["genodiff", *map(str, words)]
    print(shlex.join(command), file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE if capture else None, text=True
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def plain(*words: object) -> str:
    """A command without the folders of this machine; places inside the tree stay."""
    here = str(Path(__file__).resolve().parent.parent) + "/"
    shown = [str(word).removeprefix(here) for word in words]
    return "genodiff " + shlex.join(
        Path(word).name if word.startswith(("/", "..")) else word for word in shown
    )


def nameless(text: str, places: Mapping[str, Path | None]) -> str:
    """The text with names in place of this machine's folders."""
    found = {
        str(form): name
        for name, path in places.items()
        if path is not None
        for form in (path, path.absolute())
    }
    for place in sorted(found, key=len, reverse=True):
        text = text.replace(place, found[place])
    return text


def read_kept(path: Path) -> str:
    """The text of a file that may be packed (.xz); "" where there is none."""
    if not path.exists():
        return ""
    raw = path.read_bytes()
    return (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode()


def write_kept(path: Path, text: str) -> None:
    """Write text, packed where the name ends in .xz: the same bytes for the same text."""
    raw = text.encode()
    path.write_bytes(lzma.compress(raw, preset=9) if path.suffix == ".xz" else raw)


def last_session(run: Path) -> dict[str, Any]:
    """What a run's newest session says of itself: argv, git, cpu, threads, device, versions."""
    found: dict[str, Any] = json.loads((run / "provenance.json").read_text(encoding="utf-8"))[
        "sessions"
    ][-1]
    return found


def cpu() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
