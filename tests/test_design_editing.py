"""Editing in rounds and the choice of a set (`benchmarks/design/editing.py`), without networks."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks" / "design"))

from design_scores import measure_gains
from editing import LONGEST, Editor, add_strand, choose_set, count_each, fill_evenly, fit_chain

from genodiff.alphabet import DNA
from genodiff.quality.scorecard import kmer_counts


def write_texts(n: int, seed: int, letters: str = "ACGT") -> list[str]:
    draws = np.random.default_rng(seed)
    return ["".join(draws.choice(list(letters), 80)) for _ in range(n)]


def count(texts: list[str]) -> np.ndarray:
    return kmer_counts([DNA.encode(text) for text in texts], 6)


class ShareOfA(nn.Module):
    calls = 0

    def forward(self, X: Tensor) -> Tensor:
        self.calls += len(X)
        return X[:, 0].sum(1, keepdim=True)


def test_words_of_each_are_those_of_the_scorecard():
    texts = write_texts(7, 1)
    expected = count(texts)
    each = count_each(texts)
    np.testing.assert_array_equal(add_strand(each).sum(0), expected)
    assert each.sum(1).tolist() == [75] * 7


def test_chain_sums_the_log_shares_of_its_words():
    words = count_each(write_texts(50, 2, "AACGT")).sum(0)
    text = write_texts(1, 3)[0]
    nats, digits = 0.0, str.maketrans("ACGT", "0123")
    for i in range(75):
        four = [words[int((text[i : i + 5] + x).translate(digits), 4)] for x in "ACGT"]
        nats += np.log((four["ACGT".index(text[i + 5])] + 0.5) / (sum(four) + 2))
    assert fit_chain(words)([text])[0] == pytest.approx(nats)
    assert len(fit_chain(words)([])) == 0


@pytest.mark.parametrize("price", [0.0, 3.0, 30.0])
def test_no_exchange_betters_a_chosen_set(price):
    natives = write_texts(40, 4, "AAACGT")
    words, both = count_each(natives).sum(0), count(natives)
    pools = [write_texts(6, 10 + i, "AACGT") for i in range(4)]
    values = [np.random.default_rng(i).normal(size=6) for i in range(4)]
    known = {t: v for p, some in zip(pools, values, strict=True) for t, v in zip(p, some)}  # noqa: B905

    def worth(texts: list[str]) -> float:
        match = np.corrcoef(count(texts), both)[0, 1]
        return float(np.mean([known[text] for text in texts]) + price * match)

    found = choose_set(pools, values, words, price)
    others = [[*found[:i], text, *found[i + 1 :]] for i in range(4) for text in pools[i]]
    assert max(map(worth, others)) <= worth(found) + 1e-9
    if not price:
        best = zip(pools, values, strict=True)
        assert found == [some[int(v.argmax())] for some, v in best]


def test_search_keeps_to_its_calls_and_copies_no_long_stretch():
    torch.manual_seed(0)
    natives, oracle = write_texts(60, 5), ShareOfA()
    seen = natives[0]  # what the generator is taken to have read

    def longest(texts: list[str]) -> np.ndarray:
        return np.array([20 if seen[:20] in text else 8 for text in texts])

    editor = Editor(natives, oracle, fill_evenly, longest, count_each(natives).sum(0))
    pools, values = editor.search(3, 320, 1)
    assert oracle.calls == sum(map(len, pools)) <= 3 * 320
    assert max(longest([text for some in pools for text in some])) <= LONGEST
    for some, value in zip(pools, values, strict=True):
        assert [text.count("A") for text in some] == value.tolist()
        assert value[32:].max() > value[:32].max()
    again, _ = editor.search(3, 320, 1)
    assert again == pools


def test_gains_are_in_standard_deviations_and_transfer_is_their_ratio():
    rng = np.random.default_rng(1)
    real = np.stack([rng.normal(5, 2, 400), rng.normal(0, 0.5, 400)])
    made = np.stack([rng.normal(11, 1, 200), rng.normal(0.9, 0.5, 200)])
    found = measure_gains(made, real)
    wanted = (made.mean(1) - real.mean(1)) / real.std(1, ddof=1)
    assert [found[name]["value"] for name in ("guided", "judge")] == pytest.approx(wanted)
    spread = 2 * 1.96 * np.sqrt(1 / 400 + 0.25 / 200 + wanted[0] ** 2 / 800)  # the delta method
    assert np.ptp(found["guided"]["ci95"]) == pytest.approx(spread, rel=0.25)
    low, high = found["transfer"]["ci95"]
    assert low < 0.5 < high
    assert not found["hacked"]
    lower = measure_gains(2 * real.mean(1, keepdims=True) - made, real, sign=-1)
    assert lower["guided"]["value"] == pytest.approx(found["guided"]["value"], abs=1e-9)
    nothing = measure_gains(real[:, :200], real)
    assert nothing["transfer"] is None
