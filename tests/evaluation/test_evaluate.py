"""`evaluate`, from a run folder to the object of eval.json: what it counts, and beside what.

Evaluations stand side by side: nothing fuller is replaced, each stands under what it was of.
"""

import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import SEQ_LEN, genome_text, write_run
from worlds import dna_like

import genodiff
from genodiff.alphabet import DNA, SOFT, encode_bases
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.recipe import make_user_recipe
from genodiff.data.store import split_stretches
from genodiff.data.toy import ToySource
from genodiff.errors import DataError, MachineError
from genodiff.evaluation import lines
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import EVAL, join_evaluation, write_evaluation
from genodiff.evaluation.lines import (
    count_train_words,
    markov_lines,
    markov_nats,
    measure_train_cover,
    source_nats,
)
from genodiff.evaluation.markov import count, fit
from genodiff.evaluation.request import EvalOptions
from genodiff.runs.model import load_model

CONTRACT = (
    "split tokens nelbo_nats bits_per_base perplexity ci95_bits markov_perplexity source_bits"
)


@pytest.fixture(scope="module")
def plain(run):
    """The evaluation of the test split, with nothing asked for."""
    return evaluate(load_model(run))


def test_the_object_is_strict_json_with_the_keys_that_were_promised(model, plain):
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert set(plain) >= set(CONTRACT.split())
    assert plain["checkpoint"] == model.digest
    assert set(plain["markov_perplexity"]) == {str(k) for k in range(9)}
    assert plain["source_bits"] is None
    assert set(plain["regions"]) == {"unique", "repeat", "upper_case", "soft_masked"}
    assert list(plain["contigs"]) == ["c1", "c2", "c3", "c4"]


def test_only_bases_of_the_split_count_and_all_of_them_that_fill_windows(model, plain):
    windows = open_data(model).windows
    spans = zip(windows.flat_start, windows.length, strict=True)
    ids = np.concatenate([windows.store.flat[s : s + n] for s, n in spans])
    assert plain["tokens"] == np.isin(ids & 0x7F, DNA.targets).sum() < len(ids)
    soft = (ids >= SOFT) & np.isin(ids & 0x7F, DNA.targets)
    assert plain["regions"]["soft_masked"]["tokens"] == soft.sum() > 0
    assert evaluate(model, soft_masked=False)["tokens"] == plain["tokens"] - soft.sum()


def test_the_figures_do_not_depend_on_the_batch_size_and_do_on_the_seed(model):
    how = ((64, 1), (3, 1), (64, 2))
    one, other, again = (evaluate(model, batch_size=b, seed=s) for b, s in how)
    assert one["bits_per_base"] == pytest.approx(other["bits_per_base"], rel=1e-6)
    assert one["ci95_bits"] == pytest.approx(other["ci95_bits"], rel=1e-5)
    assert one["bits_per_base"] != pytest.approx(again["bits_per_base"], rel=1e-4)
    assert one["markov_bits"] == other["markov_bits"] == again["markov_bits"]


def test_the_averaged_weights_in_double_precision_give_the_same_bound(model, plain):
    exact = model._replace(network=model.backbone.double())
    doubled = evaluate(exact, baselines=False)["bits_per_base"]
    assert plain["bits_per_base"] == pytest.approx(doubled, rel=1e-5)


def test_fewer_windows_are_spread_over_the_split_and_said(model):
    result = evaluate(model, max_windows=4)
    assert (result["windows"], result["windows_total"]) == (4, len(open_data(model).windows))
    assert len(result["contigs"]) == 3
    timed = evaluate(model, max_minutes=1e-6)
    assert timed["windows"] == 1
    assert timed["ci95_bits"] is None


def test_a_copy_of_train_sequence_is_a_repeat(model, plain):
    windows = open_data(model).windows
    cover = measure_train_cover(windows)
    assert plain["repeat_share"] == (cover >= 0.25).mean() > 0
    on_c1 = windows.store.names.index("c1")
    assert (windows.contig_index[cover > 0] == on_c1).all()
    # The copied bases, and matches beyond its ends by chance
    assert 100 <= (cover * windows.length).sum() <= 108


def test_without_baselines_the_train_split_is_left_alone(model, plain):
    result = evaluate(model, baselines=False)
    assert result["markov_bits"] == result["markov_minus_model_bits"] == {}
    assert result["repeat_share"] is None
    assert result["bits_per_base"] == plain["bits_per_base"]


def test_a_split_that_is_all_soft_masked_cannot_be_scored_without_it(model, tmp_path):
    bed = tmp_path / "splits.bed"
    bed.write_text("c1\t1000\t3000\ttrain\nc1\t200\t700\ttest\n")
    assert evaluate(model, bed=str(bed))["tokens"] == 500 // SEQ_LEN * SEQ_LEN
    with pytest.raises(DataError, match="soft-masked"):
        evaluate(model, bed=str(bed), soft_masked=False)


