"""Texts longer than the trained window, and templates: what is kept and what each window sees."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from markov_world import BASES, MASK, codes, distance, draft, drawn, model, sticky
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.counter import Purpose, uniforms
from genodiff.data.tokenizer import ByteTokenizer
from genodiff.diffusion.sampler import SAMPLERS, Sampled, SamplerOptions
from genodiff.errors import DataError, UsageError
from genodiff.generate.dna_drawing import DnaDrawing
from genodiff.generate.infill import Template
from genodiff.generate.sample import Sampling, infill, sample
from genodiff.generate.text_drawing import (
    TextTemplate,
    fill_text,
    make_draft,
    make_prompt_template,
    read_template,
)


def replace_sampler(monkeypatch: pytest.MonkeyPatch, draw: Any) -> None:
    """`draw` in place of the ancestral sampler."""
    other = replace(SAMPLERS["ancestral"], draw=draw)
    monkeypatch.setitem(SAMPLERS._pieces, "ancestral", other)


@pytest.mark.parametrize(
    ("length", "window", "stride"), [(40, 16, 8), (41, 16, 5), (17, 16, 8), (33, 16, 1)]
)
def test_beyond_the_trained_length_each_window_starts_with_the_last_known_bases(
    length, window, stride, monkeypatch
):
    shown: list[np.ndarray] = []
    plain = SAMPLERS["ancestral"].draw

    def spy(diffusion: Any, denoiser: Any, xt: Tensor, options: SamplerOptions) -> Any:
        shown.append(xt[0].numpy().copy())
        return plain(diffusion, denoiser, xt, options)

    replace_sampler(monkeypatch, spy)
    (one,) = sample(model(sticky(0.6), window), 1, length, seed=6, steps=5, stride=stride)
    assert len(one.ids) == length
    assert np.isin(one.ids, BASES).all()
    known = 0
    for row in shown:
        end = known + stride if known else window
        end = min(end, length)
        assert np.array_equal(row, np.r_[one.ids[end - window : known], np.full(end - known, MASK)])
        known = end
    assert known == length


def test_half_the_window_is_the_stride_unless_told_otherwise():
    chain, how = sticky(0.6), {"seed": 7, "steps": 6}
    usual = drawn(sample(model(chain, 12), 3, 40, **how))
    assert np.array_equal(usual, drawn(sample(model(chain, 12), 3, 40, stride=6, **how)))
    assert not np.array_equal(usual, drawn(sample(model(chain, 12), 3, 40, stride=12, **how)))


def test_a_stride_of_the_whole_window_is_plain_sampling_of_each_window():
    chain, how = sticky(0.6), {"seed": 7, "steps": 6}
    plain = drawn(sample(model(chain, 24), 3, 24, **how))
    assert np.array_equal(drawn(sample(model(chain, 24), 3, 24, stride=24, **how)), plain)
    joined = drawn(sample(model(chain, 12), 3, 36, stride=12, **how))
    for i, w in itertools.product(range(3), range(3)):
        at = slice(12 * w, 12 * w + 12)
        u_order, u_token = (
            torch.tensor(uniforms(7, p, i, 36)[None, at])
            for p in (Purpose.SAMPLE_ORDER, Purpose.SAMPLE_TOKEN)
        )
        options = SamplerOptions(u_order, u_token, steps=6)
        process, xt = model(chain, 12).diffusion, torch.full((1, 12), MASK)
        alone = SAMPLERS["ancestral"].draw(process, chain, xt, options)
        assert np.array_equal(joined[i, at], alone.x0[0].numpy())


def test_the_law_of_a_long_text_holds_across_the_joints_of_its_windows():
    chain = sticky(0.8)
    apart, window = model(chain, 8), 8
    how = {"seed": 8, "sampler": "first-hitting", "batch_size": 1500}
    long = drawn(sample(apart, 1500, 20, stride=4, **how))
    cut = drawn(sample(apart, 1500, 16, stride=8, **how))
    law = np.outer(np.full(4, 0.25), np.ones(4)) * chain.exact[0][1, :4].numpy()
    for joint in (window, window + 4, 16):
        assert abs(distance(codes(long[:, joint - 1 : joint + 1]), law)) < 4
    assert distance(codes(cut[:, 7:9]), law) > 10, "windows apart know nothing"


def test_a_gap_in_a_long_template_is_filled_from_both_sides():
    chain = sticky(0.8)
    start = draft("A" * 30 + "N" + "C" * 30 + "NN" + "G" * 30)
    how = Sampling(sampler="first-hitting", batch_size=500)
    ids = drawn(infill(model(chain, 16), [start] * 3000, how=how))
    p = chain.exact[0].numpy()
    between = p[1, 0] * p[1, :4, 1]
    assert abs(distance(ids[:, 30] - BASES[0], between / between.sum())) < 4
    pair = p[1, 1][:, None] * p[1, :4, :4] * p[1, :4, 2]
    assert abs(distance(codes(ids[:, 61:63]), pair / pair.sum())) < 4


@given(
    st.lists(st.text("ACGTNacgtnRYm?", max_size=50), min_size=1, max_size=9),
    st.integers(1, 8),
    st.integers(1, 6),
)
@settings(max_examples=25, deadline=None)
def test_templates_of_any_length_keep_every_kept_base_and_are_each_alone(texts, stride, batch_size):
    templates = [Template(str(i), "", text.encode()) for i, text in enumerate(texts)]
    drafts = [template.ids(DNA) for template in templates]
    how, of = Sampling(steps=4, stride=stride, batch_size=batch_size), model(sticky(0.6), 8)
    found = list(infill(of, drafts, how=how))
    assert [s.number for s in found] == list(range(len(texts)))
    for template, one in zip(templates, found, strict=True):
        done = template.filled(one.ids, DNA)
        before, after = np.frombuffer(template.text, np.uint8), np.frombuffer(done, np.uint8)
        assert np.array_equal(before[~template.gaps], after[~template.gaps])
        assert set(bytes(after[template.gaps]).upper()) <= set(b"ACGT")
        assert one.nfe <= template.gaps.sum()
    for one, other in zip(infill(of, drafts, how=replace(how, batch_size=1)), found, strict=True):
        assert (one.ids.tolist(), one.nfe) == (other.ids.tolist(), other.nfe)


def test_kept_bases_survive_even_a_sampler_that_would_change_them(monkeypatch):
    def reckless(diffusion: Any, denoiser: Any, xt: Tensor, options: object) -> Sampled:
        return Sampled(torch.full_like(xt, DNA.targets[0]), torch.ones(len(xt), dtype=torch.int64))

    replace_sampler(monkeypatch, reckless)
    (one,) = infill(model(sticky(0.6), 8), [draft("CCNGRT")])
    assert DNA.decode(one.ids) == "CCAGNT"


def test_a_template_without_gaps_costs_no_evaluation_and_all_gap_is_plain_sampling():
    chain = sticky(0.7)
    full = draft("ACGTRYacgt")
    (kept,) = infill(model(chain, 8), [full])
    assert (kept.nfe, chain.rows) == (0, 0)
    assert np.array_equal(kept.ids, full)
    gaps = drawn(infill(model(chain, 8), [draft("N" * 20)] * 4, how=Sampling(steps=6), seed=2))
    assert np.array_equal(gaps, drawn(sample(model(chain, 8), 4, 20, steps=6, seed=2)))


def test_beyond_the_trained_length_a_window_takes_fewer_steps_unless_told_otherwise():
    def steps(length: int, **how: Any) -> Any:
        return DnaDrawing(model(sticky(0.6), 16), Sampling(**how), 1, length=length).how.steps

    assert (steps(16), steps(17), steps(17, steps=256)) == ("auto", 32, 256)
    assert steps(17, sampler="first-hitting") == "auto"
    template = Template("a", "", b"ACGTN" * 8)
    drawing = DnaDrawing(model(sticky(0.6), 16), Sampling(), 1, templates=[template])
    assert drawing.how.steps == "auto"


def test_templates_keep_text_and_gaps_in_order(tmp_path):
    tokenizer = ByteTokenizer()
    (tmp_path / "t.txt").write_text("a[[3]]bc[[x]][[2]]")
    template = read_template(str(tmp_path / "t.txt"))
    assert template.parts == ("a", 3, "bc[[x]]", 2)
    assert template.gaps == 5
    made = make_draft(template, tokenizer, start=False)
    ids = made.ids.copy()
    assert (ids == 257).sum() == 5
    ids[ids == 257] = [*b"xy", 256, 0xFF, *b"z"]
    done = fill_text(template, made, ids, tokenizer)
    assert done.text.decode() == "axy\n<|endoftext|>\nbc[[x]]�z"
    assert done.invalid == 1
    gap = TextTemplate((5,))
    made = make_draft(gap, tokenizer, False)
    assert fill_text(gap, made, ids[:5], tokenizer, whole=True).text == b"axy"
    assert make_prompt_template("abc", 10, tokenizer).parts == ("abc", 7)
    with pytest.raises(UsageError, match="the prompt has 3 tokens"):
        make_prompt_template("abc", 3, tokenizer)
    (tmp_path / "big.txt").write_text("[[99999999999999]]")
    with pytest.raises(DataError, match="is not between 1 and"):
        read_template(str(tmp_path / "big.txt"))
    assert np.array_equal(make_draft(TextTemplate(("ab",)), tokenizer, True).ids, [97, 98])
