"""Score variants: how much likelier a model finds ALT than REF.

Positive is likelier. VCF, BCF, CSV, TSV, JSON lines and parquet come in, also those of CADD and of
this verb; VCF, TSV (in CADD's order of columns), parquet and JSON lines go out. Records stay in
their order, and none is dropped: an ALT that cannot be scored has its reason. The same command goes
on where an interrupted one was.
"""

import json as json_module
import logging
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from genodiff.api.score import AUTO, MAX_EVALUATIONS, STANDARD_ERROR, describe_methods
from genodiff.api.score import score as write_scores
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    Memory,
    ModelPath,
    Plan,
    RelativeFiles,
    Strains,
    check_file,
    convert_whole_number,
    print_plan,
    stop_on_sigterm,
)
from genodiff.errors import UsageError
from genodiff.io.counts import format_count
from genodiff.io.progress import format_duration

_log = logging.getLogger("genodiff")


def _length_or_twice(kind: Any, tokens: Sequence[Token]) -> int | str:
    return "2x" if tokens[0].value == "2x" else convert_whole_number(kind, tokens)


def score(
    run: ModelPath,
    variants: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="VCF, BCF, CSV, TSV, JSON lines or parquet (chrom, pos, ref, alt); - for stdin.",
        ),
    ] = None,
    *,
    fasta: Annotated[str, Parameter(help="The genome that the variants are of.")],
    out: Annotated[
        str | None,
        OUTPUT,
        Parameter(
            help=".vcf, .tsv, .parquet or .jsonl; .vcf.gz and .tsv.gz get an index; - for stdout."
        ),
    ] = None,
    method: Annotated[str, Parameter(help=describe_methods())] = AUTO,
    se: Annotated[
        float, Parameter(help="Standard error, in nats, that nelbo goes on to.")
    ] = STANDARD_ERROR,
    max_evaluations: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Evaluations of one variant after which nelbo stops above --se, with a flag.",
        ),
    ] = MAX_EVALUATIONS,
    context: Annotated[
        int | Literal["2x"] | None,
        Parameter(
            converter=_length_or_twice,
            help="Bases of a window (default: the trained length); 2x scores at double context as "
            "well, and flags what moves.",
        ),
    ] = None,
    exact: Annotated[
        bool, Parameter(negative="", help="Give every SNV an evaluation of its own.")
    ] = False,
    unit: Annotated[
        Literal["nats", "bits"],
        Parameter(help="Unit of scores: nats (natural logarithm) or bits (1 bit is 0.69 nats)."),
    ] = "nats",
    background: Annotated[
        str,
        Parameter(
            help="Rank scores among random variants of the genome: off, on (10,000), or how many. "
            "They cost evaluations once, and are kept (see --plan)."
        ),
    ] = "off",
    haplotypes: Annotated[
        bool,
        Parameter(
            negative="",
            help="Score the phased variants of one copy together too, from GT and PS: as FORMAT "
            "fields of a VCF, or a column of a table. They cost evaluations (see --plan).",
        ),
    ] = False,
    features: Annotated[
        str | None,
        Parameter(
            help="Genes (GFF3, GTF, BED12, GenBank): puts the consequence of each variant beside "
            "its score (missense, splice donor, ...)."
        ),
    ] = None,
    genetic_code: Annotated[
        list[str] | None,
        Parameter(
            help="CONTIG=N, with --features: NCBI's number of a contig's genetic code, where the "
            "annotation does not say it; chrM=2. May be given several times.",
            negative="",
        ),
    ] = None,
    region: Annotated[
        list[str] | None,
        Parameter(
            name=["--region", "--regions"],
            help="Only variants in chr1:1,000-2,000, 1-based and inclusive; may be given several "
            "times.",
            negative="",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Windows at a time: changes speed and memory, never the scores (default: about "
            "32,768 bases).",
        ),
    ] = None,
    memory: Memory = None,
    relatives: RelativeFiles = None,
    strains: Strains = False,
    shard: Annotated[
        str | None, Parameter(help="i/n: the i-th of n parts; `genodiff merge` joins them.")
    ] = None,
    allow_mismatches: Annotated[
        bool,
        Parameter(
            negative="",
            help="Records that do not fit the FASTA are marked, and are no error.",
        ),
    ] = False,
    fresh: Annotated[
        bool, Parameter(negative="", help="Do not go on after the scores kept in OUT.partial.")
    ] = False,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON line for each ALT on stdout.")
    ] = False,
    plan: Plan = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Score variants, and write them with their scores."""
    common.prepare()
    variants = check_file(run, variants, "score RUN VARIANTS")
    if out is None and not json and not plan:
        raise UsageError("no file to write", fix="give --out FILE; - is stdout")
    if json and out not in (None, "-"):
        raise UsageError(
            "--json is for stdout, and --out is a file", fix="give --out x.jsonl alone"
        )
    target = "-" if out is None else out
    if target == "" or (target != "-" and target.startswith("-")):
        raise UsageError(f"--out needs the name of a file, not {target!r}", fix="write ./-name")
    with stop_on_sigterm():
        told = write_scores(
            run,
            variants,
            fasta=fasta,
            out=target,
            method=method,
            se=se,
            max_evaluations=max_evaluations,
            context=context,
            exact=exact,
            unit=unit,
            batch_size=batch_size,
            memory=memory,
            relatives=relatives or (),
            strains=strains,
            region=region or (),
            shard=shard,
            background=background,
            haplotypes=haplotypes,
            features=features,
            genetic_code=genetic_code or (),
            allow_mismatches=allow_mismatches,
            seed=common.seed,
            device=common.device,
            json=json,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    if plan:
        if json:
            print(json_module.dumps(told))
        else:
            print_plan(told, 8)
        return
    _log.info(
        "%s: %s, %s scored, %s not, in %s",
        target,
        format_count(told["records"], "record"),
        format_count(told["scored"], "ALT"),
        f"{sum(told['unscored'].values()):,}",
        format_duration(told["seconds"]),
    )
