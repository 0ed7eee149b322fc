"""The head is the published classifier's, with a bias."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.finetuning.batches import encode
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
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
    ours = Classifier(network, 3, FitSettings(rc=rc), DNA.complement, seed=2).eval()
    theirs = SequenceClassifier(
        network, 3, conjoin=strands == "single", complement=DNA.complement
    ).eval()
    x0, lengths = encode(examples(5, 3, (20, 40)), DNA, 100).collate(np.arange(5))
    with torch.no_grad():
        theirs.score.copy_(ours.weight)
        torch.testing.assert_close(
            ours.predict(x0, lengths), theirs(x0, lengths) + ours.bias, atol=1e-5, rtol=1e-5
        )
