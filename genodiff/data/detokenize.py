"""Detokenisers: running text from the spaced-out forms in which old corpora are published.

The zero-shot perplexities of the field (SEDD, MDLM and others) are of text that was first brought
back to its usual form: `can n't , he said .` → `can't, he said.` Each corpus has its own habits;
each rule here is one of them. A detokeniser is a function of one document's text. What it changes
is stated by name in the recipe that uses it.
"""

import re
from collections.abc import Callable

Rules = tuple[tuple[str, str], ...]

_CLOSING = ((r" ([.,;:!?])(?= |\n|$)", r"\1"),)
_BRACKETS = ((r"([(\[{]) +", r"\1"), (r" +([)\]}])", r"\1"))
_PAIRS = ((r'" ([^"\n]*?) "', r'"\1"'), (r"(?<!\w)' ([^'\n]*?) '(?!\w)", r"'\1'"))

WIKITEXT: Rules = (
    (r" @([-,.])@ ", r"\1"),
    (r" ?= = = = ?", "===="),
    (r" ?= = = ?", "==="),
    (r"(?<==) (?==)", ""),
    *_BRACKETS,
    *_PAIRS,
    *_CLOSING,
    (r" '(s|t|re|ve|ll|d|m)\b", r"'\1"),
    (r"(\w) ' s\b", r"\1's"),
    (r"s ' ", "s' "),
    (r" " + chr(176) + " ", chr(176)),
    (r" \n", "\n"),
    (r"\n ", "\n"),
    (r" N ", " 1 "),
)

PTB: Rules = (
    (r" n't\b", "n't"),
    (r" '(s|t|re|ve|ll|d|m)\b", r"'\1"),
    (r"s ' ", "s' "),
    (r"`` ", '"'),
    (r" ''", '"'),
    (r"([$#]) (?=[\dN])", r"\1"),
    (r" %", "%"),
    *_BRACKETS,
    *_PAIRS,
    *_CLOSING,
    (r"^ +| +$", ""),
)

LM1B: Rules = (
    (r"\bhttp(s?) : / / ", r"http\1://"),
    (r" '(\w+)", r"'\1"),
    (r" n't\b", "n't"),
    (r'" ([^"]+?) "', r'"\1"'),
    (r"(?<!\w)' ([^']+?) '", r"'\1'"),
    *_BRACKETS,
    (r" / ", "/"),
    (r"([$£€]) (?=\d)", r"\1"),
    (r"(\d) %", r"\1%"),
    *_CLOSING,
)

LAMBADA: Rules = (
    ("[“”]|``|''", '"'),
    ("[‘’]", "'"),
    (r" n't\b", "n't"),
    (r" '(s|t|re|ve|ll|d|m)\b", r"'\1"),
    *_CLOSING,
    (r"^\s+|\s+$", ""),
)


def _compiled(rules: Rules) -> Callable[[str], str]:
    table = [(re.compile(pattern), new) for pattern, new in rules]

    def detokenize(text: str) -> str:
        for pattern, new in table:
            text = pattern.sub(new, text)
        return text

    return detokenize


DETOKENIZERS: dict[str, Callable[[str], str]] = {
    "wikitext": _compiled(WIKITEXT),
    "ptb": _compiled(PTB),
    "lm1b": _compiled(LM1B),
    "lambada": _compiled(LAMBADA),
}
