"""Class labels: no label changes nothing, both strands share a label, rows are independent."""

import pytest
import torch
from tiny_networks import COMPLEMENT, dimamba, dit, network

from genodiff.backbones.backbone import Backbone
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.errors import UsageError

X = torch.randint(7, 11, (4, 21), generator=torch.Generator().manual_seed(0))
X[:, ::3] = 3
NONE = torch.full((4,), -1)


def make(kind: str) -> tuple[Backbone, torch.Tensor]:
    if kind in ("paired", "single"):
        return network(strands=kind, n_classes=3), X
    if kind == "dimamba":
        return dimamba(n_classes=3, time_conditioning=False), X
    return dit(n_classes=3, adaln=True), X % 9


KINDS = ["paired", "single", "dimamba", "dit"]


@pytest.mark.parametrize("strands", ["paired", "single"])
def test_fresh_classes_leave_the_network_as_it_was_bit_for_bit(strands):
    shape = CaduceusSettings(d_model=12, n_layer=2, strands=strands)
    plain = shape.build(16, COMPLEMENT, seed=3)
    more = shape.model_copy(update={"n_classes": 5})
    one = more.build(16, COMPLEMENT, seed=3)
    assert torch.equal(plain(X), one(X))
    assert torch.equal(plain(X), one(X, labels=torch.tensor([0, 4, -1, 2])))
    assert sum(p.numel() for p in one.parameters()) == more.n_parameters(16)
    assert "n_classes" not in shape.model_dump()
    assert more.model_dump()["n_classes"] == 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_counts_in_its_row_alone_and_none_adds_nothing(kind):
    net, x = make(kind)
    mixed = net(x, labels=torch.tensor([2, -1, 0, 2]))
    assert torch.equal(net(x), net(x, labels=NONE))
    for row, label in enumerate([2, -1, 0, 2]):
        alone = net(x, labels=torch.full((4,), label))
        assert torch.allclose(alone[row], mixed[row], atol=1e-6)
    assert (net(x, labels=NONE)[0] - mixed[0]).abs().max() > 1e-3
    assert (net(x, labels=NONE + 1)[0] - mixed[0]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_of_one_class_shares_its_weights(kind):
    net, x = make(kind)
    one = net.of_class(1)
    assert torch.equal(one(x), net(x, labels=torch.ones(4, dtype=torch.int64)))
    assert torch.equal(net(x), net(x, labels=NONE))
    with torch.no_grad():
        next(net.parameters()).mul_(1.5)
    assert torch.equal(one(x), net(x, labels=torch.ones(4, dtype=torch.int64)))


def test_a_paired_network_of_a_class_is_equivariant():
    net = network(n_classes=3).double()
    complement = torch.tensor(COMPLEMENT)
    labels = torch.tensor([0, 1, 2, -1])
    there = net(X, labels=labels)
    back = net(complement[X].flip(1), labels=labels).flip(1)[..., complement]
    assert torch.allclose(there, back, atol=1e-12)


@pytest.mark.parametrize("make", [network, dimamba, dit])
def test_a_network_without_classes_refuses_labels(make):
    with pytest.raises(UsageError, match="was trained without classes"):
        make()(X % 9, labels=NONE)
