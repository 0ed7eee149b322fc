"""Files of genodiff that a warm command executes: how long its path through the package is.

    python benchmarks/count_files.py score RUN v.vcf --fasta g.fa --out o.vcf

The command runs twice in one process, the second time under `sys.setprofile`. A file counts where
one of its functions is called then, whatever was imported before.
"""

import contextlib
import io
import sys
from collections import Counter
from pathlib import Path

import genodiff
from genodiff.cli import main

ROOT = str(Path(genodiff.__file__).parent) + "/"


def run(words: list[str]) -> None:
    """The command, its output thrown away."""
    shown = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main(words)


def trace(words: list[str]) -> tuple[Counter[str], set[tuple[str, str]]]:
    """(calls by file, functions) of genodiff in a warm run of the command."""
    calls: Counter[str] = Counter()
    functions: set[tuple[str, str]] = set()

    def note(frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            file = code.co_filename.removeprefix(ROOT)
            calls[file] += 1
            functions.add((file, code.co_qualname))

    run(words)
    sys.setprofile(note)
    run(words)
    sys.setprofile(None)
    return calls, functions


if __name__ == "__main__":
    calls, functions = trace(sys.argv[1:])
    rooms = Counter(file.split("/")[0] for file in calls)
    for file, n in sorted(calls.items()):
        names = sorted(name for where, name in functions if where == file)
        print(f"{n:6,}  {file}: {', '.join(names)}")
    print(f"{len(functions)} functions in {len(calls)} files of {len(rooms)} rooms: {dict(rooms)}")
