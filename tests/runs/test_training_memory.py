"""The memory of a store: built once, found again, refused where it belongs to other data."""

import numpy as np
import pytest

from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import load_recipe
from genodiff.errors import DataError
from genodiff.memory.text import NONE
from genodiff.runs import training_memory
from genodiff.runs.training_memory import list_stretches, open_split_memory


def test_a_store_s_memory_is_built_once_and_refused_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    store = build_dna_store(load_recipe("toy"))
    memory, _ = open_split_memory(store, k=6)
    name, start, codes = list_stretches(store, "train")[0]
    window = codes[100:400].copy()
    window[50:150] = NONE
    found = memory.recall(window[None])
    assert found.copy[0, 50:150].argmax(-1).tolist() == codes[150:250].tolist()
    own = memory.exclude(name, start + 100, start + 400)
    assert own == memory.text.find_interval(name, start, start + 700)
    assert memory.recall(window[None], [own]).background.min() > 0.5

    monkeypatch.setattr(training_memory, "write_memory", pytest.fail)
    again, _ = open_split_memory(store, k=6)
    assert np.array_equal(again.recall(window[None]).copy, found.copy)
    (place,) = (p for p in (tmp_path / "cache" / "memories").iterdir() if p.is_dir())
    with pytest.raises(DataError, match="memory of other data"):
        open_split_memory(store, "valid", k=6, folder=place)
