"""What a plan forecasts of a file from its beginning."""

import gzip

import numpy as np
import pytest
from Bio import bgzf

from genodiff.io.planning import count_letters, count_lines


def write(path, data, kind):
    if kind == "plain":
        path.write_bytes(data)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(data, 6))
    else:
        with bgzf.open(path, "wb") as file:
            file.write(data)
    return path


@pytest.mark.parametrize("kind", ["plain", "gzip", "bgzf"])
@pytest.mark.parametrize("lines", [0, 1, 3_000, 60_000])
def test_letters_and_lines_of_a_file_are_forecast_however_it_is_compressed(tmp_path, kind, lines):
    bases = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), (lines, 61))
    bases[:, 60:] = 10
    path = write(tmp_path / "file", bases.tobytes(), kind)
    assert count_letters(path) == pytest.approx(61 * lines, rel=0.1)
    assert count_lines(path) == pytest.approx(lines, rel=0.1)
