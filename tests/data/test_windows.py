"""Windows: against a brute force that walks base by base, and the user's genomes that hold none."""

import numpy as np
import pytest
from genomes import covered, random_dna, recipe_of, store_of, windows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.data.dna_store import N_ID, find_runs_of_n, join_runs
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.recipe import SPLITS, SplitRule
from genodiff.data.windows import PHASES, find_dropped_windows
from genodiff.errors import DataError, UsageError


@st.composite
def tilings(draw: st.DrawFn) -> tuple:
    genome = np.array(
        draw(st.lists(st.sampled_from([7, 7, 8, N_ID, N_ID]), min_size=1, max_size=120)), np.uint8
    )
    longest = draw(st.integers(1, 12))
    starts = draw(st.lists(st.integers(0, len(genome) - 1), min_size=1, max_size=4, unique=True))
    lengths = [draw(st.integers(1, min(longest, len(genome) - s))) for s in starts]
    counts = [
        draw(st.integers(1, (len(genome) - s) // n)) for s, n in zip(starts, lengths, strict=True)
    ]
    return genome, starts, lengths, counts, draw(st.sampled_from([0.0, 0.3, 0.5, 0.99, 1.0]))


@given(tilings())
def test_the_windows_dropped_for_their_n_are_those_that_counting_base_by_base_drops(case):
    genome, starts, lengths, counts, most = case
    first = np.concatenate(([0], np.cumsum(counts)))
    given = np.array(starts), np.array(lengths), np.array(counts), first[:-1]
    ranges = find_dropped_windows(*given, find_runs_of_n(genome), most)
    found = [int(i) for low, high in ranges for i in range(low, high)]
    wanted = []
    for k, (s, n, c) in enumerate(zip(starts, lengths, counts, strict=True)):
        for i in range(c):
            n_fraction = (genome[s + i * n : s + i * n + n] == N_ID).mean()
            if n_fraction > most or n_fraction == 1:
                wanted.append(int(first[k]) + i)
    assert found == wanted


@given(st.lists(st.sampled_from([7, N_ID, N_ID | 0x80]), max_size=60), st.integers(1, 7))
def test_runs_of_n_are_found_across_the_borders_of_pieces(ids, chunk):
    pieces = [np.array(ids[i : i + chunk], np.uint8) for i in range(0, len(ids), chunk)]
    found = [find_runs_of_n(piece) + i * chunk for i, piece in enumerate(pieces)]
    runs = join_runs(np.concatenate([np.zeros((0, 2), np.int64), *found]))
    marked = np.zeros(len(ids), bool)
    for start, end in runs:
        assert start < end
        marked[start:end] = True
    assert marked.tolist() == [i & 0x7F == N_ID for i in ids]
    assert (runs[1:, 0] > runs[:-1, 1]).all()


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(10, 900), min_size=1, max_size=5),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.1]),
    st.integers(0, 2**32),
)
def test_windows_of_an_epoch_share_no_base(tmp_path_factory, lengths, seq_len, n_share, seed):
    rng = np.random.default_rng(seed)
    contigs = {}
    for i, n in enumerate([50, *lengths]):
        letters = np.array(list(random_dna(n, seed + i)))
        letters[rng.random(n) < n_share] = "N"
        contigs[f"c{i}"] = "".join(letters)
    recipe = recipe_of(contigs, valid=("c0",), max_n_fraction=0.2)
    store, recipe = store_of(tmp_path_factory.mktemp("w"), contigs, recipe)
    try:
        windows = DnaWindows(store, recipe, "train", seq_len)
    except DataError:
        return
    inside = windows.intervals
    first = store.offsets[inside.contig] + inside.start
    allowed = covered(store, first, inside.end - inside.start)
    for phase in range(PHASES):
        tiling = windows.tiling(phase)
        starts, sizes = tiling.at(np.arange(len(tiling)))
        count = covered(store, starts, sizes)
        assert (count <= allowed).all()
        assert windows.per_epoch <= len(tiling)
        ends = np.searchsorted(store.offsets, starts + sizes - 1, "right")
        assert (ends == np.searchsorted(store.offsets, starts, "right")).all()


def test_phases_move_the_windows_of_a_long_interval_over_all_places(tmp_path):
    windows = windows_of(tmp_path, {"a": random_dna(64 * 40)}, 32)
    starts = {int(windows.tiling(p).at(np.array([3]))[0][0]) % 32 for p in range(PHASES)}
    assert len(starts) == PHASES


def test_evaluation_windows_lie_at_phase_zero_in_genome_order_with_contig_and_start(tmp_path):
    contigs = {"a": random_dna(70), "b": random_dna(35), "c": random_dna(9)}
    windows = windows_of(tmp_path, contigs, 16, valid=("c",))
    assert [windows.store.names[i] for i in windows.contig_index] == ["a", "a", "a", "a", "b", "b"]
    assert windows.start.tolist() == [0, 16, 32, 48, 0, 16]
    assert windows.length.tolist() == [16] * 6
    assert len(windows) == 6


def test_a_short_interval_is_one_right_padded_window_and_a_tiny_one_is_counted_away(tmp_path):
    contigs = {"a": random_dna(64), "b": random_dna(20, 1), "c": random_dna(3, 2)}
    contigs["v"] = random_dna(40)
    windows = windows_of(tmp_path, contigs, 32, valid=("v",))
    assert windows.length.tolist() == [32, 32, 20]
    assert windows.dropped == {"windows_too_much_n": 0, "intervals_too_short": 1, "tail_bases": 3}
    rows = windows.gather(windows.flat_start, windows.length, 4)
    assert (rows[2, 20:] == 4).all()
    assert rows[2, :20].tolist() == windows.store.ids("b").tolist()


