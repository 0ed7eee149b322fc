"""Scores of variants as VCF: the lines as they were read, with INFO and FILTER added.

Each field of INFO has a value for each ALT (Number=A), `.` where there is none. FILTER tells why a
record has no score at all. Scores of haplotypes are FORMAT fields: a value for each copy, in the
order of GT. A copy without a value has `.`, and a sample without any has one `.` alone. Where no
sample has a value, its columns stay as they are. What an earlier call of ours added is replaced.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from genodiff.io.regions import find_contig
from genodiff.io.variant_source import COLUMNS, VcfHeader
from genodiff.io.variants import Unscorable, VariantRecord
from genodiff.scoring.allele_score import LONGEST_SPAN
from genodiff.scoring.methods import AUTO, name_methods
from genodiff.variants.scored_variants import (
    ALL_COLUMNS,
    VCF_TYPES,
    CopyScore,
    ScoredRecord,
    ScoreForm,
    describe_alts,
    describe_copy,
    format_value,
)

_PREFIX, _FILTER = "GD_", "gd_"
_OURS = re.compile(
    r"##(?:(?:(?:INFO|FORMAT)=<ID=GD_|FILTER=<ID=gd_)|genodiff_score=)|"
    r'##INFO=<ID=AA,.*"genodiff: '
)
_THEIRS, _GIVEN = "##INFO=<ID=AA,", "GD_ANC"
"""INFO/AA of the input is not replaced: the ancestral base is GD_ANC then."""
_CONTIG = re.compile(r"(##contig=<(?:.*,)?ID=)([^,>]+)")
Fields = dict[str, tuple[str, str]]
"""Names → the column of a table (`describe_alts`) and the meaning."""
_FIELDS: Fields = {
    "GD_SCORE": ("score", "log-likelihood of ALT minus REF, {unit}; positive: ALT is likelier"),
    "GD_SE": ("se", "standard error of GD_SCORE over random masks, {unit}; 0: nothing drawn"),
    "GD_METHOD": ("method", "method: {methods}"),
    "GD_N": ("n_evaluations", "number of windows evaluated by the network"),
    "GD_FLAGS": (
        "flags",
        "why there is no score, or a remark about it; joined by &; too_long: more than "
        "{longest:,} bases differ (--longest moves this limit)",
    ),
    "GD_NORMAL": ("normal", "CHROM:POS:REF:ALT, trimmed and left-aligned, where it differs"),
}
_RANK_FIELDS: Fields = {
    "GD_PCT": (
        "percentile",
        "percentile of GD_SCORE among random variants of GD_BG; low: ALT is less likely than most "
        "of them; it does not imply disease",
    ),
    "GD_Z": ("z", "GD_SCORE minus the mean of those random variants, over their deviation"),
    "GD_PHRED": (
        "phred",
        "-10 log10 of the share of those random variants with as low a score, this one counted",
    ),
    "GD_BG": ("background", "kind of the random variants that it was compared with"),
    "GD_BGN": ("n_background", "how many random variants of this kind were scored"),
}
_VOTES_FIELDS: Fields = {
    "GD_VOTES": (
        "votes",
        "phylogenetically weighted log-ratio of relatives with ALT to those with REF, {unit}",
    ),
    "GD_RS": (
        "rs",
        "rejected substitutions of the site, with the ancestral base in the target's place",
    ),
}
_ANCESTRAL = "ancestral base by related genomes, REF or one of the ALTs"
_AAP = "probability that it is the ancestral one of them"
_CONSEQUENCE_FIELDS: Fields = {
    "GD_GENE": ("gene", "gene of the transcript in which ALT has the most severe consequence"),
    "GD_CSQ": ("consequence", "that consequence, terms of the Sequence Ontology joined by &"),
    "GD_AA": ("protein", "the change of amino acids that it makes, such as A12V"),
    "GD_TX": (
        "transcripts",
        "each transcript, the most severe first, as transcript|gene|terms joined by +|change; "
        "joined by &",
    ),
}
_META = "##FORMAT=<ID=GD_"
_COLUMNS = 3  # QUAL, FILTER and INFO stand before FORMAT
_COPY_FIELDS: Fields = {
    "GD_HAP": (
        "score",
        "log-likelihood of the haplotype that contains the ALT, minus the reference's, {unit}; "
        "one value for each copy in the order of GT, as in all GD_ fields",
    ),
    "GD_HAPSE": ("se", "standard error of GD_HAP over random masks, {unit}; 0: nothing drawn"),
    "GD_HAPM": ("method", "method: {methods}"),
    "GD_HAPN": ("variants", "number of its variants; with 1 it has the score of its variant"),
    "GD_HAPID": ("place", "FIRST-LAST position that it changes, the same at all its variants"),
    "GD_HAPF": ("flags", "why there is no score, or a remark about it; joined by &"),
}


def _name_contig(line: str, contigs: Mapping[str, int]) -> str:
    """A line of a header; one of a contig has its name in the genome."""
    found = _CONTIG.match(line)
    name = found and find_contig(found[2], contigs, found[2])
    return line if found is None or not name else f"{found[1]}{name}{line[found.end() :]}"


def name_ancestral(header: VcfHeader | None) -> str:
    """The field of INFO that has the ancestral base."""
    meta = header.meta if header else []
    given = any(line.startswith(_THEIRS) and not _OURS.match(line) for line in meta)
    return _GIVEN if given else "AA"


def make_header(header: VcfHeader | None, form: ScoreForm) -> list[str]:
    """The lines before the records; `header` is the input's."""
    meta = [line for line in (header.meta if header else []) if not _OURS.match(line)]
    meta = [_name_contig(line, form.genome.contigs) for line in meta]  # as the records are now
    if header is None:
        meta = ["##fileformat=VCFv4.2"]
    if not any(line.startswith("##contig=") for line in meta):
        meta += [f"##contig=<ID={name},length={n}>" for name, n in form.genome.contigs.items()]
    words = {
        "unit": form.unit,
        "methods": name_methods(str(form.about.get("method", AUTO))),
        "longest": form.about.get("longest", LONGEST_SPAN),
    }

    def declare(kind: str, number: str, fields: Fields) -> None:
        for name, (key, meaning) in fields.items():
            of = VCF_TYPES.get(ALL_COLUMNS.get(key), "String")
            told = f'Type={of},Description="genodiff: {meaning.format(**words)}"'
            meta.append(f"##{kind}=<ID={name},Number={number},{told}>")

    ranks = {} if form.find_rank is None else _RANK_FIELDS
    declare("INFO", "A", {**_FIELDS, **ranks, **(_VOTES_FIELDS if form.votes else {})})
    if form.votes:
        ancestral = {name_ancestral(header): ("ancestral", _ANCESTRAL)}
        declare("INFO", "1", {**ancestral, "GD_AAP": ("p_ancestral", _AAP)})
    declare("FORMAT", ".", {} if form.samples is None else _COPY_FIELDS)
    declare("INFO", "A", {} if form.consequences is None else _CONSEQUENCE_FIELDS)
    for reason in Unscorable:
        told = f"genodiff: no score, {reason.meaning}".replace('"', "'")
        meta.append(f'##FILTER=<ID={_FILTER}{reason},Description="{told}">')
    said = ",".join(f"{key}={value}" for key, value in form.about.items())
    meta.append(f"##genodiff_score=<{said}>")
    return [*meta, header.columns if header else "\t".join(COLUMNS)]


