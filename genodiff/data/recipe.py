"""Recipes: what a data set is, where it comes from, and which part of it trains, validates and
tests.

A recipe is one YAML file in `data_recipes/`. It pins its source by hash where one is known and
always by the names and lengths of its contigs. Intervals are 0-based half-open throughout.
"""

import hashlib
import importlib.util
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from genodiff.domain import DNA, TEXT, Domain
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.file_kinds import sha256_json
from genodiff.settings import Settings, read_yaml

SPLITS = ("train", "valid", "test")
ALL = "all"
"""In a split's place: every contig from end to end."""

Split = Literal["train", "valid", "test"]

Piece = str | tuple[str, int, int]
"""A whole contig, or (contig, start, end)."""


def _https(url: str) -> str:
    if not url.startswith("https://"):
        raise ValueError("only https:// is fetched")
    return url


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as fault:
        raise ValueError(f"not a regular expression ({fault})") from None
    return text


class Source(Settings):
    """One public file.

    `sha256` is None where no hash is known: then the contigs' lengths are the check. `letters` is
    the hash of what its contigs spell (`runs/known_contigs.py`), however the file is packed.
    """

    url: Annotated[str, AfterValidator(_https)]
    filename: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    letters: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    licence: str


class SplitRule(Settings):
    """The contigs or intervals of each split; `train: rest` is every contig that no other names."""

    train: Literal["rest"] | tuple[Piece, ...] = "rest"
    valid: tuple[Piece, ...]
    test: tuple[Piece, ...]


class Recipe(Settings):
    """A data set. Empty `contigs` accept any; `splits` None cuts by coordinates (`splits.py`)."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    domain: Literal["dna"] = "dna"
    description: str = ""
    sources: tuple[Source, ...] = ()
    generator: Literal["toy"] | None = None
    contigs: dict[str, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    ignore: Annotated[str, AfterValidator(_pattern)] = ""
    splits: SplitRule | None = None
    bed: str | None = None
    max_n_fraction: Annotated[float, Field(ge=0, lt=1)] = 0.5
    soft_mask_weight: Annotated[float, Field(ge=0, le=1)] = 0.1

    @model_validator(mode="after")
    def _known_contigs(self) -> "Recipe":
        for split in SPLITS:
            pieces = getattr(self.splits, split, ())
            for piece in () if pieces == "rest" else pieces:
                contig, start, end = (piece, 0, 1) if isinstance(piece, str) else piece
                if self.contigs and contig not in self.contigs:
                    what = f"split {split} names the contig '{contig}', which 'contigs' lacks"
                    raise ValueError(what)
                if not 0 <= start < end <= self.contigs.get(contig, end):
                    what = f"split {split}: {contig} {start} {end} is not inside the contig"
                    raise ValueError(what)
        return self

    def with_bed(self, bed: str | Path | None) -> "Recipe":
        """This recipe with the splits of a BED file, whose 4th column is train, valid or test."""
        return self if bed is None else self.model_copy(update={"bed": str(bed), "ignore": ""})

    def digest(self) -> str:
        """sha256 (hex) of all that decides which base is in which split, with the BED's content."""
        others = {"description", "sources", "soft_mask_weight"}
        values: dict[str, Any] = self.model_dump(mode="json", exclude=others)
        values["bed"] = None if self.bed is None else hashlib.sha256(_read(self.bed)).hexdigest()
        return sha256_json(values, compact=True)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as fault:
        fix = "give an existing BED file"
        raise DataError(f"cannot be read ({fault.strerror})", file=path, fix=fix) from None


def list_recipe_folders() -> list[Path]:
    """The folders that hold recipes: in an installed package, and at the top of a source tree."""
    found = importlib.util.find_spec("genodiff.data_recipes")
    inside = [Path(p) for p in (found.submodule_search_locations or ())] if found else []
    tree = Path(__file__).resolve().parents[2] / "data_recipes"
    return [d for d in dict.fromkeys([*inside, tree]) if d.is_dir()]


