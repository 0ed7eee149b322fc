"""Scores of haplotypes as FORMAT fields of a VCF: a value for each copy, in the order of GT.

A copy without a value has `.`, and a sample without any has one `.` alone. Where no sample has a
value, the record stays as it is. What an earlier call of ours added is replaced.
"""

from collections.abc import Sequence
from dataclasses import replace

from genodiff.io.variants import VariantRecord
from genodiff.io.vcf import VcfHeader
from genodiff.scoring.methods import AUTO, name_methods
from genodiff.variants.scored_variants import (
    CopyScore,
    ScoredRecord,
    ScoreForm,
    format_value,
)

_PREFIX, _META = "GD_", "##FORMAT=<ID=GD_"
_COLUMNS = 3  # QUAL, FILTER and INFO stand before FORMAT
_FIELDS = (
    (
        "GD_HAP",
        "Float",
        "log-likelihood of the haplotype in which the ALT stands, minus the reference's, {unit}; "
        "one value for each copy in the order of GT, as in all GD_ fields",
    ),
    ("GD_HAPSE", "Float", "standard error of GD_HAP over random masks, {unit}; 0: nothing drawn"),
    ("GD_HAPM", "String", "how it was scored: {methods}"),
    ("GD_HAPN", "Integer", "how many variants it has; with 1 it has the score of its variant"),
    ("GD_HAPID", "String", "FIRST-LAST position that it changes, the same at all its variants"),
    ("GD_HAPF", "String", "why there is no score, or what to know about it; joined by &"),
)


def list_format_lines(unit: str, method: str = AUTO) -> list[str]:
    """The lines of a header that say what the fields are, where `method` was asked for."""
    return [
        f'##FORMAT=<ID={name},Number=.,Type={kind},Description="genodiff: '
        f'{meaning.format(unit=unit, methods=name_methods(method))}">'
        for name, kind, meaning in _FIELDS
    ]


def has_our_fields(header: VcfHeader | None) -> bool:
    """Whether an earlier call has added fields."""
    return header is not None and any(line.startswith(_META) for line in header.meta)


def remove_our_fields(record: VariantRecord) -> VariantRecord:
    """A record without what an earlier call has added."""
    head, (keys, *samples) = record.rest[:_COLUMNS], record.rest[_COLUMNS:]
    names = keys.split(":")
    kept = [i for i, name in enumerate(names) if not name.startswith(_PREFIX)]
    if len(kept) == len(names):
        return record
    columns = [":".join(names[i] for i in kept)]
    for sample in samples:
        values = sample.split(":")
        columns.append(":".join(values[i] for i in kept if i < len(values)))
    return replace(record, rest=(*head, *columns))


def add_haplotype_fields(scored: ScoredRecord, form: ScoreForm) -> VariantRecord:
    """A record with the fields of its samples."""
    record = scored.record
    copies: dict[int, list[CopyScore]] = {}
    for some in scored.copies:
        for one in some:
            copies.setdefault(one.sample, []).append(one)
    if not copies:
        return record
    head, (keys, *samples) = record.rest[:_COLUMNS], record.rest[_COLUMNS:]
    added: list[tuple[str, list[str]]] = []
    for number, (name, _, _) in enumerate(_FIELDS):
        values = [
            _join_copies(copies.get(sample, ()), number, form) for sample in range(len(samples))
        ]
        if any(value != "." for value in values):
            added.append((name, values))
    width = keys.count(":") + 1
    columns = [":".join([keys, *(name for name, _ in added)])]
    for sample, text in enumerate(samples):
        given = text.split(":")
        given += ["."] * (width - len(given))  # the last values may be left out
        columns.append(":".join([*given, *(values[sample] for _, values in added)]))
    return replace(record, rest=(*head, *columns))


def _join_copies(copies: Sequence[CopyScore], field: int, form: ScoreForm) -> str:
    if not copies:
        return "."
    row = ["."] * copies[0].ploidy
    for one in copies:
        score = one.score
        place = f"{one.first}-{one.last}" if one.variants else ""
        values: tuple[object, ...] = (
            form.convert(score.value), form.convert(score.se), score.method,
            one.variants, place, list(score.flags),
        )  # fmt: skip
        row[one.copy] = format_value(values[field])
    return "." if set(row) == {"."} else ",".join(row)
