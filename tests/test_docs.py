"""Pages and notebooks cannot rot: commands parse, each verb has a page, what is marked runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from cyclopts import App
from cyclopts.exceptions import CycloptsError

from genodiff.api.model import Model
from genodiff.cli import build_app
from genodiff.jobs.verbs import list_functions, list_verbs

ROOT = Path(__file__).resolve().parent.parent
HOW_TO = ROOT / "docs" / "how-to"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Verbs whose page is called otherwise.
PAGE_OF = {
    "checkpoint": "checkpoints", "data": "check-data", "eval": "evaluate",
    "align": "relatives", "merge": "score-variants", "score": "score-variants",
}  # fmt: skip
END = re.compile(r"[|;&<>]|2>")  # what the shell reads, and not genodiff


def shell_blocks(path: Path) -> list[str]:
    """The text of every block of commands of a page or a notebook."""
    if path.suffix == ".md":
        text, cells = path.read_text(encoding="utf-8"), []
    else:
        found = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in found if cell.cell_type == "markdown")
        cells = [cell.source for cell in found if cell.source.startswith("%%bash")]
    return [*re.findall(r"^```(?:console|bash|sh)$(.*?)^```$", text, re.M | re.S), *cells]


def commands(path: Path) -> list[list[str]]:
    """The words after `genodiff` of every command of a page."""
    found = []
    for block in shell_blocks(path):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("genodiff "):
                words = shlex.split(line, comments=True)[1:]
                ends = [i for i, word in enumerate(words) if END.match(word)]
                found.append(words[: min(ends, default=None)])
    return found


@cache
def app() -> App:
    return build_app()


@pytest.mark.few(36)
@pytest.mark.parametrize(
    "path", [*PAGES, *NOTEBOOKS], ids=lambda path: str(path.relative_to(ROOT).with_suffix(""))
)
def test_every_command_of_a_page_is_one_that_the_command_line_takes(path):
    wrong = []
    for words in commands(path):
        try:
            app().parse_args(words, exit_on_error=False, print_error=False)
        except CycloptsError as error:
            wrong.append(f"genodiff {shlex.join(words)}: {error}")
    assert not wrong, "\n".join(wrong)


def test_the_commands_of_pages_are_found():
    assert len([words for path in PAGES for words in commands(path)]) > 50
    with pytest.raises(CycloptsError):
        app().parse_args(["train", "toy", "--no-such"], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("verb", sorted({name.split()[0] for name in list_verbs()}))
def test_every_verb_has_a_page_that_shows_it(verb):
    path = HOW_TO / f"{PAGE_OF.get(verb, verb)}.md"
    assert path.is_file(), f"genodiff {verb} has no page {path.relative_to(ROOT)}"
    assert any(words[0] == verb for words in commands(path))


@pytest.mark.slow
def test_the_marked_commands_of_the_pages_run():
    script = ROOT / "docs" / "hooks" / "examples.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.slow
def test_the_reference_has_the_arguments_and_the_help_of_what_requests_make():
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(ROOT / "docs/hooks/docstrings.py"))
    package = griffe.load("genodiff", extensions=extensions, search_paths=[str(ROOT)])
    methods = [
        f"api.model.Model.{name}" for name, x in vars(Model).items() if hasattr(x, "request")
    ]
    assert len(methods) > 8
    for name in [*list_functions(), *methods]:
        assert "Args:" in package[name].docstring.value, name
        assert package[name].is_function


@pytest.mark.slow
def test_the_site_is_built_strictly_and_asks_the_network_for_nothing(tmp_path):
    pytest.importorskip("mkdocs")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    loaded = re.compile(r"""<(?:script|img|link|iframe)[^>]*?(?:src|href)=["']?(?:https?:)?//""")
    fetching = [p.name for p in pages if loaded.search(p.read_text(encoding="utf-8"))]
    assert not fetching


# Minutes each: CI runs the others, and `make test-all` these too.
LONG = {
    "an_honest_comparison", "annotate_your_genome", "design_of_promoters",
    "embeddings_and_a_linear_head", "fine_tune_and_predict", "fine_tuning_on_a_small_task",
    "from_a_vcf_to_a_ranked_table", "from_fasta_to_new_dna", "variants_with_relatives",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in LONG))
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_from_top_to_bottom(path, tmp_path):
    copy = tmp_path / path.name  # it runs where it stands, and writes files there
    shutil.copy(path, copy)
    words = ["--nbmake", "--nbmake-timeout=900", "-p", "no:cacheprovider", "-q", "-o", "addopts=",
             "-W", "default"]  # fmt: skip
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(copy)],
        cwd=tmp_path,
        env={"OMP_NUM_THREADS": "1", **os.environ, "PATH": path, "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=1000,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs_and_without_traces_of_the_machine_it_ran_on(path):
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs
    assert all(
        output.get("name") != "stderr" and output.output_type != "error" for output in outputs
    )
    text = path.read_text()
    assert len(text) < 600_000
    assert not re.search(r"/(home|root|work|tmp)/|site-packages", text)
