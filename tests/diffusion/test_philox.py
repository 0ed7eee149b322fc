"""The generator in torch gives numpy's numbers, bit for bit."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.counter import Purpose, uniforms
from genodiff.diffusion.draw import make_gumbel_noise, philox_uniforms


@settings(max_examples=25, deadline=None)
@given(
    seeds=st.lists(st.integers(0, (1 << 63) - 1), min_size=1, max_size=3),
    purpose=st.sampled_from(list(Purpose)),
    n=st.integers(1, 41),
    sub_index=st.integers(0, 9),
)
def test_rows_are_those_of_numpy(seeds, purpose, n, sub_index):
    found = philox_uniforms(torch.tensor(seeds), purpose, n, sub_index)
    wanted = [uniforms(seed, purpose, 0, n, sub_index) for seed in seeds]
    assert np.array_equal(found.numpy(), np.stack(wanted))


def test_noise_is_the_same_where_it_is_made_on_the_device(monkeypatch):
    u = torch.tensor([0.0, 0.3, 1 - 2.0**-53], dtype=torch.float64)
    here = make_gumbel_noise(u, 101)
    keys = (u * 2.0**53).long()
    assert keys.tolist() == [0, int(0.3 * 2**53), 2**53 - 1]
    there = -torch.log(-torch.log(philox_uniforms(keys, Purpose.SAMPLE_TOKEN, 101, 1)))
    assert torch.equal(here, there)
    on_device = make_gumbel_noise(u.to("meta"), 101)  # nothing is read back from the device
    assert on_device.shape == here.shape
