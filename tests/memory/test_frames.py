"""The chain of reading frames, against sums over all sequences of states."""

from itertools import pairwise, product

import numpy as np

from genodiff.memory.frames import ANY, STATES, STEADY, STEPS, FrameState, read_contexts, run_frames


def flip(state: FrameState) -> FrameState:
    return state if state.kind == "plain" else state._replace(strand=-state.strand)


def test_steps_are_probabilities_and_the_same_from_the_other_strand():
    np.testing.assert_allclose(STEPS.sum(1), 1)
    np.testing.assert_allclose(STEADY @ STEPS, STEADY, atol=1e-12)
    turned = [STATES.index(flip(state)) for state in STATES]
    flow = STEADY[:, None] * STEPS
    np.testing.assert_allclose(flow, flow.T[np.ix_(turned, turned)], atol=1e-12)


def test_told_is_the_sum_over_all_sequences_of_states():
    emission = np.random.default_rng(0).random((1, 4, len(STATES)))
    expected, total = np.zeros((4, len(STATES))), 0.0
    for path in product(range(len(STATES)), repeat=4):
        steps = np.prod([STEPS[a, b] for a, b in pairwise(path)])
        if steps == 0:
            continue
        weights = emission[0, np.arange(4), path]
        for i in range(4):
            expected[i, path[i]] += STEADY[path[0]] * steps * np.delete(weights, i).prod()
        total += STEADY[path[0]] * steps * weights.prod()
    found = run_frames(emission)
    np.testing.assert_allclose(found.told[0], expected / expected.sum(1, keepdims=True))
    np.testing.assert_allclose(found.scale.prod(), total)


def test_the_context_is_the_other_two_bases_of_the_codon():
    codes = np.array([0, 1, 2, 3, 4], np.uint8)  # A C G T, and one that is not known
    found = dict(zip(STATES, read_contexts(codes), strict=True))
    assert found[FrameState("codon", 1, 0)].tolist() == [4 * 1 + 2, 4 * 2 + 3, ANY, ANY, ANY]
    assert found[FrameState("codon", 1, 2)].tolist() == [ANY, ANY, 4 * 0 + 1, 4 * 1 + 2, 4 * 2 + 3]
    # On the other strand the codon runs back: of T its mates are C (for G) and G (for C).
    assert found[FrameState("codon", -1, 0)].tolist()[3] == 4 * 1 + 2
    assert (found[STATES[0]] == ANY).all()
