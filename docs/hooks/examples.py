"""Run the commands of the pages, in a scratch folder, and write what they print below them.

    python docs/hooks/examples.py [--check] [PAGE ...]

Marks in a page, as HTML comments before a block:

    <!-- run -->        its commands are run; a ```text block right below holds the whole output
    <!-- run: 8 -->     the same, with the last 8 lines of the output
    <!-- run: 8 bcftools -->  the same, where bcftools is installed; elsewhere the block is left
    <!-- file: x.fa --> the block is written to x.fa

Every page begins with a copy of the folder that the blocks of how-to/index.md leave. With --check
nothing is written: a command that fails ends with exit code 1 either way.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS.parent / "benchmarks"))

from fork_server import ForkServer, write_program  # noqa: E402

FORKS: list[str] = []
"""The folder of a `genodiff` that is forked: with --check a command does not begin with imports."""
FIRST = DOCS / "how-to" / "index.md"
MARK = re.compile(
    r"<!-- (?P<kind>run|file)(?:: (?P<word>[^ ]+)(?: (?P<needs>[a-z]+))?)? -->\n"
    r"```\w*\n(?P<body>.*?)^```\n(?P<gap>\n```text\n)?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Example:
    """A marked block of a page."""

    kind: str
    word: str | None
    body: str
    output: slice | None
    """Where the text of the output block below stands in the page."""
    needs: str | None
    """A program that is not genodiff's."""


def read_examples(page: str) -> list[Example]:
    """The marked blocks of a page, in order."""
    found = []
    for mark in MARK.finditer(page):
        below = None
        if mark["gap"] and mark["kind"] == "run":
            below = slice(mark.end(), page.index("```", mark.end()))
        found.append(Example(mark["kind"], mark["word"], mark["body"], below, mark["needs"]))
    return found


def run_page(path: Path, folder: Path) -> str:
    """Run the marked blocks of a page in `folder`; returns the page with their outputs."""
    page = path.read_text(encoding="utf-8")
    outputs = []
    for example in read_examples(page):
        if example.kind == "file":
            (folder / str(example.word)).write_text(example.body, encoding="utf-8")
            continue
        if example.needs and not shutil.which(example.needs):
            continue
        print(f"{path.relative_to(DOCS)}: {example.body.strip()}", flush=True)
        lines = run_block(example.body, folder)
        if example.word is not None:
            lines = lines[-int(example.word) :]
        outputs.append((example.output, "".join(line + "\n" for line in lines)))
    for place, text in reversed(outputs):
        if place is not None:
            page = page[: place.start] + text + page[place.stop :]
    return page


def run_block(commands: str, folder: Path) -> list[str]:
    """The lines that the commands print. Raises `SystemExit` where one of them fails."""
    programs = os.pathsep.join([*FORKS, str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", commands],
        cwd=folder,
        env=surroundings() | {"PATH": programs},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = [hide_machine(line.rstrip(), folder) for line in done.stdout.splitlines()]
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}:\n{commands}\n" + "\n".join(lines))
    return [line for line in lines if line]


def surroundings() -> dict[str, str]:
    """The environment without the settings of a developer."""
    kept = {name: value for name, value in os.environ.items() if "GENODIFF" not in name}
    return kept | {"COLUMNS": "92", "NO_COLOR": "1"}


def hide_machine(line: str, folder: Path) -> str:
    """The line without the paths of the machine that it was printed on."""
    known = {str(Path(sys.prefix)): ".venv", str(folder): "~/dna", str(Path.home()): "~"}
    for path, name in known.items():
        line = line.replace(path, name)
    return line


def main(words: list[str]) -> None:
    """Run the pages given, or all that have marked blocks."""
    check = "--check" in words
    pages = [Path(word).resolve() for word in words if word != "--check"]
    pages = pages or sorted(path for path in DOCS.rglob("*.md") if path != FIRST)
    with tempfile.TemporaryDirectory() as scratch, ForkServer(folder=scratch) as server:
        if check and sys.platform.startswith("linux"):
            os.environ.update(surroundings())  # as the commands have, for what is imported once
            server.join()
            write_program(Path(scratch))
            FORKS.append(scratch)
        first = Path(scratch) / "first"
        first.mkdir()
        texts = {FIRST: run_page(FIRST, first)}
        for number, path in enumerate(page for page in pages if page != FIRST):
            if not any(example.kind == "run" for example in read_examples(path.read_text())):
                continue
            folder = Path(scratch) / str(number)
            shutil.copytree(first, folder, symlinks=True)
            texts[path] = run_page(path, folder)
    for path, text in texts.items():
        if not check and (path != FIRST or FIRST in pages or len(pages) > 1):
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
