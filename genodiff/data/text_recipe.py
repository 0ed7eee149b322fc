"""Recipes of text: where the documents come from, how they are cleaned, which of them train,
validate and test.

As for DNA a recipe is one YAML file in `data_recipes/`, with `domain: text`. `files` says by
patterns of names which files belong to which split ("all": the split is cut from them); the same
patterns are used on the recipe's own source and on a folder given with `--text`. A user's own file
needs no recipe.

Detokenisers bring running text back from the spaced-out forms in which old corpora are published.
The zero-shot perplexities of the field (SEDD, MDLM and others) are of such text: `can n't , he
said .` → `can't, he said.` Each corpus has its own habits; each rule here is one of them. What a
detokeniser changes of a document is stated by its name in the recipe that uses it.
"""

import fnmatch
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from genodiff.data.recipe import (
    SPLITS,
    Recipe,
    Source,
    find_recipe_file,
    list_recipe_names,
    load_recipe,
    read_domain,
)
from genodiff.domain import DNA, TEXT, DomainName
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.file_kinds import sha256_json
from genodiff.settings import Settings, read_yaml

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


OWN_ENDINGS = (".txt", ".text", ".md", ".tokens", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
ROWS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".json")
ZIPPED = (".gz", ".bgz")
BUCKETS = (*SPLITS, "all")

Part = Annotated[float, Field(gt=0)]


class TextSource(Source):
    """A public file of text; of an archive (zip, tar), the files whose names match `members`."""

    members: str | None = None


class TextRecipe(Settings):
    """A data set of text.

    `documents` says what one document is in a text file: the file, a line, a paragraph (blank lines
    between), or an article of WikiText (its "= Title =" line begins it); in JSON lines, CSV, TSV
    and Parquet every row is one, its text the `fields` joined by a blank. `ends`: a document is
    followed by the end token. `cut`: what a held-out split without files takes from the end of
    train (a share below 1, or a number of tokens); 1/20 where not given. `packing`: "packed"
    windows run through the documents one after another; a "padded" one holds the beginning of one
    document.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    domain: Literal["text"] = "text"
    description: str = ""
    sources: tuple[TextSource, ...] = ()
    files: dict[Literal["train", "valid", "test", "all"], tuple[str, ...]] = Field(
        default={"all": ("*",)}
    )
    documents: Literal["file", "line", "paragraph", "wiki"] = "file"
    fields: tuple[str, ...] = ("text",)
    columns: tuple[str, ...] = ()  # names of a CSV's or TSV's columns where it has no header
    detokenizer: str | None = None
    ends: bool = True
    packing: Literal["packed", "padded"] = "packed"
    cut: dict[Literal["valid", "test"], Part] = Field(default_factory=dict)
    split_by_hash: bool = False  # own files of many documents: a split follows from the text

    generator: None = None
    soft_mask_weight: float = 1.0
    max_n_fraction: float = 1.0

    @model_validator(mode="after")
    def _is_possible(self) -> "TextRecipe":
        if self.detokenizer is not None and self.detokenizer not in DETOKENIZERS:
            near = did_you_mean(self.detokenizer, DETOKENIZERS)
            raise ValueError(f"unknown detokenizer '{self.detokenizer}'; {near}")
        if not self.fields:
            raise ValueError("'fields' is empty")
        return self

    def digest(self) -> str:
        """sha256 (hex) of everything that decides which token is in which split and window."""
        values: dict[str, Any] = self.model_dump(mode="json", exclude={"description", "sources"})
        return sha256_json(values, compact=True)

    def bucket(self, path: Path) -> str | None:
        """Which split the file belongs to by its name ("all": to be cut); None: to none."""
        name = strip_compression(path)
        for bucket in ("train", "valid", "test", "all"):
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.files.get(bucket, ())):  # type: ignore[call-overload]
                return bucket
        return None


def strip_compression(path: Path) -> str:
    """A file's name without what compression added."""
    name = path.name
    for ending in ZIPPED:
        name = name.removesuffix(ending)
    return name


