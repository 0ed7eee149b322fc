"""The classes of a run: from its file of labels to its settings."""

import logging
from typing import Any

from genodiff.data.genomes.store import read_species
from genodiff.data.labels import read_labels
from genodiff.errors import UsageError
from genodiff.runs.resolve import expand_names, merge_settings
from genodiff.runs.sections import LABEL_SETTINGS, SPECIES, DataSettings

log = logging.getLogger("genodiff")


def read_species_settings(genomes: str | None) -> dict[str, Any]:
    """The settings that the species of a list decide. Raises `DataError`, `UsageError`."""
    if genomes is None:
        what = f"--labels {SPECIES} is of a list of genomes"
        raise UsageError(what, fix="give --genomes LIST, or a file of labels")
    classes, digest = read_species(genomes)
    if len(classes) < 2:
        said = classes[0] if classes else "none"
        what = f"has one species or none ({said}); training needs two or more labels"
        raise UsageError(what, file=genomes, fix="name two species or more")
    return _decide_settings(SPECIES, digest, classes)


def read_label_settings(path: str | None, given: Any, over: dict[str, Any]) -> dict[str, Any]:
    """The settings that a file of labels decides: its hash, the classes, and their number.

    `given` and `over` are the settings of a file and of flags. Imports no torch. Raises
    `DataError`, `UsageError`.
    """
    if not path:
        raise UsageError("--labels needs the name of a file", fix="give a table or a BED file")
    both = merge_settings(expand_names(given or {}), expand_names(over))
    data = both.get("data") or {}
    how = DataSettings.parse({name: data[name] for name in LABEL_SETTINGS if name in data})
    table = read_labels(path, quantiles=how.label_quantiles, column=how.label_column)
    if table.names_line is not None:
        log.warning("%s, line %d: column names, skipped", path, table.names_line)
    if len(table.classes) < 2:
        what = f"has one label, {table.classes[0]}; training needs two or more labels"
        raise UsageError(what, file=path, fix="give two labels or more")
    return _decide_settings(path, table.sha256, table.classes)


def _decide_settings(labels: str, sha256: str, classes: tuple[str, ...]) -> dict[str, Any]:
    own = {"labels": labels, "labels_sha256": sha256, "classes": list(classes)}
    return own | {"backbone.n_classes": len(classes)}
