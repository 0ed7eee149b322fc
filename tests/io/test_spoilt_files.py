"""Files that programs spoilt in one thing are read as the good ones or refused with one clear line.

GENODIFF_SPOILT_FILES=1000 tries so many of each.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genodiff.errors import DataError, UsageError
from tests.io.good_annotation import READERS
from tests.io.good_files import GoodTable
from tests.io.spoilt_files import SPOILERS, Spoilt

FILES = int(os.environ.get("GENODIFF_SPOILT_FILES", "0"))


def judge(reader_name: str, seed: int, folder: Path) -> tuple[str, str, str]:
    """What became of one spoilt file: how it was spoilt, "equal", "refused" or "wrong", and why."""
    reader = READERS[reader_name]
    rng = np.random.default_rng([seed, sorted(READERS).index(reader_name)])
    good = reader.make(rng)
    names = [n for n, s in SPOILERS.items() if isinstance(good, GoodTable) or not s.tables_only]
    tried = ((how, SPOILERS[how].spoil(good, rng)) for how in names[seed % len(names) :] + names)
    how, spoilt = next((how, spoilt) for how, spoilt in tried if spoilt is not None)
    path = folder / f"file{reader.ending}"
    path.write_bytes(spoilt.data)
    try:
        found = reader.read(path)
    except (DataError, UsageError) as fault:
        said = str(fault)
        clear = said.count("\n") == 0 and (str(path) in said) and len(fault.what) > 5
        return how, "refused" if clear else "wrong", said
    allowed = spoilt.is_right(found)
    return how, "equal" if allowed else "wrong", describe_difference(found, spoilt)


def describe_difference(found: Any, spoilt: Spoilt) -> str:
    """Where what was read begins to differ from what may be read."""
    wanted = spoilt.right if isinstance(spoilt.right, list) else [spoilt.right]
    read = found if isinstance(found, list) else [found]
    at = next(
        (i for i, (a, b) in enumerate(zip(read, wanted, strict=False)) if a != b), len(wanted)
    )
    return (
        f"read {len(read)} of {len(wanted)}, of which {read[at : at + 1]!r:.300} is not "
        f"{wanted[at : at + 1]!r:.300}"
    )


@pytest.mark.parametrize("reader_name", READERS)
def test_a_good_file_is_read_as_it_stands(reader_name, tmp_path):
    reader = READERS[reader_name]
    for seed in range(5):
        good = reader.make(np.random.default_rng(seed))
        path = tmp_path / f"file{reader.ending}"
        path.write_text(good.text)
        assert reader.read(path) == good.whole


def search(reader_name: str, n: int, folder: Path) -> Counter[str]:
    found = [judge(reader_name, seed, folder) for seed in range(n)]
    wrong = [f"{seed} {how}: {why}" for seed, (how, became, why) in enumerate(found)
             if became == "wrong"]  # fmt: skip
    assert not wrong, f"{len(wrong)} of {n}:\n" + "\n".join(wrong[:40])
    return Counter(became for _, became, _ in found)


@pytest.mark.few(6)
@pytest.mark.parametrize("reader_name", READERS)
def test_a_spoilt_file_is_read_as_the_good_one_or_refused(reader_name, tmp_path):
    n = sum(isinstance(READERS[reader_name].make(np.random.default_rng(0)), GoodTable) or
            not s.tables_only for s in SPOILERS.values())  # fmt: skip
    became = search(reader_name, FILES or n, tmp_path)
    print(reader_name, dict(became))
    assert became["equal"] > 0
    assert became["refused"] > 0