def load_text_recipe(name_or_path: str | Path) -> TextRecipe:
    """The text recipe of a name or YAML file. Raises `UsageError`, also for a recipe of DNA."""
    path = find_recipe_file(name_or_path)
    values = read_yaml(path)
    if isinstance(values, dict) and read_domain(values) != TEXT:
        what = f"'{name_or_path}' is a recipe of DNA, not of text"
        fix = f"leave --domain text out, or name one of {', '.join(list_text_recipe_names())}"
        raise UsageError(what, fix=fix)
    if isinstance(values, dict) and isinstance(values.get("sources"), list):
        values["sources"] = [part for source in values["sources"] for part in _parts(source)]
    return TextRecipe.parse(values, file=path)


def load_any_recipe(name_or_path: str | Path) -> Recipe | TextRecipe:
    """The recipe of that name, whatever its domain. Raises `UsageError`."""
    return RECIPE_LOADERS[find_domain(name_or_path)](name_or_path)


RECIPE_LOADERS: dict[str, Callable[[str | Path], Recipe | TextRecipe]] = {
    DNA.name: load_recipe,
    TEXT.name: load_text_recipe,
}


def find_domain(name_or_path: str | Path) -> DomainName:
    """What a recipe holds. Raises `UsageError` for an unknown recipe."""
    return read_domain(read_yaml(find_recipe_file(name_or_path))).name


def list_text_recipe_names() -> list[str]:
    """The names of the text recipes, sorted."""
    return [name for name in list_recipe_names() if find_domain(name) == TEXT.name]


def make_text_recipe(path: str | Path) -> TextRecipe:
    """A recipe of a user's own file or folder.

    Rows of a table, or the files of a folder, are documents; the split of each follows from the
    hash of its text (1/20 valid, 1/20 test), so that equal documents are never on both sides. One
    text file is one document, and its last two twentieths are held out.
    """
    name = strip_compression(Path(path))
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", name.split(".")[0]).strip("._-") or "own"
    rows = Path(path).is_dir() or name.lower().endswith(ROWS)
    return TextRecipe(name=stem, description="your own text", split_by_hash=rows)


def list_files(recipe: TextRecipe, given: Path) -> tuple[list[tuple[str, Path]], list[str]]:
    """(split or "all", file) of a file or folder, in reading order; notes. Raises `DataError`."""
    if not given.is_dir():
        return [(recipe.bucket(given) or "all", given)], []
    every = ((p, p.relative_to(given).parts) for p in given.rglob("*") if p.is_file())
    there = sorted(p for p, parts in every if not any(part.startswith(".") for part in parts))
    own = recipe.files == {"all": ("*",)}
    texts = [p for p in there if not own or strip_compression(p).lower().endswith(OWN_ENDINGS)]
    found = [(bucket, p) for p in texts if (bucket := recipe.bucket(p)) is not None]
    if not found:
        patterns = [p for bucket in recipe.files.values() for p in bucket]
        what = f"holds no file of text ({', '.join(OWN_ENDINGS if own else patterns)})"
        raise DataError(what, file=given, fix="give a folder or file with text")
    found.sort(key=lambda item: (BUCKETS.index(item[0]), item[1]))
    left = len(there) - len(found)
    return found, [f"{left} other files of {given} are left out"] if left and not own else []


def _parts(source: Any) -> list[Any]:
    """A source of `parts: n` files as n sources; `{part}` in URL and name is five digits."""
    if not isinstance(source, dict) or "parts" not in source:
        return [source]
    n = source["parts"]
    if not isinstance(n, int) or not 1 <= n <= 100_000:
        raise UsageError(f"a source has {n!r} parts", fix="give a whole number of 1 or more")
    rest = {k: v for k, v in source.items() if k != "parts"}
    named = {key: str(rest.get(key, "")) for key in ("url", "filename")}
    return [
        rest | {key: text.replace("{part}", f"{i:05d}") for key, text in named.items()}
        for i in range(n)
    ]
