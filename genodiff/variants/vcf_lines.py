"""Scores of variants as VCF: the lines as they were read, with INFO and FILTER added.

Each field of INFO has a value for each ALT (Number=A), `.` where there is none. FILTER tells why a
record has no score at all. What an earlier call of ours added is replaced.
"""

import re
from collections.abc import Iterable, Iterator

from genodiff.io.variants import Unscorable
from genodiff.io.vcf import COLUMNS, VcfHeader
from genodiff.scoring.methods import AUTO, name_methods
from genodiff.variants.haplotype_vcf import (
    add_haplotype_fields,
    has_our_fields,
    list_format_lines,
    remove_our_fields,
)
from genodiff.variants.scored_variants import (
    ScoredRecord,
    ScoreForm,
    describe_alts,
    format_value,
)

_PREFIX, _FILTER = "GD_", "gd_"
_OURS = re.compile(r"##(?:(?:(?:INFO|FORMAT)=<ID=GD_|FILTER=<ID=gd_)|genodiff_score=)")
_FIELDS = (
    (
        "GD_SCORE",
        "Float",
        "log-likelihood of ALT minus REF, {unit}; positive: ALT is likelier",
    ),
    ("GD_SE", "Float", "standard error of GD_SCORE over random masks, {unit}; 0: nothing drawn"),
    ("GD_METHOD", "String", "how it was scored: {methods}"),
    ("GD_N", "Integer", "windows that the network read for it"),
    ("GD_FLAGS", "String", "why there is no score, or what to know about it; joined by &"),
    ("GD_NORMAL", "String", "CHROM:POS:REF:ALT, trimmed and left-aligned, where it differs"),
)
_KEYS = ("score", "se", "method", "n_evaluations", "flags", "normal")
_RANK_FIELDS = (
    (
        "GD_PCT",
        "Float",
        "percentile of GD_SCORE among random variants of GD_BG; low: ALT is less likely than most "
        "of them; it says nothing of disease",
    ),
    ("GD_Z", "Float", "GD_SCORE minus the mean of those random variants, over their deviation"),
    (
        "GD_PHRED",
        "Float",
        "-10 log10 of the share of those random variants with as low a score, this one counted",
    ),
    ("GD_BG", "String", "kind of the random variants that it was compared with"),
    ("GD_BGN", "Integer", "how many random variants of this kind were scored"),
)
_RANK_KEYS = ("percentile", "z", "phred", "background", "n_background")
_VOTES_FIELDS = (
    (
        "GD_VOTES",
        "Float",
        "votes of relatives for ALT beside REF, {unit}; positive: more lines of descent have ALT",
    ),
)
_CONSEQUENCE_FIELDS = (
    ("GD_GENE", "gene", "gene of the transcript in which ALT has the most severe consequence"),
    ("GD_CSQ", "consequence", "that consequence, terms of the Sequence Ontology joined by &"),
    ("GD_AA", "protein", "the change of amino acids that it makes, such as A12V"),
    (
        "GD_TX",
        "transcripts",
        "each transcript, the most severe first, as transcript|gene|terms joined by +|change; "
        "joined by &",
    ),
)
_SHOWN = [(name, key) for (name, _, _), key in zip(_FIELDS, _KEYS, strict=True)]
_RANKS_SHOWN = [(name, key) for (name, _, _), key in zip(_RANK_FIELDS, _RANK_KEYS, strict=True)]


def make_header(header: VcfHeader | None, form: ScoreForm) -> list[str]:
    """The lines before the records; `header` is the input's."""
    meta = [line for line in (header.meta if header else []) if not _OURS.match(line)]
    if header is None:
        meta = ["##fileformat=VCFv4.2"]
    if not any(line.startswith("##contig=") for line in meta):
        meta += [f"##contig=<ID={name},length={n}>" for name, n in form.genome.contigs.items()]
    asked = str(form.about.get("method", AUTO))
    methods = name_methods(asked)
    fields = _FIELDS + (() if form.find_rank is None else _RANK_FIELDS)
    for name, kind, meaning in fields + (_VOTES_FIELDS if form.votes else ()):
        told = f"genodiff: {meaning.format(unit=form.unit, methods=methods)}"
        meta.append(f'##INFO=<ID={name},Number=A,Type={kind},Description="{told}">')
    if form.samples is not None:
        meta += list_format_lines(form.unit, asked)
    if form.consequences is not None:
        meta += [
            f'##INFO=<ID={name},Number=A,Type=String,Description="genodiff: {meaning}">'
            for name, _, meaning in _CONSEQUENCE_FIELDS
        ]
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
    again = has_our_fields(header)
    for one in scored:
        plain = one._replace(record=remove_our_fields(one.record)) if again else one
        yield format_record(plain._replace(record=add_haplotype_fields(plain, form)), form)


def format_record(scored: ScoredRecord, form: ScoreForm) -> str:
    """One record with its scores, and what stands beside them."""
    record, scores = scored.record, scored.scores
    qual, filters, info, *rest = record.rest or (".", ".", ".")
    kept = [one for one in filters.split(";") if not one.startswith(_FILTER) and one != "."]
    if all(score.value is None for score in scores):
        kept = [one for one in kept if one != "PASS"]
        kept += dict.fromkeys(f"{_FILTER}{score.flags[0]}" for score in scores)
    items = [one for one in info.split(";") if not one.startswith(_PREFIX) and one != "."]
    if record.alts:
        rows = describe_alts(scored, form._replace(samples=None))
        shown = _SHOWN if form.find_rank is None else _SHOWN + _RANKS_SHOWN
        shown = [*shown, ("GD_VOTES", "votes")] if form.votes else shown
        told = () if form.consequences is None else _CONSEQUENCE_FIELDS
        for name, key in (*shown, *((name, key) for name, key, _ in told)):
            values = [format_value(row[key]) for row in rows]
            if any(value != "." for value in values):
                items.append(f"{name}={','.join(values)}")
    fields = (
        record.chrom, str(record.pos), record.id, record.ref, ",".join(record.alts) or ".", qual,
        ";".join(kept) or ".", ";".join(items) or ".", *rest,
    )  # fmt: skip
    return "\t".join(fields)