@pytest.mark.slow
def test_results_of_several_splits_and_foreign_data_stand_side_by_side(model, plain, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "provenance.json").write_text((model.run / "provenance.json").read_text())
    other = tmp_path / "other.fa"
    rng = np.random.default_rng(3)
    other.write_text(">x\n" + "".join("ACGT"[i] for i in rng.integers(0, 4, 4000)) + "\n")
    for result in (plain, evaluate(model, "valid"), evaluate(model, fasta=str(other))):
        write_evaluation(run, result)
    kept = json.loads((run / EVAL).read_text())
    assert set(kept) == {"test", "valid", "test of other.fa"}
    assert kept["valid"]["split"] == "valid"
    assert kept["test"]["fasta"] == model.config.fasta
    (run / EVAL).write_text("{broken")
    assert write_evaluation(run, kept["test"]) == "test"
    assert set(json.loads((run / EVAL).read_text())) == {"test"}


@pytest.mark.parametrize("bed", [None, "c1\t0\t6000\ttrain\nc2\t0\t640\ttest\nc4\t5\t133\ttest\n"])
def test_markov_lines_are_of_the_train_split_with_context_over_window_starts(model, tmp_path, bed):
    splits = tmp_path / "splits.bed"
    splits.write_text(bed or "")
    windows = open_data(model, EvalOptions(bed=str(splits) if bed else None)).windows
    assert bed is None or windows.start[0] == 0
    store = windows.store
    line = fit(count([np.array(s[:]) for s in split_stretches(store, "train")], 3))
    found = markov_nats(line, windows)
    for w in range(len(windows)):
        contig = store.ids(store.names[windows.contig_index[w]])
        start, end = int(windows.start[w]), int(windows.start[w] + windows.length[w])
        nll = line.nll(encode_bases(np.asarray(contig[:end])))[:, start:]
        soft = np.asarray(contig[start:end]) >= SOFT
        np.testing.assert_allclose(found[:, 0, w], nll[:, ~soft].sum(1), rtol=1e-5)
        np.testing.assert_allclose(found[:, 1, w], nll[:, soft].sum(1), rtol=1e-5, atol=1e-6)


def test_counts_of_the_train_split_are_kept_and_a_damaged_file_is_made_again(model, own_cache):
    store = open_data(model).store
    before = set((own_cache / "markov").glob("*"))
    first = count_train_words(store, 2)
    (kept,) = set((own_cache / "markov").glob("*")) - before
    again = count_train_words(store, 2)
    kept.write_bytes(b"damaged")
    mended = count_train_words(store, 2)
    for a, b, c in zip(first.tables, again.tables, mended.tables, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    train = split_stretches(store, "train")
    assert first.bases == 2 * sum(int((np.asarray(part[:]) < 4).sum()) for part in train)


def test_on_the_toy_the_truth_stands_beside_the_bound_which_is_not_below_it(model):
    class Knows(torch.nn.Module):
        """A network that has the Markov law of another world: no law but the source's own can be
        better than it.
        """

        recalls = False

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, xt: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
            return dna_like(xt.shape[1]).denoiser(xt, sigma)

    config = model.config.model_copy(update={"recipe": "toy", "fasta": None})
    toy: Any = model._replace(config=config, network=Knows())
    result = evaluate(toy, max_windows=40)
    windows = open_data(toy).windows.spread(40)
    rows = [windows.store.flat[s : s + SEQ_LEN] for s in windows.flat_start]
    assert result["source_bits"] == pytest.approx(ToySource().bits_per_base(np.stack(rows)))
    np.testing.assert_allclose(
        source_nats(ToySource(), windows), -ToySource().log_likelihood(np.stack(rows)), rtol=1e-9
    )
    assert result["bits_per_base"] > result["source_bits"]
    low, high = result["model_minus_source_bits"]["ci95"]
    assert 0 < low < result["bits_per_base"] - result["source_bits"] < high
    assert result["markov_bits"]["0"] == pytest.approx(2, abs=0.05)
    assert result["repeat_share"] is None


@pytest.mark.slow
def test_what_the_mixture_is_worth_depends_on_bases_and_not_on_n(tmp_path, monkeypatch):
    fasta = tmp_path / "pieces.fa"
    fasta.write_text(f">c0\n{'N' * 400_000}\n" + genome_text())
    recipe = make_user_recipe(fasta)
    windows = DnaWindows(build_dna_store(recipe, fasta), recipe, "test", SEQ_LEN)
    assert windows.store.splits.intervals["train"].n_bases > 300_000
    monkeypatch.setattr(lines, "_MIXTURE_WORTH", 40_000)  # there are 14,301 bases, read twice
    assert markov_lines(windows).adaptive is not None
    monkeypatch.setattr(lines, "_MIXTURE_WORTH", 10_000)
    assert markov_lines(windows).adaptive is None


def test_without_a_valid_split_there_is_no_fitted_line_and_the_others_stand(model, tmp_path):
    bed = tmp_path / "splits.bed"
    bed.write_text("c1\t0\t3000\ttrain\nc2\t0\t2000\ttest\n")
    result = evaluate(model, bed=str(bed))
    assert result["markov_fitted"] is None
    assert set(result["markov_bits"]) == {str(k) for k in range(9)}
    assert result["regions"]["unique"]["fitted_bits"] is None


def test_figures_of_a_read_only_run_are_shown_and_kept_elsewhere(tmp_path, monkeypatch, caplog):
    own = write_run(tmp_path)
    given: dict[str, Any] = {"max_windows": 2, "baselines": False, "device": "cpu"}
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != own)
    with caplog.at_level(logging.WARNING, "genodiff"):
        shown = genodiff.evaluate(own, **given)
    said = "eval.json: cannot be written: permission denied; the figures are not saved"
    assert said in caplog.text
    assert not (own / EVAL).exists()
    kept = genodiff.evaluate(own, out=tmp_path / "mine.json", **given)
    assert kept["nelbo_nats"] == shown["nelbo_nats"]
    held = json.loads((tmp_path / "mine.json").read_text())
    assert [one["nelbo_nats"] for one in held.values()] == [shown["nelbo_nats"]]
    with pytest.raises(MachineError, match=r"permission denied; give --out FILE\.html"):
        genodiff.report(own)


