"""Saliency is what changing each base does; the head is the published classifier's, with a bias."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.finetuning.batches import encode
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.saliency import explain_sequence, mutagenesis
from tests.conformance.published_classifier import SequenceClassifier
from tests.finetuning.motif_task import examples


def backbone(strands: str) -> torch.nn.Module:
    settings = CaduceusSettings(d_model=12, n_layer=2, d_state=4, strands=strands)  # type: ignore[arg-type]
    found = settings.build(DNA.padded_size, DNA.complement, seed=5)
    torch.nn.init.normal_(found.embedding, std=0.7, generator=torch.Generator().manual_seed(1))
    return found


@pytest.mark.parametrize(("strands", "rc"), [("paired", "conjoin"), ("single", "average")])
def test_the_head_scores_as_the_published_classifier_does(strands, rc):
    network = backbone(strands)
    ours = Classifier(network, 3, strands=rc, complement=DNA.complement, seed=2).eval()  # type: ignore[arg-type]
    theirs = SequenceClassifier(
        network, 3, conjoin_eval=strands == "single", complement=DNA.complement
    ).eval()
    x0, lengths = encode(examples(5, 3, (20, 40)), DNA, 100).collate(np.arange(5))
    with torch.no_grad():
        theirs.score.copy_(ours.weight)
        torch.testing.assert_close(
            ours.predict(x0, lengths), theirs(x0, lengths) + ours.bias, atol=1e-5, rtol=1e-5
        )


def test_mutagenesis_is_the_change_of_the_class_against_the_others_base_by_base():
    network = Classifier(
        backbone("paired"), 3, strands="auto", complement=DNA.complement, seed=2
    ).eval()
    sequence = examples(1, 3, (31, 31)).sequences[0]
    start, change = mutagenesis(network, DNA, sequence, 2, longest=11)
    assert (start, change.shape) == (10, (11, 4))

    def margin(text: bytes) -> float:
        ids = torch.tensor(np.array(DNA.encode(text), np.int64))[None]
        with torch.no_grad():
            z = network.predict(ids, torch.tensor([len(text)]))[0]
        return float(z[2] - (z[0] + z[1]) / 2)

    for i in (0, 5, 10):
        for j, base in enumerate(b"ACGT"):
            changed = bytearray(sequence)
            changed[start + i] = base
            assert change[i, j] == pytest.approx(
                margin(bytes(changed)) - margin(sequence), abs=1e-5
            )
    own = ["ACGT".index(c) for c in sequence[10:21].decode()]
    np.testing.assert_allclose(change[np.arange(11), own], 0, atol=1e-5)
    found = explain_sequence(network, DNA, sequence, 2, 0.9)
    assert found["bases"] == sequence.decode()
    assert len(found["cost"]) == 31
