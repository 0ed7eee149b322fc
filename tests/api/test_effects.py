"""Effects of edits on strings and one-hot arrays, and networks on such arrays."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_networks import network
from tiny_run import write_run
from torch import Tensor, nn

import genodiff
from genodiff.alphabet import DNA, reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.scoring.one_hot import OneHotNetwork, decode_one_hot, encode_one_hot


class Letters(nn.Module):
    """The letters themselves as numbers, so that an edit can be read off."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x.sum(1) > 0, x.argmax(1), 4).float()


def read(effect: Any) -> list[list[str]]:
    return [["".join("ACGTN"[int(i)] for i in row) for row in rows] for rows in effect]


def test_substitutions_are_made_together_and_the_input_stays():
    array = encode_one_hot(["ACGTAC", "TTTTTT"])
    given = array.clone()
    edits = [[0, 1, "t"], [0, 5, "G"]]
    before, after = read(genodiff.substitution_effect(Letters(), array, edits))
    assert before == ["ACGTAC", "TTTTTT"]
    assert after == ["ATGTAG", "TTTTTT"]
    assert torch.equal(array, given)


def test_positions_of_deletions_are_those_of_the_given_sequence():
    sequences = ["ACGTACGT", "ACGTACGT"]
    edits = [[0, 2], [0, 5], [1, 1]]
    before, after = read(genodiff.deletion_effect(Letters(), sequences, edits))
    assert before == ["ACGTAC", "ACGTAC"]
    assert after == ["ACTAGT", "AGTACG"]
    before, after = read(genodiff.deletion_effect(Letters(), sequences, edits, left=True))
    assert before == ["GTACGT", "GTACGT"]
    assert after == ["ACTAGT", "GTACGT"]


def test_an_insertion_stands_in_front_of_its_position():
    edits = [[0, 2, "T"], [0, 3, "A"]]
    before, after = read(genodiff.insertion_effect(Letters(), "ACGTACGT", edits))
    assert before == ["ACGTACGT"]
    assert after == ["ACTGATAC"]
    _, after = read(genodiff.insertion_effect(Letters(), "ACGTACGT", edits, left=True))
    assert after == ["TGATACGT"]
    _, after = read(genodiff.insertion_effect(Letters(), "ACGT", [[0, 2, "T"], [0, 2, "A"]]))
    assert after == ["ACAT"]  # each was put in by itself


def test_strings_arrays_and_rows_of_any_kind_mean_the_same():
    sequences, rows = ["ACGTNC", "GGGGGG"], [[0, 4, 2], [1, 0, 3]]
    array = encode_one_hot(sequences)
    wanted = read(genodiff.substitution_effect(Letters(), sequences, rows))
    for given in (array, array.numpy(), array.to(torch.int8)):
        for edits in (rows, torch.tensor(rows), np.array(rows), [[0, 4, "G"], [1, 0, "T"]]):
            assert read(genodiff.substitution_effect(Letters(), given, edits)) == wanted
    assert wanted == [["ACGTNC", "GGGGGG"], ["ACGTGC", "TGGGGG"]]
    assert decode_one_hot(array) == sequences


@pytest.mark.parametrize(
    ("function", "sequences", "edits"),
    [
        ("substitution_effect", ["ACGT"], [[0, 4, 0]]),
        ("substitution_effect", ["ACGT"], [[1, 0, 0]]),
        ("substitution_effect", ["ACGT"], [[0, 0, "N"]]),
        ("substitution_effect", ["ACGT"], [[0, 0]]),
        ("substitution_effect", ["ACGT"], [[0, 1, "A"], [0, 1, "T"]]),
        ("substitution_effect", np.zeros((0, 4, 5)), []),
        ("substitution_effect", np.zeros((2, 5, 4)), []),
        ("deletion_effect", ["ACG"], [[0, 0], [0, 1], [0, 2]]),
        ("insertion_effect", ["ACG"], [[0, -1, 0]]),
    ],
)
def test_wrong_rows_and_arrays_are_refused(function, sequences, edits):
    with pytest.raises(UsageError):
        getattr(genodiff, function)(Letters(), sequences, edits)


def test_sequences_of_several_lengths_are_refused():
    with pytest.raises(DataError, match="several lengths"):
        genodiff.substitution_effect(Letters(), ["ACGT", "ACG"], [])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return genodiff.load(write_run(tmp_path_factory.mktemp("effects")))


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
    single = model.trained._replace(backbone=network(strands="single"))
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


def test_an_effect_of_a_model_is_a_difference_of_log_likelihoods(model):
    sequences = decode_one_hot(random_arrays())
    edits = [[0, 20, "A"], [0, 21, "A"], [2, 3, "C"]]
    one = genodiff.substitution_effect(model, sequences, edits, batch_size=2)
    other = genodiff.substitution_effect(genodiff.one_hot_network(model), sequences, edits)
    assert torch.allclose(one.y_before, other.y_before, atol=1e-4)
    assert torch.equal(one.y_before[1], one.y_after[1])
    assert not torch.equal(one.y_before[0], one.y_after[0])
    with pytest.raises(UsageError, match="no model"):
        genodiff.substitution_effect("runs/demo", sequences, edits)


def test_a_wrong_output_is_refused(model):
    with pytest.raises(UsageError):
        genodiff.one_hot_network(model, outputs="scores")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        genodiff.one_hot_network(model)(torch.zeros(2, 10, 4))
