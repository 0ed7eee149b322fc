"""The classifier: padding and strands change nothing that they should not, each pooling is what its
name says.
"""

from typing import Any, get_args

import pytest
import torch
from networks import COMPLEMENT, bases, network, reverse_complement

from genodiff.backbones.classifier import Pooling, SequenceClassifier, pool
from genodiff.errors import UsageError

POOLINGS = get_args(Pooling)


def classifier(strands: str = "single", **settings: Any) -> SequenceClassifier:
    model = (
        SequenceClassifier(network(strands=strands), 3, complement=COMPLEMENT, **settings)
        .double()
        .eval()
    )
    with torch.no_grad():
        model.score.mul_(50)
    return model


@pytest.mark.parametrize("how", POOLINGS)
def test_pooling_is_over_each_rows_own_positions(how: Pooling) -> None:
    h = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lengths = torch.tensor([6, 1, 4])
    found = pool(h, how, lengths)
    for row, n in enumerate(lengths.tolist()):
        part = h[row, :n]
        wanted = {
            "mean": part.mean(0),
            "max": part.amax(0),
            "first": part[0],
            "last": part[-1],
            "sum": part.sum(0),
        }[how]
        torch.testing.assert_close(found[row], wanted)
        torch.testing.assert_close(pool(h[row : row + 1, :n], how)[0], wanted)


@pytest.mark.parametrize("how", POOLINGS)
@pytest.mark.parametrize(
    ("strands", "conjoin"), [("paired", False), ("single", True), ("single", False)]
)
def test_padding_changes_no_score_and_the_strand_none_where_both_are_read(
    how: Pooling, strands: str, conjoin: bool
) -> None:
    model = classifier(strands, pooling=how, conjoin_eval=conjoin)
    x, n = bases(2, 9), 6
    lengths = torch.tensor([9, n])
    with torch.no_grad():
        scores = model(x, lengths)
        torch.testing.assert_close(scores[1:], model(x[1:, :n]), rtol=0, atol=1e-9)
        turned = model(reverse_complement(x[1:, :n]))
    if strands == "paired" or conjoin:
        torch.testing.assert_close(turned, scores[1:], rtol=0, atol=1e-9)
    else:
        assert not torch.allclose(turned, scores[1:])


def test_conjoining_follows_the_mode() -> None:
    x = bases(2, 7)
    for train, evaluation in ((True, False), (False, True), (True, True), (False, False)):
        model = classifier(conjoin_train=train, conjoin_eval=evaluation)
        with torch.no_grad():
            for mode, conjoins in ((True, train), (False, evaluation)):
                model.train(mode)
                same = torch.allclose(model(reverse_complement(x)), model(x), rtol=0, atol=1e-9)
                assert same == conjoins == model.conjoins
    assert not classifier("paired", conjoin_eval=True).conjoins


def test_the_other_strand_may_be_given_and_is_needed_without_a_complement() -> None:
    model, x = classifier(conjoin_eval=True), bases(2, 7)
    with torch.no_grad():
        torch.testing.assert_close(model(x, other=reverse_complement(x)), model(x))
        assert not torch.allclose(model(x, other=x), model(x))
    with pytest.raises(UsageError, match="other strand"):
        SequenceClassifier(network(strands="single"), 2, conjoin_eval=True).eval()(x)