def list_recipe_names() -> list[str]:
    """The names that `load_recipe` knows, sorted."""
    return sorted({path.stem for folder in list_recipe_folders() for path in folder.glob("*.yaml")})


def find_recipe_file(name_or_path: str | Path) -> Path:
    """The YAML file of a recipe's name, or that file itself. Raises `UsageError` for neither."""
    text = str(name_or_path)
    if text.endswith((".yaml", ".yml")):
        return Path(text)
    for folder in list_recipe_folders():
        path = folder / f"{text}.yaml"
        if text in list_recipe_names() and path.is_file():
            return path
    if Path(text).exists():
        fix = "name a recipe and give the file with --fasta (DNA), or give --domain text"
        raise UsageError(f"'{text}' is a file, not a recipe", fix=fix)
    variants = [name for name in list_recipe_names() if text and name.startswith(f"{text}-")]
    if variants:
        raise UsageError(f"'{text}' comes as {' and '.join(variants)}", fix="name one of them")
    fix = "see `genodiff data list`"
    raise UsageError(f"no recipe '{text}'; {did_you_mean(text, list_recipe_names())}", fix=fix)


def find_recipe_of(contigs: dict[str, int]) -> Recipe | None:
    """The recipe whose contigs are all in a file of `contigs`, by name and length, or None."""
    for recipe in _list_split_recipes(tuple(list_recipe_folders())):
        if recipe.contigs.items() <= contigs.items():
            return recipe
    return None


@cache
def _list_split_recipes(folders: tuple[Path, ...]) -> list[Recipe]:
    """The recipes in some folders that name contigs of a file, and a rule for them."""
    found = []
    for path in sorted(path for folder in folders for path in folder.glob("*.yaml")):
        with suppress(UsageError):  # of text, or faulty
            recipe = _read_recipe(path, path.stem)
            if recipe.contigs and recipe.splits is not None and recipe.generator is None:
                found.append(recipe)
    return found


def load_recipe(name_or_path: str | Path, *, bed: str | Path | None = None) -> Recipe:
    """The recipe of that name, or in that YAML file; with `bed`, its splits are the BED's.

    Raises `UsageError` for an unknown name or a faulty recipe; a recipe of text is one here.
    """
    return _read_recipe(find_recipe_file(name_or_path), str(name_or_path)).with_bed(bed)


def read_domain(values: object) -> Domain:
    """The domain that the content of a recipe's file states; DNA where it states none."""
    stated = values.get("domain") if isinstance(values, dict) else None
    return TEXT if stated == TEXT.name else DNA


def make_user_recipe(fasta: str | Path, bed: str | Path | None = None) -> Recipe:
    """A recipe of a user's own FASTA: every contig, split by the BED or else by coordinates."""
    stem = re.sub(r"(\.(fa|fasta|fna|gz|bgz))+$", "", Path(fasta).name)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._-") or "own"
    return Recipe(name=name, description="your own FASTA file").with_bed(bed)


def _read_recipe(path: Path, name: str) -> Recipe:
    values = read_yaml(path)
    if read_domain(values) != DNA:
        fix = "give --domain text, without --fasta"
        raise UsageError(f"'{name}' is a recipe of text, not of DNA", fix=fix)
    if isinstance(values, dict) and isinstance(values.get("contigs"), str):
        values["contigs"] = _read_sizes(path.parent / values["contigs"])
    return Recipe.parse(values, file=path)


def _read_sizes(path: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as fault:
        fix = "install genodiff again"
        raise UsageError(f"cannot be read ({fault.strerror})", file=path, fix=fix) from None
    for number, line in enumerate(lines, 1):
        name, tab, length = line.partition("\t")
        if not tab or not length.isascii() or not length.isdigit() or name in sizes:
            what = "expected a contig's name, a tab and its length, once each"
            raise UsageError(what, file=path, line=number)
        sizes[name] = int(length)
    return sizes
