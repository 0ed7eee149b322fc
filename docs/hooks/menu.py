"""The menu: the folders of docs/, in the order that mkdocs.yml gives; a new page needs no entry."""

from pathlib import Path
from typing import Any

SECTIONS = {
    "tutorials": "Tutorials",
    "how-to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
}
# Pages that generated_pages.py makes, so that no file of theirs stands in docs/.
MADE = {"reference": ["commands", "python"], "tutorials": [], "explanation": ["architecture"]}

# Ready models of the package; each has a page of its facts.
MODELS = sorted(
    path.parent for path in Path(__file__).parents[2].glob("genodiff/models/*/facts.json")
)
MADE["reference"] += [f"model-{folder.name}" for folder in MODELS]

# Notebooks that account for a choice rather than teach.
EXPLAINING = {"single_precision_is_a_temperature", "fine_tuning_on_a_small_task"}


def list_pages(docs: Path, section: str, order: list[str]) -> list[str]:
    """The pages of a section, the listed ones first, the others by name."""
    notebooks = (docs.parent / "notebooks").glob("*.ipynb")
    made = [*MADE.get(section, []), *(n.stem for n in notebooks if section_of(n.stem) == section)]
    names = {path.stem for path in (docs / section).glob("*.md")} | set(made)
    listed = [name for name in order if name in names]
    return [f"{section}/{name}.md" for name in [*listed, *sorted(names - set(listed))]]


def section_of(notebook: str) -> str:
    """The section of a notebook: a lesson, or the account of a measurement."""
    return "explanation" if notebook in EXPLAINING else "tutorials"


def on_config(config: Any) -> Any:
    """Set the menu."""
    docs = Path(config.docs_dir)
    config.nav = [{"genodiff": "index.md"}] + [
        {title: list_pages(docs, section, config.extra["order"][section])}
        for section, title in SECTIONS.items()
        if list_pages(docs, section, config.extra["order"][section])
    ]
    return config