def test_the_windows_at_a_contigs_end_do_not_run_into_the_next(tmp_path):
    contigs = {"a": "A" * 33, "b": "C" * 32, "c": "G" * 8}
    windows = windows_of(tmp_path, contigs, 16, valid=("c",))
    rows = windows.gather(windows.flat_start, windows.length, 4)
    assert all(len(set(row)) == 1 for row in rows.tolist())
    assert windows.dropped["tail_bases"] == 1


def test_windows_of_mostly_n_are_dropped_counted_and_told(tmp_path):
    sequence = "A" * 16 + "N" * 9 + "C" * 7 + "N" * 8 + "G" * 8 + "N" * 64
    contigs = {"a": sequence, "v": "ACGT" * 8}
    windows = windows_of(tmp_path, contigs, 16, valid=("v",))
    assert windows.start.tolist() == [0, 32]
    assert windows.dropped["windows_too_much_n"] == 5
    assert "5 windows with more than 50% N" in windows.summary()
    assert len(windows_of(tmp_path, contigs, 16, valid=("v",), max_n_fraction=0.6)) == 3


def test_no_window_of_train_touches_a_held_out_base(tmp_path):
    contigs = {"a": random_dna(400), "b": random_dna(300, 1)}
    rule = SplitRule(train="rest", valid=(("b", 10, 150),), test=(("b", 150, 290),))
    recipe = recipe_of(contigs).model_copy(update={"splits": rule})
    store, recipe = store_of(tmp_path, contigs, recipe)
    counts = []
    for split in SPLITS:
        windows = DnaWindows(store, recipe, split, 16)
        counts.append(covered(store, windows.flat_start, windows.length))
    assert (sum(np.minimum(c, 1) for c in counts) <= 1).all()


def test_legacy_tiling_walks_into_held_out_bases_and_only_on_request(tmp_path):
    bed = tmp_path / "s.bed"
    bed.write_text("a\t0\t64\ttrain\na\t64\t128\ttest\n")
    contigs = {"a": random_dna(256)}
    store, recipe = store_of(tmp_path, contigs, recipe_of(contigs).with_bed(bed))
    assert DnaWindows(store, recipe, "train", 32).start.tolist() == [0, 32]
    legacy = DnaWindows(store, recipe, "train", 32, legacy_caduceus_tiling=True)
    assert legacy.start.tolist() == list(range(0, 256, 32))


def test_a_subset_is_spread_evenly_and_lists_its_own_windows(tmp_path):
    windows = windows_of(tmp_path, {"a": random_dna(320), "v": random_dna(32)}, 16, valid=("v",))
    part = windows.spread(4)
    assert part.start.tolist() == [0, 80, 160, 240]
    assert len(part) == 4
    assert part.take(np.array([2, 0])).start.tolist() == [160, 0]
    assert len(windows.spread(10**6)) == len(windows) == 20


def test_every_contig_shorter_than_the_window_is_refused_with_both_lengths(tmp_path):
    with pytest.raises(DataError) as fault:
        windows_of(tmp_path, {"s1": random_dna(40), "s2": random_dna(99)}, 128)
    for part in ("in.fa", "seq_len of 128", "s2", "99", "--seq-len"):
        assert part in str(fault.value)


def test_a_genome_of_only_n_is_refused_naming_file_and_record(tmp_path):
    with pytest.raises(DataError, match=r"in\.fa \(record gap\): no usable window.* N;"):
        windows_of(tmp_path, {"gap": "N" * 5000}, 128)


def test_islands_in_n_give_only_windows_with_bases(tmp_path):
    contigs = {"gap": ("N" * 5940 + random_dna(60)) * 3}
    with pytest.raises(DataError, match="no usable window"):
        windows_of(tmp_path, contigs, 128)
    windows = windows_of(tmp_path, contigs, 64)
    rows = windows.gather(windows.flat_start, windows.length, 4)
    assert len(windows)
    assert ((rows != N_ID).sum(1) >= 32).all()


@pytest.mark.parametrize("values", [{"seq_len": 0}, {"seq_len": 8, "split": "dev"}])
def test_sizes_and_names_that_cannot_be_meant_are_usage_errors(tmp_path, values):
    store, recipe = store_of(tmp_path, {"a": random_dna(100)})
    with pytest.raises(UsageError):
        DnaWindows(store, recipe, **{"split": "train", **values})


@pytest.mark.slow
def test_the_sparse_human_genome_gives_train_valid_and_test_windows_quickly(shared):
    from genodiff.data.dna_store import build_dna_store
    from genodiff.data.recipe import load_recipe

    recipe = load_recipe("hg38")
    store = build_dna_store(recipe, shared / "data/genomes/hg38_sparse.fa.gz")
    counts = {split: len(DnaWindows(store, recipe, split, 1024)) for split in SPLITS}
    assert counts == {"train": 7188, "valid": 195, "test": 1144}
    for split in SPLITS:
        windows = DnaWindows(store, recipe, split, 1024)
        rows = windows.gather(windows.flat_start[:50], windows.length[:50], 4)
        assert ((rows & 0x7F) == N_ID).mean(1).max() <= 0.5
