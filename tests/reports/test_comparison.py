"""Generated beside real DNA of the run, held out and never fetched: words up to strand, the
sentence, and rows from whoever can judge.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import CONFIG, make_run

from genodiff.alphabet import DNA, reverse_complement
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import load_recipe
from genodiff.data.toy import ToySource
from genodiff.reports import html
from genodiff.reports.comparison import canonical_words, compare_sequences
from genodiff.reports.folder import read_folder
from genodiff.reports.html import measure_source_bits, open_reference


def sets(n: int, length: int, gc: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    p = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    return [np.array(DNA.targets, np.uint8)[rng.choice(4, length, p=p)] for _ in range(n)]


@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 10), (3, 32), (4, 136)])
def test_canonical_words_hold_every_word_once_with_its_reverse_complement(k, n):
    words, places = canonical_words(k)
    letters = ["".join(p) for p in product("ACGT", repeat=k)]
    assert len(words) == n
    assert sorted(p for group in places for p in group) == list(range(4**k))
    for word, group in zip(words, places, strict=True):
        assert {letters[p] for p in group} == {word, str(reverse_complement(word))}


def test_the_spectra_are_distributions_over_the_canonical_words():
    found = compare_sequences(sets(4, 500, 0.5, 1), sets(6, 500, 0.4, 2), sets(4, 500, 0.3, 3))
    assert [s.role for s in found.spectra] == ["real", "markov", "samples"]
    for s in found.spectra:
        assert sum(s.values) == pytest.approx(1)
    gc_rich = found.words.index("CCC")
    real, markov, samples = (s.values[gc_rich] for s in found.spectra)
    assert markov < real < samples


def test_the_sentence_gives_the_samples_the_floor_and_the_baseline():
    samples, real, markov = sets(4, 500, 0.5, 1), sets(6, 500, 0.4, 2), sets(4, 500, 0.3, 3)
    found = compare_sequences(samples, real, markov, markov_name="Markov 5")
    card = found.card
    for value in (card.js_samples[-1], card.js_floor[-1], card.js_markov[-1]):
        assert f"{value:.3f}" in found.sentence
    assert "4 samples, 2,000 bases" in found.sentence
    assert "Markov" not in compare_sequences(samples, real).sentence


def test_the_source_and_the_search_for_copies_judge_each_set():
    some = (sets(n, 300, 0.5, n) for n in (3, 6, 2))
    found = compare_sequences(*some, source_bits=len, copied=lambda s: len(s) / 100)
    assert dict(found.extra) == {
        "bits per base by the source": ["3.000", "2.000", "6.000"],
        "bases in 24‑mers of train": ["3.0%", "2.0%", "6.0%"],
    }


def write(folder: Path, **changed: str) -> str:
    """The report of a run of which some parts are others."""
    return html.write_report(make_run(folder / "run", **changed)).read_text(encoding="utf-8")


def test_a_toy_run_is_compared_with_held_out_toy_sequence_and_judged_by_its_source(tmp_path):
    folder = read_folder(make_run(tmp_path / "run"))
    found, note = open_reference(folder)
    assert note == ""
    comparison = found.comparison(folder)
    assert comparison.markov_name == "Markov 7", "the order that scored best in eval.json"
    assert comparison.card.samples.n == 6
    assert set(comparison.card.real.lengths) == {300}
    rows = dict(comparison.extra)
    samples, markov, real = (float(x) for x in rows["bits per base by the source"])
    assert real < markov < samples, (
        "random letters are the least like the source, its own text the most"
    )
    assert [split for split, _ in found.windows()] == ["train", "valid", "test"]
    assert "256 windows of 256 bases" in dict(found.windows())["test"]


def test_the_comparison_is_the_same_every_time(tmp_path):
    folder = read_folder(make_run(tmp_path / "run"))
    first, second = (open_reference(folder)[0] for _ in range(2))
    assert first.comparison(folder) == second.comparison(folder)


def test_the_report_of_a_toy_run_carries_the_comparison_and_the_windows(tmp_path):
    text = write(tmp_path)
    for said in ("bits per base by the source", "Markov 7", "256 windows of 256 bases"):
        assert said in text, said
    assert "other real sequence (floor)" in text


def test_data_that_is_not_here_is_told_and_never_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "socket.socket.connect", lambda *_: pytest.fail("the report touched the network")
    )
    text = write(tmp_path, config_yaml=CONFIG.replace("recipe: toy", "recipe: sacCer3"))
    assert "The samples are not compared with real sequence, which is not available" in text
    assert "--fasta" in text


def test_a_file_that_is_gone_is_told(tmp_path):
    gone = CONFIG.replace("recipe: toy", f"recipe: own\nfasta: {tmp_path}/gone.fa")
    text = write(tmp_path, config_yaml=gone)
    assert "which is not available" in text
    assert "gone.fa" in text


def test_samples_longer_than_any_held_out_interval_still_have_their_page(tmp_path):
    long = ">a\n" + "ACGT" * 17_000 + "\n>b\n" + "AACC" * 17_000 + "\n"
    assert "68,000" in write(tmp_path, samples_fa=long)


def test_copies_of_the_train_split_are_found_on_either_strand(tmp_path):
    store = build_dna_store(load_recipe("toy"), None, offline=True)
    genome = "".join(
        f">{c}\n{DNA.decode(np.asarray(store.ids(c))[:20_000])}\n" for c in ("toy1", "toy2")
    )
    (tmp_path / "own.fa").write_text(genome)
    copy = reverse_complement(DNA.decode(np.asarray(store.ids("toy1"))[1000:1300]))
    other = DNA.decode(np.random.default_rng(1).choice(np.array(DNA.targets, np.uint8), 300))
    config = CONFIG.replace("recipe: toy", f"recipe: own\nfasta: {tmp_path}/own.fa")
    folder = read_folder(
        make_run(tmp_path / "run", config_yaml=config, samples_fa=f">a\n{copy}\n>b\n{other}\n")
    )
    found, _ = open_reference(folder)
    comparison = found.comparison(folder)
    assert dict(comparison.extra)["bases in 24‑mers of train"][0] == "50.0%"
    assert "bits per base by the source" not in dict(comparison.extra)


def test_sets_of_unequal_lengths_are_scored_base_by_base():
    toy = ToySource()
    parts = [toy.sample(200, 5, 0), toy.sample(50, 5, 1)]
    nats = sum(float(toy.log_likelihood(p)) for p in parts)
    assert measure_source_bits(parts) == pytest.approx(-nats / 250 / np.log(2))
