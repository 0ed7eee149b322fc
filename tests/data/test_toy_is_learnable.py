"""The toy genome and the real network together: a few dozen steps close much of the gap, and none
of it by a leak.
"""

import pytest

import genodiff


@pytest.mark.slow
def test_a_tiny_network_closes_a_third_of_the_gap_in_sixty_steps_and_never_beats_the_source(
    tmp_path,
):
    done = genodiff.train(
        "toy", out=tmp_path / "run", preset="caduceus-ps-tiny", seq_len=256, batch_size=16,
        max_steps=60, lr=8e-3, warmup_steps=6, weight_decay=0.0, betas=[0.9, 0.95], ema_decay=0.9,
        validate_windows=0, device="cpu",
    )  # fmt: skip
    assert done.step == 60
    found = genodiff.evaluate(tmp_path / "run", device="cpu", mixture=False)
    source, letters = found["source_bits"], found["markov_bits"]["0"]
    assert source < found["bits_per_base"] < letters - (letters - source) / 3
