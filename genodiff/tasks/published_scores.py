"""Published results on a suite's tasks, from `data_recipes/published/SUITE.yaml`."""

from typing import NamedTuple

from pydantic import model_validator

from genodiff.data.recipe import list_recipe_folders
from genodiff.settings import Settings, read_yaml


class PublishedRow(Settings):
    """One model's published values, in the order of the file's tasks.

    A value is [mean], [mean, max − min] or none. `metric` is the row's own where it differs from
    the file's; `note` says what else does. `weights` are millions.
    """

    name: str
    source: str
    metric: str = ""
    note: str = ""
    weights: float | None = None
    values: tuple[tuple[float, ...] | None, ...]


class PublishedTable(Settings):
    """A file of published values. They are comparable with our rows of this `split` only."""

    suite: str
    split: str
    metric: str
    order: tuple[str, ...]
    rows: tuple[PublishedRow, ...]

    @model_validator(mode="after")
    def _rows_are_full(self) -> "PublishedTable":
        for row in self.rows:
            if len(row.values) != len(self.order):
                what = f"row '{row.name}' has {len(row.values)} values for {len(self.order)} tasks"
                raise ValueError(what)
        return self


class PublishedValue(NamedTuple):
    """One published value. `metric` is empty where it is that of our rows."""

    name: str
    source: str
    mean: float
    range: float | None
    metric: str = ""
    note: str = ""
    weights: float | None = None


def find_published(suite: str, task: str, split: str) -> list[PublishedValue]:
    """What is published of a task on this split; nothing where no file says so."""
    for folder in list_recipe_folders():
        path = folder / "published" / f"{suite}.yaml"
        if path.is_file():
            found = PublishedTable.parse(read_yaml(path), file=path)
            if found.split != split or task not in found.order:
                return []
            at = found.order.index(task)
            return [
                PublishedValue(
                    row.name, row.source, value[0], value[1] if len(value) > 1 else None,
                    "" if row.metric == found.metric else row.metric, row.note, row.weights,
                )
                for row in found.rows
                if (value := row.values[at])
            ]  # fmt: skip
    return []
