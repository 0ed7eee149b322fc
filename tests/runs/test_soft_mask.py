"""How much of train is soft-masked, and what such a base weighs, is measured and said."""

import numpy as np
import pytest
from tiny_run import genome_text

from genodiff.alphabet import DNA, SOFT
from genodiff.runs.feed import describe_soft_mask, measure_soft_mask, open_feed
from genodiff.runs.resolve import resolve_config


@pytest.mark.parametrize("upper", [False, True])
def test_the_share_is_that_of_the_bases_of_the_train_windows(tmp_path, upper):
    fasta = tmp_path / "genome.fa"
    fasta.write_text(genome_text().upper() if upper else genome_text())
    data = {"seq_len": 100, "soft_mask_weight": 0.3}
    feed = open_feed(resolve_config({"recipe": "own", "fasta": str(fasta), "data": data}))
    found = measure_soft_mask(feed)
    rows = zip(feed.train.flat_start, feed.train.length, strict=True)
    ids = np.concatenate([feed.store.flat[start : start + n] for start, n in rows])
    ids = ids[np.isin(ids & ~np.uint8(SOFT), DNA.targets)]
    assert found == {
        "soft_mask_weight": 0.3,
        "soft_masked_share": pytest.approx((ids >= SOFT).mean(), abs=1e-4),
    }
    assert (found["soft_masked_share"] == 0) == upper
    said = describe_soft_mask(found)
    assert ("no soft-masked bases" in said) == upper
    assert upper or "weighs 0.3 in training" in said


def test_text_has_nothing_to_say():
    assert describe_soft_mask({}) == ""
