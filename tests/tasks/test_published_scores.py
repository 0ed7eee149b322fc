"""Published values: every file is read, names tasks that exist, and says where a row differs."""

import pytest

from genodiff.data.recipe import list_recipe_folders
from genodiff.settings import read_yaml
from genodiff.tasks.published_scores import PublishedTable, find_published
from genodiff.tasks.suite import list_task_names

FILES = [
    path for folder in list_recipe_folders() for path in sorted((folder / "published").glob("*"))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_read_and_names_tasks_of_its_suite(path):
    table = PublishedTable.parse(read_yaml(path), file=path)  # type: ignore[arg-type]
    assert set(table.order) <= set(list_task_names(table.suite))
    for row in table.rows:
        assert row.source
        assert any(row.values)
        assert all(-1 <= value[0] <= 1 for value in row.values if value)


def test_rows_of_another_metric_say_so_and_the_others_do_not():
    found = {value.name: value for value in find_published("gue", "tf/0", "official")}
    assert found["DNABERT-2"].metric == ""
    assert (found["DNABERT-2"].mean, found["DNABERT-2"].weights) == (0.7199, 117)
    assert found["BioArc, masked"].metric == "accuracy"
    assert "probably" in found["BioArc, masked"].note
    assert found["Caduceus-Ph, frozen"].metric == "auroc"
    assert "frozen" in found["Caduceus-Ph, frozen"].note
    assert find_published("gue", "tf/0", "dedup") == []
    mouse = {v.name: v for v in find_published("gue", "mouse/0", "official")}
    assert {v.metric for v in mouse.values()} == {"", "auroc"}
    assert mouse["DNABERT-2"].mean == 0.5676
