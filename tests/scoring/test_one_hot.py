"""Networks on one-hot arrays: `genodiff.one_hot_network`."""

import numpy as np
import pytest
import torch
from tiny_networks import network
from torch import Tensor

import genodiff
from genodiff.alphabet import DNA, reverse_complement
from genodiff.errors import UsageError
from genodiff.scoring.one_hot import OneHotNetwork, encode_one_hot


def decode_one_hot(array: Tensor) -> list[str]:
    """The letters of an array, N for a column of zeros."""
    columns = torch.where(array.sum(1) > 0, array.argmax(1), 4)
    return ["".join("ACGTN"[int(i)] for i in row) for row in columns]


@pytest.fixture(scope="module")
def model(run):
    return genodiff.load(run)


def random_arrays(n: int = 3, length: int = 40) -> Tensor:
    rng = np.random.default_rng(1)
    return encode_one_hot(["".join(rng.choice(list("ACGT"), length)) for _ in range(n)])


def test_a_network_reads_one_hot_arrays_as_it_reads_ids(model):
    array = random_arrays()
    array[0, :, 5] = 0  # a masked base
    ids, _ = model.encode([one.replace("N", "?") for one in decode_one_hot(array)])
    logits = genodiff.one_hot_network(model, outputs="logits")(array)
    wanted = model.network(ids)[..., list(DNA.targets)].transpose(1, 2)
    assert torch.allclose(logits, wanted, atol=1e-5)
    features = genodiff.one_hot_network(model, outputs="features")(array)
    assert torch.allclose(features, model.network.features(ids).mean(1), atol=1e-5)


def test_the_log_likelihood_is_that_of_leave_one_out(model):
    array = random_arrays(1, 24)
    found = genodiff.one_hot_network(model, every=24)(array)
    (letters,) = decode_one_hot(array)
    chances = model.predict(letters, leave_one_out=True)
    wanted = sum(np.log(chances[i, "ACGT".index(letter)]) for i, letter in enumerate(letters))
    assert found.shape == (1, 1)
    assert found.item() == pytest.approx(wanted, abs=1e-3)


@pytest.mark.slow
def test_both_strands_have_one_log_likelihood(model):
    array = random_arrays(2, 40)
    turned = encode_one_hot([str(reverse_complement(one)) for one in decode_one_hot(array)])
    single = model.trained._replace(network=network(strands="single"))
    for some in (model.trained, single):
        score = OneHotNetwork(some, every=40)
        assert torch.allclose(score(array), score(turned), atol=1e-3)


@pytest.mark.parametrize("outputs", ["log_likelihood", "features", "logits"])
def test_gradients_are_those_of_small_changes(model, outputs):
    score = genodiff.one_hot_network(model, outputs=outputs)
    array = random_arrays(2, 12).requires_grad_()
    weight = torch.randn(score(array).shape, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad((score(array) * weight).sum(), array)
    assert gradient.shape == array.shape
    step = torch.randn(array.shape, generator=torch.Generator().manual_seed(1)) * 1e-2
    with torch.no_grad():
        change = ((score(array + step) - score(array - step)) * weight).sum()
    assert (2 * (gradient * step).sum()).item() == pytest.approx(change.item(), rel=0.05, abs=1e-3)


def test_a_wrong_output_is_refused(model):
    with pytest.raises(UsageError):
        genodiff.one_hot_network(model, outputs="scores")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no model"):
        genodiff.one_hot_network("runs/demo")
    with pytest.raises(UsageError):
        genodiff.one_hot_network(model)(torch.zeros(2, 10, 4))
