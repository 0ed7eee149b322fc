"""Guidance of records that are longer than the network's window, and what names an oracle."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tiny_run import write_run
from torch import Tensor, nn

import genodiff
from genodiff.alphabet import DNA
from genodiff.errors import UsageError
from genodiff.generate.guiding import Guiding
from genodiff.generate.oracle import Oracle, hash_callable, load_oracle
from genodiff.generate.sample import Sample, Sampling, infill
from genodiff.runs.trained_model import TrainedModel


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    runs = [write_run(tmp_path_factory.mktemp(f"run{seed}"), seed=seed) for seed in (0, 1)]
    return [genodiff.load(run, device="cpu") for run in runs]


def fill(
    model: TrainedModel, length: int, n: int, guiding: Guiding | None = None, batch_size: int = 8
) -> list[Sample]:
    drafts = [np.full(length, DNA.mask_id, np.uint8) for _ in range(n)]
    how = Sampling(sampler="first-hitting", steps=2, batch_size=batch_size)
    return list(infill(model, drafts, how=how, guiding=guiding))


def count_c(sequences: list[str]) -> list[int]:
    return [one.count("C") for one in sequences]


@pytest.mark.slow
def test_cfg_of_strength_one_is_the_conditional_run_over_all_windows(models):
    one, other = (model.trained for model in models)
    found = fill(one, 150, 2, Guiding("cfg", 1.0, conditional=other))
    plain = fill(other, 150, 2)
    assert [s.ids.tolist() for s in found] == [s.ids.tolist() for s in plain]
    assert not np.array_equal(fill(one, 150, 1)[0].ids, plain[0].ids)


@pytest.mark.slow
def test_each_window_is_guided_and_sees_the_others(models):
    seen: list[str] = []

    def rate(sequences: list[str]) -> list[int]:
        seen.extend(sequences)
        return count_c(sequences)

    model = models[0].trained
    options = {"particles": 4.0}
    guiding = Guiding("best-of-n", 1.0, Oracle(rate, "c"), options=options, max_calls=3 * 4)
    (found,) = fill(model, 120, 1, guiding)
    assert {len(one) for one in seen} == {120}
    lefts = [one.count("N") for one in seen]
    assert lefts == sorted(lefts, reverse=True)
    assert len(set(lefts)) == 3
    assert lefts[-1] == 0
    assert found.calls == len(seen) <= 12
    assert found.log_z is None
    final = DNA.decode(found.ids)
    for left in set(lefts):  # each window keeps its best
        some = [one for one in seen if one.count("N") == left]
        best = [one for one in some if one.count("C") == max(count_c(some))]
        assert any(final.startswith(one.rstrip("N")) for one in best)
    zero = replace(guiding, strength=0.0)
    plain = fill(model, 120, 3)
    assert [s.ids.tolist() for s in fill(model, 120, 3, zero)] == [s.ids.tolist() for s in plain]
    with pytest.raises(UsageError, match="12 times"):
        fill(model, 120, 1, replace(guiding, max_calls=11))


class Even(nn.Module):
    """All letters are equally likely: what a window is guided to is known."""

    def forward(self, xt: Tensor, sigma: Tensor | None = None, lengths: object = None) -> Tensor:
        return torch.zeros(*xt.shape, 16)


@pytest.mark.slow
def test_the_law_over_two_windows_is_that_of_one_after_the_other(models):
    """Of two bases in windows of one: p(a) e^(r(aN)) / Z, then p(b) e^(r(ab)) / Z(a)."""
    model = models[0].trained
    data = model.config.data.model_copy(update={"seq_len": 2})
    config = model.config.model_copy(update={"data": data})
    tiny = model._replace(network=Even(), config=config)
    table = {"AN": 1.0, "CN": -0.5, "AC": 1.5, "CC": 1.0, "GT": -1.0, "TA": 0.7}

    def rate(sequences: list[str]) -> list[float]:
        return [table.get(one.replace("M", "N"), 0.0) for one in sequences]

    def guided(n: int) -> list[str]:
        oracle = Oracle(lambda some: rate([one[1:3] for one in some]), "table")
        guiding = Guiding("exact", 1.0, oracle, options={"drawn": 1.0})
        drafts = [DNA.encode("ANNA").astype(np.uint8) for _ in range(n)]
        for draft in drafts:
            draft[1:3] = DNA.mask_id
        how = Sampling(sampler="first-hitting", steps=None, stride=1, batch_size=512)
        return [DNA.decode(s.ids)[1:3] for s in infill(tiny, drafts, how=how, guiding=guiding)]

    n = 1500
    count = Counter(guided(n))

    def share(first: str) -> dict[str, float]:
        weight = {x: np.exp(rate([first + x if first else x + "N"])[0]) for x in "ACGT"}
        return {x: w / sum(weight.values()) for x, w in weight.items()}

    chi = 0.0
    for a, pa in share("").items():
        for b, pb in share(a).items():
            chi += (count[a + b] - n * pa * pb) ** 2 / (n * pa * pb)
    assert chi < 37.7  # 1e-3 of 15 degrees of freedom


def test_a_changed_oracle_is_another_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for text in ("n = 1", "n = 1", "n = 22"):
        monkeypatch.delitem(sys.modules, "rates_of_test", raising=False)
        rate = f"{text}\ndef rate(s):\n    return [n] * len(s)\n"
        (tmp_path / "rates_of_test.py").write_text(rate)
        found.append(load_oracle("rates_of_test:rate").digest)
    assert found[0] == found[1] != found[2]
    assert Guiding("smc", 1.0, Oracle(count_c, "c", digest="x")).describe()["oracle_sha256"] == "x"
    assert hash_callable(count_c) == hash_callable(count_c) != hash_callable(fill)
    assert hash_callable(partial(count_c, n=1)) != hash_callable(partial(count_c, n=2))
    assert hash_callable(count_c) != hash_callable(partial(count_c, n=2))
    assert hash_callable(len) == hash_callable(len)
    assert hash_callable(partial(fill, object())) == hash_callable(partial(fill, object()))

    def make(motif: str) -> Callable[[list[str]], list[int]]:
        return lambda some: [one.count(motif) for one in some]

    assert hash_callable(make("TATA")) == hash_callable(make("TATA")) != hash_callable(make("C"))
    assert hash_callable(nn.Linear(2, 1).bfloat16())
    net = nn.Linear(2, 1)
    before = hash_callable(net)
    assert before == hash_callable(net)
    with torch.no_grad():
        net.weight.add_(1)
    assert hash_callable(net) != before


def test_python_designs_by_an_oracle(models):
    model, text = models[0], "ACGT" + "N" * 12 + "ACGT"
    how = {"rules": {"avoid": ["CC"]}, "steps": 3}
    guide = {"guidance": "best-of-n", "options": {"particles": 8.0}}
    plain = model.redesign(text, 3, **how)
    found = model.redesign(text, 3, oracle=count_c, guide=guide, **how)
    assert sum(count_c(found)) > sum(count_c(plain))
    assert not any("CC" in one or "GG" in one for one in found)
    assert model.redesign(text, 3, oracle=count_c, guide={"strength": 0}, **how) == plain
    with pytest.raises(UsageError, match="guidance too"):
        model.redesign(text, oracle_flank=3)
    with pytest.raises(UsageError, match="no setting 'strenght'"):
        model.redesign(text, oracle=count_c, guide={"strenght": 2})
