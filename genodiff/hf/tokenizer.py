"""The published tokenizer: one token a letter.

Letters are upper-cased; what is none of A, C, G, T, N becomes [UNK]. [SEP] ends a sequence; there
is no [CLS] in front. Padding goes to the left and the end is cut off, as published. `[MASK]`,
`[PAD]` and the other special tokens are recognised in a text, [RESERVED] is not.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizer

from genodiff.hub.export import SPECIAL_TOKENS

SPECIAL = ("[CLS]", "[SEP]", "[BOS]", "[MASK]", "[PAD]", "[RESERVED]", "[UNK]")
CHARACTERS = ("A", "C", "G", "T", "N")
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}


class CaduceusTokenizer(PreTrainedTokenizer):
    """Ids 0 to 6 are special tokens, those of `characters` follow: A 7, C 8, G 9, T 10, N 11.

    `complement_map` maps letters to letters, or ids to ids as a saved tokenizer has it.
    """

    model_input_names = ["input_ids"]  # noqa: RUF012

    def __init__(
        self,
        model_max_length: int = 131_072,
        characters: Sequence[str] = CHARACTERS,
        complement_map: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        letters = complement_map or COMPLEMENT
        self.characters = list(characters)
        self._ids = {token: i for i, token in enumerate((*SPECIAL, *self.characters))}
        self._tokens = list(self._ids)
        self._complement = {
            i: int(letters.get(str(i), self._ids.get(str(letters.get(token, token)), i)))
            for token, i in self._ids.items()
        }
        own = {} if letters == COMPLEMENT else {"complement_map": dict(letters)}
        kwargs.pop("add_prefix_space", None)
        usual = SPECIAL_TOKENS | {"padding_side": "left"}
        super().__init__(
            model_max_length=model_max_length,
            characters=self.characters,
            **{**usual, **kwargs, **own},
        )

    @property
    def vocab_size(self) -> int:
        """The number of tokens, without added ones."""
        return len(self._tokens)

    @property
    def complement_map(self) -> dict[int, int]:
        """The complement of each id. Special tokens are their own."""
        return self._complement

    def get_vocab(self) -> dict[str, int]:
        """Ids by token, added ones included."""
        return {**self._ids, **self._added_tokens_encoder}

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return list(text.upper())

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids.get(token, self._ids["[UNK]"])

    def _convert_id_to_token(self, index: int) -> str:
        return self._tokens[index] if 0 <= index < len(self._tokens) else "[UNK]"

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The tokens without a space between."""
        return "".join(tokens)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """[SEP] after each sequence."""
        end = [self.sep_token_id]
        return token_ids_0 + end + ([] if token_ids_1 is None else token_ids_1 + end)

    def get_special_tokens_mask(
        self,
        token_ids_0: list[int],
        token_ids_1: list[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """1 at special tokens, 0 at letters."""
        if already_has_special_tokens:
            return super().get_special_tokens_mask(token_ids_0, token_ids_1, True)
        parts = [token_ids_0] if token_ids_1 is None else [token_ids_0, token_ids_1]
        return [bit for ids in parts for bit in [0] * len(ids) + [1]]

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """No file: the letters stand in `tokenizer_config.json`."""
        return ()
