"""A network with a head: what padding, batches and strands change, and what they must not."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import InitialValues
from genodiff.errors import UsageError
from genodiff.finetuning.batches import draw_turned, encode, shuffle_batches
from genodiff.finetuning.fit import raw_scores
from genodiff.finetuning.head import Classifier, list_heads
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.pooling.parts import average_parts
from genodiff.finetuning.pooling.pooling import place_waves
from genodiff.finetuning.protocol import FitSettings, Strands
from genodiff.hub.caduceus import CLASSIFIER, make_published_config, make_published_state
from genodiff.hub.vocabulary import find_vocabulary
from genodiff.runs.model import collect_tensors
from tests.finetuning.motif_task import examples
from tests.tiny_networks import network

HEAD_NAMES = list(HEADS)


def classifier(
    strands: str = "paired", rc: Strands = "auto", n_out: int = 3, head: str = "mean"
) -> Classifier:
    fit = FitSettings(rc=rc, head=head, parts=5 if head == "parts" else 1)
    found = Classifier(network(5, strands=strands), n_out, fit, DNA.complement, seed=5)
    for i, weight in enumerate(found.pooling.parameters()):  # places count from the start
        torch.nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(i))
    return found


class Letters(torch.nn.Module):
    """A network whose features are the letters themselves."""

    def features(self, xt: torch.Tensor, *_: object) -> torch.Tensor:
        return torch.nn.functional.one_hot(xt, DNA.padded_size).float()


@pytest.mark.few(4)
@pytest.mark.parametrize("head", HEAD_NAMES)
@pytest.mark.parametrize("strands", ["paired", "single"])
def test_neither_batch_size_nor_padding_changes_a_prediction(strands, head):
    part = encode(examples(10, 3, (9, 120)), DNA, 100)
    network = classifier(strands, head=head)
    alone = np.concatenate(
        [raw_scores(network, part.take(np.array([i])), batch_size=1) for i in range(part.n)]
    )
    for batch_size, extra in ((1, 13), (7, 0), (7, 300), (64, 13)):
        found = raw_scores(network, part, batch_size=batch_size, extra=extra)
        np.testing.assert_allclose(found, alone, atol=1e-5, rtol=0)
    assert np.ptp(alone, axis=0).min() > 1e-3  # the scores do differ between sequences


def test_what_is_cut_is_counted_and_the_first_bases_stay():
    some = examples(10, 3, (50, 60))
    part = encode(some, DNA, 55)
    assert part.cut == sum(len(s) > 55 for s in some.sequences) > 0
    assert part.lengths.max() == 55
    x0, lengths = part.collate(np.array([4]))
    assert DNA.decode(x0[0].numpy())[: int(lengths[0])].encode() == some.sequences[4][:55]


@pytest.mark.parametrize("head", HEAD_NAMES)
@pytest.mark.parametrize(("strands", "rc"), [("paired", "conjoin"), ("single", "average")])
def test_both_strands_of_a_sequence_have_one_prediction(strands, rc, head):
    network = classifier(strands, rc, head=head)
    x0, lengths = encode(examples(6, 3, (20, 33)), DNA, 100).collate(np.arange(6))
    with torch.no_grad():
        turned = network.other_strand(x0, lengths)
        given, other = (network.predict(x, lengths) for x in (x0, turned))
        alone = network(x0, lengths) - network(turned, lengths)
    torch.testing.assert_close(given, other, atol=1e-5, rtol=0)
    assert (alone.abs().max() < 1e-5) == (rc == "conjoin")


@pytest.mark.parametrize("head", HEAD_NAMES)
def test_conjoined_scores_are_the_mean_of_the_head_on_each_strand(head):
    network = classifier("paired", "conjoin", head=head)
    x0, lengths = encode(examples(4, 3, (30, 30)), DNA, 100).collate(np.arange(4))
    with torch.no_grad():
        single = classifier("single", "none", head=head)
        single.load_state_dict(network.state_dict())
        mean = (single(x0, lengths) + single(network.other_strand(x0, lengths), lengths)) / 2
        torch.testing.assert_close(network(x0, lengths), mean, atol=1e-5, rtol=0)


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_parts_are_the_means_of_stretches_and_one_without_a_base_is_zero(parts):
    h = torch.randn(5, 11, 4, generator=torch.Generator().manual_seed(3))
    lengths = torch.tensor([11, 7, 8, 1, 2])
    found = average_parts(h, parts, lengths)
    for row, n in enumerate(lengths.tolist()):
        for part in range(parts):
            here = [i for i in range(n) if i * parts // n == part]
            expected = h[row, here].mean(0) if here else torch.zeros(4)
            torch.testing.assert_close(found[row, part], expected)


@pytest.mark.parametrize("head", HEAD_NAMES)
@pytest.mark.parametrize("strands", ["paired", "single"])
def test_the_bases_of_a_sequence_alone_have_gradients(strands, head):
    network = classifier(strands, head=head)
    h = torch.randn(3, 20, 24 if strands == "paired" else 12, requires_grad=True)
    lengths = torch.tensor([20, 9, 1])
    pooled = network.pool(h, lengths)
    (pooled * torch.randn_like(pooled)).sum().backward()
    for row, n in enumerate(lengths.tolist()):
        assert (h.grad[row, n:] == 0).all()
        assert (h.grad[row, :n].abs().sum(1) > 0).all()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.pooling.parameters())


@pytest.mark.parametrize("head", HEAD_NAMES)
def test_a_head_sees_where_a_motif_stands_where_it_says_so(head):
    network = classifier("single", "none", head=head)
    network.backbone = Letters()
    more = {"parts": 4} if head == "parts" else {}
    network.pooling = HEADS[head](DNA.padded_size, InitialValues(3), **more)
    for weight in network.pooling.parameters():
        torch.nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(2))
    texts = ("CCTATACCCCCCCCCC", "CCCCCCCCCCTATACC")
    early, late = (torch.tensor([DNA.encode(text).tolist()]) for text in texts)
    length = torch.tensor([16])
    a, b = (network.pool(network.features(x, length), length) for x in (early, late))
    assert torch.allclose(a, b, atol=1e-6) == (not network.pooling.reads_places)


def test_place_i_of_one_strand_is_place_length_minus_1_minus_i_of_the_other():
    lengths = torch.tensor([9, 5, 1])
    waves = place_waves(9, lengths, 3)
    at = torch.arange(9) / 8
    torch.testing.assert_close(waves[0, :, 1], torch.cos(2 * torch.pi * at))
    odd, even = waves[..., [0, 2]], waves[..., 1]  # cos(pi k (1 - u)) = (-1)^k cos(pi k u)
    for row, n in enumerate([9, 5]):
        torch.testing.assert_close(odd[row, :n].flip(0), -odd[row, :n], atol=1e-6, rtol=0)
        torch.testing.assert_close(even[row, :n].flip(0), even[row, :n], atol=1e-6, rtol=0)


def test_heads_stand_in_one_registry_in_the_order_of_their_simplicity():
    assert list_heads() == ["mean", "parts", "attention", "conv"]
    assert sorted(HEADS.list_names()) == sorted(HEADS)
    counts = {}
    for head in HEADS:
        named = classifier("single", "none", 2, head=head).named_parameters()
        counts[head] = sum(p.numel() for name, p in named if not name.startswith("backbone."))
    assert counts["mean"] < min(counts["parts"], counts["attention"]) < counts["conv"] < 30_000


def test_strands_follow_from_the_network_and_what_it_cannot_do_is_refused():
    assert classifier("paired").strands == "conjoin"
    assert classifier("single").strands == "average"
    for strands, rc in (("single", "conjoin"), ("paired", "average"), ("paired", "augment")):
        with pytest.raises(UsageError, match=rc):
            classifier(strands, rc)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="complement"):
        Classifier(classifier("single").backbone, 2, FitSettings(rc="average"), None)


def test_an_epoch_shows_every_example_once_and_depends_on_seed_and_epoch_alone():
    for lengths in (np.full(100, 30), np.random.default_rng(1).integers(10, 90, 100)):
        batches = shuffle_batches(lengths, 8, seed=3, epoch=2)
        assert sorted(np.concatenate(batches).tolist()) == list(range(100))
        assert {len(b) for b in batches} == {8, 4}
        again, other = (shuffle_batches(lengths, 8, seed=3, epoch=epoch) for epoch in (2, 3))
        listed = [[batch.tolist() for batch in some] for some in (batches, again, other)]
        assert listed[0] == listed[1] != listed[2]
    assert 30 < draw_turned(1, 0, 100).sum() < 70
    assert (draw_turned(1, 0, 100)[:50] == draw_turned(1, 0, 50)).all()


@pytest.mark.parametrize("strands", ["paired", "single"])
def test_the_head_scores_as_the_published_classifier_does(strands):
    """Its head has no bias; it pools padding, so each row is alone."""
    hf = pytest.importorskip("genodiff.hf", exc_type=ImportError)
    ours = classifier(strands).eval()
    settings, vocabulary = ours.backbone.settings, find_vocabulary(DNA.padded_size, None)
    config = make_published_config(settings, vocabulary, {}, CLASSIFIER)
    config |= {"num_labels": 3, "conjoin_eval": strands == "single"}
    tensors = collect_tensors(ours.backbone)
    state = make_published_state(settings, tensors, vocabulary, CLASSIFIER, ours.weight)
    theirs = hf.CaduceusForSequenceClassification(hf.CaduceusConfig(**config)).eval()
    assert not theirs.load_state_dict(state, strict=False).unexpected_keys
    x0, lengths = encode(examples(5, 3, (20, 40)), DNA, 100).collate(np.arange(5))
    for row, n, found in zip(x0, lengths, ours.predict(x0, lengths), strict=True):
        ids = row[:n].numpy()
        both = torch.from_numpy(np.stack([ids, DNA.rc(ids)], -1))[None]
        published = theirs(both if strands == "single" else both[..., 0]).logits[0] + ours.bias
        torch.testing.assert_close(found, published, atol=1e-5, rtol=1e-5)
