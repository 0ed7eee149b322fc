"""The small golden set of the project is reproduced, with or without the shared folder."""

import golden
import pytest


@pytest.mark.parametrize("record", golden.records(), ids=lambda record: record["name"])
def test_the_small_golden_set_is_reproduced(record):
    assert record["answers"]
    assert not golden.differences(record)
