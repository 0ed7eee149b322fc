"""Pages made at build time: of the command line, of the notebooks, and of files of the tree.

No text of them is committed, so none can be out of date.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from menu import MODELS, section_of
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

import genodiff
from genodiff.api.models import describe_model, format_facts
from genodiff.jobs.verbs import list_functions

ROOT = Path(__file__).resolve().parents[2]
# Built in a process of its own: importing every verb takes torch, and some seconds.
COMMANDS = (
    "from genodiff.cli import build_app\n"
    "print(build_app().generate_docs(output_format='markdown', recursive=True, heading_level=1))"
)

PYTHON = """# Python

`import genodiff` is quick: it loads neither torch nor numpy before a name is used. The verbs are
functions with the flags of the command line as keywords. Errors are `genodiff.errors.GenodiffError`
with one clear line.
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the made pages to the site's files."""
    made: dict[str, str | bytes] = {
        "reference/commands.md": describe_commands(),
        "reference/python.md": describe_python(),
        "explanation/architecture.md": point_to_tree((ROOT / "ARCHITECTURE.md").read_text()),
    }
    for folder in MODELS:
        told = describe_model(folder.name, folder) | {"folder": ""}
        made[f"reference/model-{folder.name}.md"] = format_facts(told)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        made |= render_notebook(path)
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def describe_commands() -> str:
    """The command line's reference, as cyclopts writes it."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"the command reference cannot be made:\n{done.stderr}")
    text = done.stdout.split("## Table of Contents", 1)
    intro = (
        "# The command line\n\nEvery verb and every flag, made from the program itself. "
        "`genodiff VERB --help` says the same.\n\n"
    )
    return intro + text[1].split("\n", 1)[1] if len(text) == 2 else intro + done.stdout


def describe_python() -> str:
    """The page of the public functions and classes, in mkdocstrings' notation."""
    door = {*genodiff._BESIDE, *list_functions()}
    first = [name for name in ("load", "Model") if name in door]
    names = [*first, *sorted(name for name in door if name not in first)]
    found = [PYTHON]
    for name in names:
        found.append(describe_object(f"genodiff.{name}", f"genodiff.{name}"))
    if (ROOT / "genodiff" / "hf" / "__init__.py").is_file():
        found.append("## genodiff.hf\n")
        found.append(describe_object("genodiff.hf", "genodiff.hf", level=3))
    return "\n".join(found)


def describe_object(path: str, heading: str, level: int = 2) -> str:
    """The directive that documents the object at `path` under `heading`."""
    return (
        f"::: {path}\n    options:\n      heading: {heading}\n      toc_label: {heading}\n"
        f"      heading_level: {level}\n"
    )


def render_notebook(path: Path) -> dict[str, str | bytes]:
    """The page of an executed notebook and its pictures, by their places in the site."""
    section = section_of(path.stem)
    exporter = MarkdownExporter()
    notebook = nbformat.read(path, as_version=4)
    body, resources = exporter.from_notebook_node(
        notebook, resources={"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
    )
    note = (
        f"\n\n*This page is the executed notebook `notebooks/{path.name}`. "
        "The tests run it from top to bottom.*\n"
    )
    found: dict[str, str | bytes] = {f"{section}/{path.stem}.md": body.rstrip() + note}
    for name, content in resources.get("outputs", {}).items():
        found[f"{section}/{name}"] = content
    return found


def point_to_tree(text: str) -> str:
    """A file of the tree as a page: what it calls by a name stays a name."""
    return re.sub(r"\]\((?!https?:)[^)]*\)", "]", text)
