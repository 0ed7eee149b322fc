"""Templates of text: what is kept and what is filled."""

import numpy as np
import pytest

from genodiff.data.tokenizer import ByteTokenizer
from genodiff.errors import DataError, UsageError
from genodiff.generate.text_drawing import (
    TextTemplate,
    fill_text,
    make_draft,
    make_prompt_template,
    read_template,
)


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
    assert (
        fill_text(TextTemplate((5,)), make_draft(TextTemplate((5,)), tokenizer, False), ids[:5],
                  tokenizer, whole=True).text
        == b"axy"
    )  # fmt: skip
    assert make_prompt_template("abc", 10, tokenizer).parts == ("abc", 7)
    with pytest.raises(UsageError, match="the prompt has 3 tokens"):
        make_prompt_template("abc", 3, tokenizer)
    (tmp_path / "big.txt").write_text("[[99999999999999]]")
    with pytest.raises(DataError, match="is not between 1 and"):
        read_template(str(tmp_path / "big.txt"))
    assert np.array_equal(make_draft(TextTemplate(("ab",)), tokenizer, True).ids, [97, 98])