OWN, OTHER = "a" * 64, "b" * 64
WEIGHTS = "0123456789ab" + "c" * 52


def one(**changes: Any) -> dict[str, Any]:
    """A whole evaluation of the run's own test split."""
    return {
        "split": "test", "seed": 1, "repeats": 1, "checkpoint": WEIGHTS[:12], "step": 9,
        "recipe": "own", "fasta": "/data/mine.fa", "fingerprint": OWN, "seq_len": 64,
        "context": "window", "windows": 765, "windows_total": 765, "soft_masked": 1,
        "bits_per_base": 1.941, "markov_bits": {"0": 1.97}, "adaptive_mixture": None,
        "created": "2026-11-22T10:00:00Z",
    } | changes  # fmt: skip


LOOK = {"windows": 20, "markov_bits": {}, "bits_per_base": 1.930, "created": "2026-11-22T11:00:00Z"}


def joined(*results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    for result in results:
        kept = join_evaluation(kept, result, OWN, WEIGHTS)
    return kept


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_quick_look_stands_beside_the_whole_evaluation_whichever_came_first(order):
    two = (one(), one(**LOOK))
    kept = joined(*(two[i] for i in order))
    assert kept == {"test": two[0], "test, 20 of 765 windows, no baselines": two[1]}


def test_the_same_evaluation_again_replaces_itself():
    newer = one(created="2026-11-23T00:00:00Z", seconds=3)
    kept = {"test": newer, "test, 20 of 765 windows, no baselines": one(**LOOK)}
    assert joined(one(), one(**LOOK), newer) == kept


def test_more_masks_baselines_and_soft_masked_bases_are_fuller():
    results = one(), one(repeats=4), one(markov_bits={}), one(soft_masked=0, repeats=8)
    lacking = ("", ", no baselines", ", 8 masks each, without soft-masked bases")
    names = {"test", *(f"test, 765 of 765 windows{what}" for what in lacking)}
    assert set(joined(*results)) == names
    assert joined(*results)["test"]["repeats"] == 4


def test_other_data_have_names_of_their_own_even_where_their_files_are_called_alike():
    x, y = (
        one(fingerprint=f * 64, fasta=f"/{f}/other.fa", created=f"2026-11-2{i}T00:00:00Z")
        for i, f in enumerate("de")
    )
    kept = joined(one(), x, y, one(split="valid"), one(context="contig"))
    assert set(kept) == {
        "test", "test of other.fa", "test of other.fa (eeeeeeee)", "valid",
        "test in whole contigs",
    }  # fmt: skip
    assert kept["test of other.fa"] is x
    assert "test of other.fa (mine.bed)" in joined(x | {"bed": "/d/mine.bed"})


def test_a_look_at_new_weights_does_not_lose_what_older_ones_had():
    old = one(checkpoint="f" * 12, step=5)
    kept = joined(old, one(**LOOK))
    assert kept["test"]["checkpoint"] == WEIGHTS[:12]
    assert kept["test, step 5, 765 of 765 windows"] == old


def test_files_of_older_versions_are_read_and_what_is_no_evaluation_is_left_alone(tmp_path):
    (tmp_path / EVAL).write_text(json.dumps({"test": one(), "mine": {"note": 1}, "valid": 3}))
    (tmp_path / "provenance.json").write_text(json.dumps({"data": {"fingerprint": OWN}}))
    assert write_evaluation(tmp_path, one(**LOOK)) == "test, 20 of 765 windows, no baselines"
    assert list(json.loads((tmp_path / EVAL).read_text())) == [
        "test", "test, 20 of 765 windows, no baselines", "mine", "valid",
    ]  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == [EVAL, "provenance.json"]


def test_no_two_evaluations_share_a_name():
    results = [
        one(seed=s, windows=w, repeats=r, checkpoint=c * 12, fingerprint=f * 64)
        for s in (1, 2) for w in (5, 765) for r in (1, 2) for c in "xy" for f in "ab"
    ]  # fmt: skip
    assert len(joined(*results)) == len(results) == 32
