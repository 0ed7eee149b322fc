"""DNA ids as published Caduceus uses them, both strands, and text in and out."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.alphabet import ALPHABETS, AMBIGUOUS, DNA, SOFT, Alphabet, reverse_complement
from genodiff.errors import CheckpointError, DataError

BASES = st.text("ACGTNacgtn", max_size=200)
IUPAC = st.text("ACGTRYSWKMBDHVNacgtryswkmbdhvn", max_size=200)


def test_the_ids_are_those_of_published_caduceus():
    assert dict(zip(DNA.tokens, range(12), strict=True)) == {
        "[CLS]": 0, "[SEP]": 1, "[BOS]": 2, "[MASK]": 3, "[PAD]": 4, "[RESERVED]": 5,
        "[UNK]": 6, "A": 7, "C": 8, "G": 9, "T": 10, "N": 11,
    }  # fmt: skip
    assert (DNA.size, DNA.padded_size, DNA.mask_id, DNA.pad_id, DNA.unk_id) == (12, 16, 3, 4, 6)
    assert [DNA.tokens[i] for i in DNA.targets] == list("ACGT")
    assert ALPHABETS["dna"] is DNA


def test_the_complement_swaps_four_ids_and_keeps_every_other_row():
    assert DNA.complement is not None
    assert {i: c for i, c in enumerate(DNA.complement) if i != c} == {7: 10, 8: 9, 9: 8, 10: 7}
    assert len(DNA.complement) == DNA.padded_size


def test_the_reference_tokenizer_gives_the_same_ids(shared):
    reference = json.loads((shared / "conformance/cases/tokenizer_caduceus.json").read_text())
    assert reference["vocab"] == dict(zip(DNA.tokens, range(DNA.size), strict=True))
    assert {int(k): v for k, v in reference["complement_map"].items()} == dict(
        enumerate(DNA.complement[: DNA.size])
    )
    assert len(reference["cases"]) >= 20
    for case in reference["cases"]:
        # The reference splits its own special tokens off first and turns every other stranger into
        # [UNK].
        ids: list[int] = []
        for piece in re.split(r"(\[(?:MASK|PAD|CLS|SEP|BOS|UNK)\])", case["text"]):
            special = re.fullmatch(r"\[(?:MASK|PAD|CLS|SEP|BOS|UNK)\]", piece)
            ids += (
                [DNA.tokens.index(piece)] if special else DNA.encode(piece, unknown="unk").tolist()
            )
        assert ids == case["no_special"], case["text"]
        assert DNA.rc(np.array(ids, np.uint8)).tolist() == case["rc_ids_of_no_special"]
        assert DNA.decode(np.array(ids, np.uint8)) == case["decode_no_special"]
        if re.fullmatch("[ACGTNacgtn]*", case["text"]):
            # Beyond ACGTN the reference copies letters uncomplemented (R stays R): the wrong
            # strand, so not ours.
            assert DNA.encode(case["text"]).tolist() == case["no_special"]
            assert reverse_complement(case["text"]) == case["string_reverse_complement"]


def test_ambiguity_codes_are_n_unless_the_reference_is_asked_for():
    for letter in AMBIGUOUS + AMBIGUOUS.lower():
        assert DNA.encode(letter).tolist() == [11]
        assert DNA.encode(letter, unknown="unk").tolist() == [6]


STRANGERS = ["-", ".", "*", " ", "\n", "\0", "E", "X", "I", "é", "Ａ", "染", "\xff", "[MASK]", "1"]


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_is_refused_with_its_position(stranger):
    with pytest.raises(DataError, match="at position 3"):
        DNA.encode("AC" + stranger + "GT")


def test_rna_is_named_as_rna():
    with pytest.raises(DataError, match=r"RNA.*convert U to T"):
        DNA.encode(b"ACGU")


@given(BASES)
def test_encode_and_decode_give_back_the_text_with_its_case(text):
    assert DNA.decode(DNA.encode(text), DNA.soft_mask(text)) == text
    assert DNA.decode(DNA.encode(text.encode())) == text.upper()
    assert DNA.encode(text).dtype == np.uint8


@given(IUPAC)
def test_both_strands_commute_with_encoding(text):
    assert (DNA.rc(DNA.encode(text)) == DNA.encode(reverse_complement(text))).all()


@given(IUPAC)
def test_the_reverse_complement_is_an_involution_that_keeps_the_case(text):
    other = reverse_complement(text)
    assert reverse_complement(other) == text
    assert [c.islower() for c in other] == [c.islower() for c in reversed(text)]
    assert reverse_complement(text.encode()) == str(other).encode()


def test_every_iupac_code_has_its_complement():
    means = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT",
        "K": "GT", "M": "AC",
             "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"}  # fmt: skip
    for code, bases in means.items():
        assert set(means[str(reverse_complement(code))]) == {
            str(reverse_complement(b)) for b in bases
        }


@pytest.mark.parametrize("stranger", ["-", "U", "é", "E"])
def test_what_has_no_complement_is_refused(stranger):
    with pytest.raises(DataError, match="position 2 has no complement"):
        reverse_complement("A" + stranger)


def test_rc_works_along_the_last_axis_and_keeps_the_dtype():
    ids = np.array([[7, 8, 3], [11, 4, 15]], np.int64)
    assert DNA.rc(ids).tolist() == [[3, 9, 10], [15, 4, 11]]
    assert DNA.rc(ids).dtype == np.int64


@pytest.mark.parametrize("bad", [12, 15, 16, 255, -1])
def test_an_id_that_is_no_token_cannot_be_decoded(bad):
    with pytest.raises(ValueError, match="12 tokens"):
        DNA.decode(np.array([7, bad]))


def test_json_gives_the_same_alphabet_back_and_the_fingerprint_notices_every_change():
    again = Alphabet.from_json(json.loads(json.dumps(DNA.to_json())))
    assert again == DNA
    assert again.fingerprint() == DNA.fingerprint()
    changes = {"name": "rna", "padded_size": 24, "mask_id": 5, "pad_id": 2, "unk_id": 5,
        "targets": [7, 8, 9, 10, 11],
               "domain": "text", "complement": list(range(16)), "tokens": [*DNA.tokens[:-1],
               "X"]}  # fmt: skip
    for key, value in changes.items():
        values = {**DNA.to_json(), key: value}
        if key == "padded_size":
            values["complement"] = [*values["complement"], *range(16, 24)]
        assert Alphabet.from_json(values).fingerprint() != DNA.fingerprint(), key


@pytest.mark.parametrize(
    "change",
    [
        {"complement": [1, 2, 0, *range(3, 16)]},
        {"complement": [*range(12)]},
        {"complement": [0, 1, 2, 7, 4, 5, 6, 3, *range(8, 16)]},
        {"tokens": ["A"] * 12},
        {"targets": [3, 7]},
        {"targets": [7, 99]},
        {"targets": []},
        {"mask_id": -1},
        {"mask_id": "x"},
        {"padded_size": 8},
        {"padded_size": 256},
        {"tokens": None},
    ],
)
def test_values_that_make_no_alphabet_are_refused(change):
    with pytest.raises(CheckpointError, match="does not describe an alphabet"):
        Alphabet.from_json({**DNA.to_json(), **change})


def test_the_soft_mask_bit_lies_above_every_id():
    assert DNA.padded_size <= SOFT
    assert Alphabet.from_json({**DNA.to_json()})._encoding.flags.writeable is False
