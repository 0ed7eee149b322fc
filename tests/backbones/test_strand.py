"""Both strands: what is flipped where, within each row's length."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_networks import COMPLEMENT, PAD, bases, reverse_complement

from genodiff.backbones.backbone import (
    exchange_strands,
    flip_positions,
    join_strands,
    stack_strands,
    vote,
)

MAP = torch.tensor(COMPLEMENT)


def test_a_row_is_read_from_its_own_end_and_its_padding_stays():
    x = torch.tensor([[1, 2, 3, 0, 0], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]])
    flipped = flip_positions(x, torch.tensor([3, 5, 0]))
    assert flipped.tolist() == [[3, 2, 1, 0, 0], [5, 4, 3, 2, 1], [0, 0, 0, 0, 0]]
    assert flip_positions(x).tolist() == x.flip(1).tolist()


@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 99))
def test_flipping_twice_changes_nothing(batch, length, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(batch, length, 3, generator=generator)
    lengths = torch.randint(0, length + 1, (batch,), generator=generator)
    assert torch.equal(flip_positions(flip_positions(x, lengths), lengths), x)


def test_the_second_half_of_the_rows_is_the_reverse_complement_padded_on_the_right():
    x = bases(2, 6)
    x[0, 4:] = PAD
    rows = stack_strands(x, MAP, torch.tensor([4, 6]))
    assert torch.equal(rows[:2], x)
    assert torch.equal(rows[2, :4], reverse_complement(x[:1, :4])[0])
    assert (rows[2, 4:] == PAD).all()
    assert torch.equal(rows[3], reverse_complement(x[1:])[0])


def test_the_vote_reads_the_other_strand_backwards_and_complemented():
    logits = torch.rand(4, 5, 16)
    voted = vote(logits, MAP)
    assert voted[1, 2, 7] == logits[1, 2, 7] + logits[3, 5 - 1 - 2, 10]
    assert voted[0, 0, 11] == logits[0, 0, 11] + logits[2, 4, 11]
    short = vote(logits, MAP, torch.tensor([3, 5]))
    assert short[0, 0, 8] == logits[0, 0, 8] + logits[2, 2, 9]


def test_exchanging_strands_swaps_the_halves_side_by_side():
    rows = torch.rand(4, 5, 3)
    lengths = torch.tensor([2, 5])
    for of in (None, lengths):
        given_, other = join_strands(rows, of).chunk(2, -1)
        assert torch.equal(
            join_strands(exchange_strands(rows, of), of), torch.cat([other, given_], -1)
        )
        assert torch.equal(exchange_strands(exchange_strands(rows, of), of), rows)