def format_records(
    scored: Iterable[ScoredRecord], header: VcfHeader | None, form: ScoreForm
) -> Iterator[str]:
    """The lines of all records; what an earlier call of ours added to samples is replaced."""
    again = header is not None and any(line.startswith(_META) for line in header.meta)
    ancestral = name_ancestral(header)
    for one in scored:
        plain = one._replace(record=remove_our_fields(one.record)) if again else one
        record = add_haplotype_fields(plain, form)
        yield format_record(plain._replace(record=record), form, ancestral)


def format_record(scored: ScoredRecord, form: ScoreForm, ancestral: str = "AA") -> str:
    """One record with its scores, and what stands beside them.

    `ancestral` is what `name_ancestral` gives.
    """
    record, scores = scored.record, scored.scores
    qual, filters, info, *rest = record.rest or (".", ".", ".")
    kept = [one for one in filters.split(";") if not one.startswith(_FILTER) and one != "."]
    if all(score.value is None for score in scores):
        kept = [one for one in kept if one != "PASS"]
        kept += dict.fromkeys(f"{_FILTER}{score.flags[0]}" for score in scores)
    items = [one for one in info.split(";") if not one.startswith(_PREFIX) and one != "."]
    if form.votes and ancestral == "AA":  # of an earlier call, or of no header
        items = [one for one in items if not one.startswith("AA=")]
    if record.alts:
        rows = describe_alts(scored, form._replace(samples=None))
        every = _FIELDS | _RANK_FIELDS | _VOTES_FIELDS | _CONSEQUENCE_FIELDS
        for name, (key, _) in every.items():
            if key not in rows[0]:
                continue
            values = [format_value(row[key]) for row in rows]
            if any(value != "." for value in values):
                items.append(f"{name}={','.join(values)}")
        if form.votes and rows[0]["ancestral"] is not None:
            chance = format_value(rows[0]["p_ancestral"])
            items += [f"{ancestral}={rows[0]['ancestral']}", f"GD_AAP={chance}"]
    fields = (
        record.chrom, str(record.pos), record.id, record.ref, ",".join(record.alts) or ".", qual,
        ";".join(kept) or ".", ";".join(items) or ".", *rest,
    )  # fmt: skip
    return "\t".join(fields)


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
    for name, (key, _) in _COPY_FIELDS.items():
        values = [_join_copies(copies.get(i, ()), key, form) for i in range(len(samples))]
        if any(value != "." for value in values):
            added.append((name, values))
    width = keys.count(":") + 1
    columns = [":".join([keys, *(name for name, _ in added)])]
    for sample, text in enumerate(samples):
        given = text.split(":")
        given += ["."] * (width - len(given))  # the last values may be left out
        columns.append(":".join([*given, *(values[sample] for _, values in added)]))
    return replace(record, rest=(*head, *columns))


def _join_copies(copies: Sequence[CopyScore], key: str, form: ScoreForm) -> str:
    if not copies:
        return "."
    row = ["."] * copies[0].ploidy
    for one in copies:
        told = describe_copy(one, form) | {"place": f"{one.first}-{one.last}"}
        row[one.copy] = format_value(told[key]) if one.variants or key != "place" else "."
    return "." if set(row) == {"."} else ",".join(row)
