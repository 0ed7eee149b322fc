"""The published tokenizer: its golden numbers, its way through transformers' own machinery."""

import json
from typing import Any

import pytest
import torch
from transformers import DataCollatorForLanguageModeling

from genodiff.hf import CaduceusTokenizer


@pytest.fixture
def tokenizer():
    return CaduceusTokenizer(model_max_length=12)


def test_golden_numbers_of_the_published_tokenizer(tokenizer, shared):
    told = json.loads((shared / "conformance" / "cases" / "tokenizer_caduceus.json").read_text())
    assert tokenizer.get_vocab() == told["vocab"]
    assert (tokenizer.vocab_size, len(tokenizer)) == (told["vocab_size"], told["len_tokenizer"])
    assert tokenizer.padding_side == told["padding_side"]
    assert tokenizer.model_input_names == told["model_input_names"]
    for name, (token, token_id) in told["special"].items():
        assert (getattr(tokenizer, name), getattr(tokenizer, f"{name}_id")) == (token, token_id)
    assert tokenizer.complement_map == {int(k): v for k, v in told["complement_map"].items()}
    assert tokenizer("ACG", "TT")["input_ids"] == told["pair_ACG_TT"]
    assert tokenizer.get_special_tokens_mask([7, 8, 9]) == told["special_tokens_mask"]
    for case in told["cases"]:
        check_case(tokenizer, case)


def check_case(tokenizer: CaduceusTokenizer, case: dict[str, Any]) -> None:
    text = case["text"]
    assert tokenizer.tokenize(text) == case["tokens"]
    default = tokenizer(text)
    assert sorted(default) == case["keys"]
    assert default["input_ids"] == case["default"]
    bare = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert bare == case["no_special"]
    assert tokenizer(text, truncation=True)["input_ids"] == case["trunc_special"]
    padded = tokenizer(text, add_special_tokens=False, padding="max_length", truncation=True)
    assert padded["input_ids"] == case["pad_max"]
    assert [tokenizer.complement_map[i] for i in reversed(bare)] == case["rc_ids_of_no_special"]
    assert tokenizer.decode(bare) == case["decode_no_special"]
    assert tokenizer.decode(default["input_ids"]) == case["decode_default"]
    skipped = tokenizer.decode(default["input_ids"], skip_special_tokens=True)
    assert skipped == case["decode_default_skip_special"]


def test_batches_are_padded_on_the_left_and_a_mask_comes_when_it_is_asked_for(tokenizer):
    batch = tokenizer(["ACGT", "A", ""], add_special_tokens=False, padding=True)
    assert batch["input_ids"] == [[7, 8, 9, 10], [4, 4, 4, 7], [4, 4, 4, 4]]
    assert list(batch) == ["input_ids"]
    asked = tokenizer(["ACGT", "A"], padding=True, return_attention_mask=True, return_tensors="pt")
    assert asked["attention_mask"].tolist() == [[1] * 5, [0, 0, 0, 1, 1]]
    right = tokenizer(["AC", "A"], padding=True, padding_side="right")
    assert right["input_ids"] == [[7, 8, 1], [7, 1, 4]]


def test_a_saved_tokenizer_comes_back(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    again = CaduceusTokenizer.from_pretrained(tmp_path)
    assert again.get_vocab() == tokenizer.get_vocab()
    assert again.complement_map == tokenizer.complement_map
    assert (again.model_max_length, again.padding_side) == (12, "left")
    assert again("ACGTN")["input_ids"] == tokenizer("ACGTN")["input_ids"]
    # Published code reads letters from a saved map; ids there would give it a wrong complement.
    assert "complement_map" not in json.loads((tmp_path / "tokenizer_config.json").read_text())


@pytest.mark.parametrize("key", ["letters", "ids"])
def test_a_map_of_complements_is_read_as_letters_or_ids(key, tmp_path):
    # S stands for C or G, W for A or T: each is its own complement.
    letters = {"A": "T", "T": "A", "S": "S", "W": "W"}
    given = letters if key == "letters" else {"7": 8, "8": 7, "9": 9, "10": 10}
    made = CaduceusTokenizer(characters=["A", "T", "S", "W"], complement_map=given)
    assert [made.complement_map[i] for i in range(7, 11)] == [8, 7, 9, 10]
    made.save_pretrained(tmp_path)
    again = CaduceusTokenizer.from_pretrained(tmp_path)
    assert again.complement_map == made.complement_map
    assert again("ATSW")["input_ids"] == [7, 8, 9, 10, 1]


def test_the_collator_for_language_modelling_masks_letters_only(tokenizer):
    torch.manual_seed(0)
    rows = [tokenizer("ACGT" * 5), tokenizer("ACGTA")]
    batch = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.5)(rows)
    ids, labels = batch["input_ids"], batch["labels"]
    assert ids.shape == labels.shape == (2, 21)
    assert 3 in ids
    assert {-100} < set(labels.flatten().tolist()) <= {-100, 7, 8, 9, 10}
    assert bool((ids[1, :15] == 4).all())  # padding is special: neither masked nor a label
    assert bool((labels[1, :15] == -100).all())


def test_added_tokens_stand_behind_the_letters(tokenizer):
    assert tokenizer.add_tokens(["[MUT]"]) == 1
    assert tokenizer("A[MUT]C", add_special_tokens=False)["input_ids"] == [7, 12, 8]
    assert len(tokenizer) == 13
    assert tokenizer.decode([7, 12, 8]) == "A[MUT]C"
