"""Templates keep what they keep; windows cover every gap once, with context on both sides where
there is any.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import genodiff
from genodiff.alphabet import DNA
from genodiff.errors import DataError, UsageError
from genodiff.generate.infill import Template, plan_rounds, read_templates

gap_maps = st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=12).map(
    lambda runs: np.array([gap for gap, n in runs for _ in range(n)], bool)
)


@given(gap_maps, st.integers(1, 20), st.data())
def test_every_gap_is_filled_once_in_a_window_that_fits_the_text(gaps, window, data):
    stride = data.draw(st.integers(1, window))
    still_open = gaps.copy()
    for start, end in plan_rounds(gaps, window, stride):
        assert 0 <= start < end <= len(gaps)
        assert end - start <= window
        assert still_open[start:end].any(), "a round without work"
        assert not still_open[:start].any(), "a gap was passed over"
        still_open[start:end] = False
    assert not still_open.any()


@given(gap_maps, st.integers(1, 20), st.data())
def test_a_window_is_as_long_as_it_may_be_and_looks_left_by_what_the_stride_leaves(
    gaps, window, data
):
    stride = data.draw(st.integers(1, window))
    still_open = gaps.copy()
    for start, end in plan_rounds(gaps, window, stride):
        opens = np.flatnonzero(still_open[start:end])
        cut_by_a_gap = end < len(gaps) and still_open[end]
        assert end - start == window or (start == 0 and (end == len(gaps) or cut_by_a_gap))
        left = min(start + opens[0], window - stride)
        assert opens[-1] + 1 - opens[0] <= window - left
        still_open[start:end] = False


@pytest.mark.parametrize(
    ("length", "window", "stride"), [(4096, 1024, 512), (1000, 256, 100), (257, 256, 1), (12, 4, 4)]
)
def test_a_text_that_is_all_gap_is_filled_semi_autoregressively(length, window, stride):
    plan = plan_rounds(np.ones(length, bool), window, stride)
    expected = [(0, window)]
    while expected[-1][1] < length:
        end = min(expected[-1][1] + stride, length)
        expected.append((end - window, end))
    assert plan == expected


@pytest.mark.parametrize(
    ("length", "gaps", "window", "stride", "plan"),
    [
        (10, [], 4, 2, []),
        (0, [], 4, 2, []),
        (10, range(10), 16, 3, [(0, 10)]),
        (16, [0, 7, 15], 16, 3, [(0, 16)]),
        (1000, range(500, 510), 100, 50, [(455, 555)]),  # it stands in the middle
        # Gaps that fit one stride share a window, and one that does not is left whole.
        (1000, [500, 520, *range(545, 555)], 100, 50, [(445, 545), (500, 600)]),
    ],
)
def test_windows_of_some_texts(length, gaps, window, stride, plan):
    assert plan_rounds(np.isin(np.arange(length), list(gaps)), window, stride) == plan


def test_kept_letters_survive_with_case_and_codes_and_an_n_is_filled_in_its_own_case():
    template = Template("t", "", b"acGTNNrYn?mK")
    ids = template.ids(DNA)
    assert np.flatnonzero(ids == DNA.mask_id).tolist() == [4, 5, 8, 9]
    assert DNA.decode(ids[[0, 1, 2, 3, 6, 7, 10, 11]]) == "ACGTNNNN"
    ids[ids == DNA.mask_id] = DNA.encode("TTCA")
    assert template.filled(ids, DNA) == b"acGTTTrYcAmK"


@given(st.text("ACGTNacgtnRYSWKMBDHVryswkmbdhv?", max_size=80), st.randoms(use_true_random=False))
def test_filling_changes_gaps_and_nothing_else(text, rng):
    template = Template("t", "", text.encode())
    ids = template.ids(DNA)
    gaps = ids == DNA.mask_id
    ids[gaps] = [rng.choice(DNA.targets) for _ in range(int(gaps.sum()))]
    done = template.filled(ids, DNA).decode()
    assert len(done) == len(text)
    for before, after in zip(text, done, strict=True):
        if before in "Nn?":
            assert after in ("acgt" if before == "n" else "ACGT")
        else:
            assert after == before


def test_templates_are_read_strictly_but_may_hold_question_marks(tmp_path):
    (tmp_path / "good.fa").write_text(">one first of two\nAC??\nNNgt\n>two\nACGT\n")
    found = list(read_templates(tmp_path / "good.fa"))
    assert [(t.name, t.text) for t in found] == [("one", b"AC??NNgt"), ("two", b"ACGT")]
    (tmp_path / "bad.fa").write_text(">one\nAC!T\n")
    with pytest.raises(DataError, match="one"):
        list(read_templates(tmp_path / "bad.fa"))


@pytest.mark.parametrize(("model", "size", "its_own"), [
    ("run", 1 << 17, True), ("run", 1 << 12, False), ("none", 1 << 12, True),
])  # fmt: skip
def test_relatives_are_fitted_to_a_template_that_is_a_genome(
    run, tmp_path, monkeypatch, caplog, model, size, its_own
):
    """Not to the genome that the model was trained on, unless the template is a short piece."""
    fitted: list[object] = []

    def relate(opened, relatives, *, fasta, **_):
        fitted.append(fasta)
        raise UsageError("enough")

    monkeypatch.setattr("genodiff.generate.sample_job.relate_model", relate)
    letters = "".join(np.random.default_rng(1).choice(list("ACGT"), size))
    template = tmp_path / "t.fa"
    template.write_text(f">t\n{letters[:60]}{'N' * 20}{letters}\n")
    name = run if model == "run" else model
    with pytest.raises(UsageError, match="enough"):
        genodiff.sample(name, template=template, relatives=["r.fa"], out=tmp_path / "o.fa")
    assert fitted == [template if its_own else None]
    assert ("is short" in caplog.text) == (not its_own)
