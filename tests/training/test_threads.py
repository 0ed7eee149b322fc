"""A run on one thread, on two and on three: the same losses and the same weights, bit for bit."""

import pytest
import torch
from safetensors.torch import load_file
from tiny_training import read_rows, run_tiny

from genodiff.kernels import gemm
from genodiff.kernels.library import find_missing

pytestmark = pytest.mark.skipif(
    find_missing() is not None,
    reason="torch's scan runs here, whose bits depend on the number of threads",
)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("preset", "routed"),
    [("caduceus-ps-tiny", True), ("caduceus-ph-tiny", True), ("caduceus-ph-tiny", False)],
)
def test_a_run_does_not_depend_on_the_number_of_threads(
    preset, routed, threads, tmp_path, monkeypatch
):
    if not routed:
        monkeypatch.setattr(gemm, "routing", lambda: (False, "torch's default"))
    found = []
    for n in threads:
        torch.set_num_threads(n)
        out = tmp_path / f"{n}"
        run_tiny(
            out, preset=preset, d_model=40, seq_len=512, batch_size=8, steps=4, validate_every=2
        )
        losses = [(r["loss_hex"], r["grad_norm"], r["valid_bits"]) for r in read_rows(out)]
        found.append((losses, load_file(out / "model.safetensors")))
    (losses, weights), *others = found
    assert len(losses) == 4
    for other_losses, other_weights in others:
        assert other_losses == losses
        assert all(torch.equal(other_weights[name], weights[name]) for name in weights)
