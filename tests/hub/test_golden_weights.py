"""The published Caduceus weights themselves, where a user has them: GENODIFF_WEIGHTS names the
folder that holds their hub folders.

The numbers are those of evo.cpp's oracles (Apache-2.0), made with the reference: mean over the
tokens of the last hidden state for 15 bases, no [SEP]. Nothing is fetched.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from published_folders import assert_code, write_published

BASES = "ACGTNACGTNACGTN"


GOLDEN: dict[str, tuple[int, list[float], list[float], float]] = {
    "caduceus-ps_seqlen-131k_d_model-256_n_layer-16": (
        512,
        [0.004406380, 0.006944521, -0.002049317, -1.2314e-5, 0.0005361, -0.001861943],
        [-0.002165577, 0.007866108, 0.004719344],
        2.884237422,
    ),
    "caduceus-ph_seqlen-1k_d_model-256_n_layer-4_lr-8e-3": (
        256,
        [-0.001110114, 8.898e-5, -0.013220022, -0.000318706, 0.002989139, 0.002728587],
        [],
        3.616908583,
    ),
}
"""Width, first and last numbers, and norm."""


def last_hidden_state(source: Path, folder: Path) -> np.ndarray:
    """What `import` and `embed` make of the weights for the bases."""
    fasta, run, out = folder / "probe.fa", folder / "run", folder / "probe.npz"
    fasta.write_text(f">probe\n{BASES}\n")
    assert_code(0, "checkpoint", "import", str(source), "--out", str(run), "--threads", "1", "-q")
    assert_code(0, "embed", str(run), "--fasta", str(fasta), "--out", str(out), "--strand",
                "forward", "--threads", "1", "-q")  # fmt: skip
    with np.load(out) as found:
        row: np.ndarray = found["embeddings"][0]
        return row


@pytest.mark.parametrize("name", GOLDEN)
def test_the_published_weights_give_their_golden_hidden_states(name, tmp_path):
    home = os.environ.get("GENODIFF_WEIGHTS")
    if not home or not (Path(home) / name).is_dir():
        pytest.skip(
            f"no published weights here (set GENODIFF_WEIGHTS to a folder that holds {name})"
        )
    (width, first, last, norm), found = GOLDEN[name], last_hidden_state(Path(home) / name, tmp_path)
    assert found.shape == (width,)
    np.testing.assert_allclose(found[: len(first)], first, rtol=0, atol=2e-6)
    np.testing.assert_allclose(found[width - len(last) :], last, rtol=0, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(found), norm, rtol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"rcps": False}], ids=["both strands", "one strand"])
def test_the_way_to_the_golden_numbers_is_a_direct_forward(tmp_path, changes):
    theirs = write_published(tmp_path / "hf", **changes)
    ids = torch.tensor([[7, 8, 9, 10, 11] * 3])
    with torch.no_grad():
        wanted = theirs.features(ids)[0].mean(0)
    np.testing.assert_allclose(
        last_hidden_state(tmp_path / "hf", tmp_path), wanted, rtol=0, atol=1e-5
    )
