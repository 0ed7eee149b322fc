"""Design regions of DNA anew, under constraints that every design satisfies."""

from typing import Annotated, Any

from cyclopts import Parameter

from genodiff.api.redesign import redesign as write_designs
from genodiff.cli.common import (
    COUNT,
    OUTPUT,
    Common,
    Force,
    Json,
    Memory,
    OptionalModelPath,
    Plan,
    RelativeFiles,
    Screen,
    ScreenTimeout,
    Strains,
    convert_whole_number,
    print_told,
    stop_on_sigterm,
)
from genodiff.cli.guidance_flags import GuidanceFlags, Label
from genodiff.errors import UsageError

Words = list[str] | None


def redesign(
    run: OptionalModelPath = None,
    *,
    out: Annotated[
        str | None, OUTPUT, Parameter(help="FASTA file to write; - for stdout, .gz for BGZF.")
    ] = None,
    fasta: Annotated[str | None, Parameter(help="The genome that the regions are of.")] = None,
    circular: Annotated[
        Words,
        Parameter(
            negative="",
            help="A contig that goes round; a GenBank file or [topology=circular] in a FASTA "
            "header says so by itself. Constraints and windows cross its origin, and so may a "
            "region, pX:290-10.",
        ),
    ] = None,
    bed: Annotated[
        str | None,
        Parameter(
            help="BED file of regions to design. The strand column is not used: designs are edits "
            "along the genome, and --protein says which way a gene is read."
        ),
    ] = None,
    region: Annotated[
        Words,
        Parameter(
            name=["--region", "--regions"],
            help="As --bed: chr1:1,000-2,000, 1-based and inclusive; may be given several times.",
            negative="",
        ),
    ] = None,
    template: Annotated[
        str | None,
        Parameter(help="FASTA file in which N is any base, an IUPAC code one of its set."),
    ] = None,
    n: Annotated[int | None, COUNT, Parameter(help="Designs of each region (default 1).")] = None,
    max_edits: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Bases of a region that may change; an N or another code that is filled is none.",
        ),
    ] = None,
    avoid: Annotated[
        Words, Parameter(negative="", help="A word (IUPAC) to avoid, on both strands.")
    ] = None,
    require: Annotated[
        Words, Parameter(negative="", help="A word that each region holds, on either strand.")
    ] = None,
    enzymes: Annotated[
        Words, Parameter(negative="", help="Restriction enzymes without a site: EcoRI,BsaI.")
    ] = None,
    gc: Annotated[
        Words,
        Parameter(negative="", help="Share of G and C: 30-70%, in windows 30-70%/50:25."),
    ] = None,
    max_run: Annotated[
        int | None, Parameter(converter=convert_whole_number, help="Longest run of one base.")
    ] = None,
    protein: Annotated[
        Words,
        Parameter(
            negative="",
            help="Keep what is coded: forward or reverse (each region is a frame), or "
            "chr1:100-399:- (a frame of the genome).",
        ),
    ] = None,
    no_stop: Annotated[
        Words, Parameter(negative="", help="As --protein: a frame without stop codons.")
    ] = None,
    genetic_code: Annotated[
        int | None,
        Parameter(converter=convert_whole_number, help="NCBI's number of the code (default 1)."),
    ] = None,
    codon_usage: Annotated[
        str | None,
        Parameter(
            help="Of --protein: weigh codons as a species (e_coli, h_sapiens) or a file has them."
        ),
    ] = None,
    allow_stops: Annotated[
        bool,
        Parameter(
            negative="",
            help="Of --protein and --no-stop: take a frame that holds stop codons before its end "
            "as it is. Otherwise it is refused: most often it is the other strand's.",
        ),
    ] = False,
    keep: Annotated[
        Words, Parameter(negative="", help="Bases that stay within the regions: chr1:120-130.")
    ] = None,
    no_repeats: Annotated[
        Words,
        Parameter(negative="", help="No stretch longer than 20 that a file has: 20:vector.fa."),
    ] = None,
    constraints: Annotated[
        str | None, Parameter(help="YAML or JSON file with more constraints.")
    ] = None,
    vcf: Annotated[
        str | None, Parameter(help="The edits, a sample for each design (default: OUT.vcf).")
    ] = None,
    changes: Annotated[
        str | None, Parameter(help="BED file of what changed (default: OUT.bed).")
    ] = None,
    sampler: Annotated[
        str | None, Parameter(help="ancestral, confidence, first-hitting [the objective's own].")
    ] = None,
    steps: Annotated[
        int | None, Parameter(converter=convert_whole_number, help="Steps per window (256).")
    ] = None,
    temperature: Annotated[float, Parameter(help="1 is the model's own law.")] = 1.0,
    stride: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="New bases per window beyond the trained length (default: half of it).",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Designs at a time: changes the speed, never the bytes.",
        ),
    ] = None,
    line_width: Annotated[
        int,
        Parameter(converter=convert_whole_number, help="Bases per line; 0: one line per sequence."),
    ] = 60,
    max_states: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="States that the constraints of a region may need (default 8,388,608).",
        ),
    ] = None,
    sidecar: Annotated[
        str | None, Parameter(help="Where the sidecar goes (default: OUT.json, beside the file).")
    ] = None,
    screen: Screen = None,
    screen_timeout: ScreenTimeout = None,
    fresh: Annotated[
        bool, Parameter(negative="", help="Do not go on after the designs kept in OUT.partial.")
    ] = False,
    label: Label = None,
    guide: GuidanceFlags = GuidanceFlags(),
    oracle_flank: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Bases on both sides of a region that the oracle sees too.",
        ),
    ] = 0,
    memory: Memory = None,
    relatives: RelativeFiles = None,
    strains: Strains = False,
    plan: Plan = False,
    json: Json = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Design regions anew, and write the designs with their edits as VCF and BED.

    Every design satisfies every constraint. What cannot be met is said before the network runs,
    with a minimal conflict. With --guidance smc, beam, best-of-n or cfg they are guided too.
    The same command goes on where an interrupted one was.
    """
    common.prepare()
    if out is None:
        raise UsageError("no file to write", fix="give --out FILE; - is stdout")
    if json and out == "-" and not plan:
        raise UsageError("--json and designs cannot both go to stdout", fix="give --out FILE")
    for flag, value in (("--out", out), ("--vcf", vcf), ("--changes", changes)):
        if value == "" or (value is not None and value != "-" and value.startswith("-")):
            raise UsageError(
                f"{flag} needs the name of a file, not {value!r}",
                fix="write ./-name for such a name",
            )
    given: dict[str, Any] = {
        "avoid": avoid, "require": require, "enzymes": enzymes, "gc": gc, "max_run": max_run,
        "protein": protein, "no_stop": no_stop, "genetic_code": genetic_code, "keep": keep,
        "no_repeats": no_repeats, "max_edits": max_edits, "codon_usage": codon_usage,
        "allow_stops": allow_stops or None,
    }  # fmt: skip
    with stop_on_sigterm():
        told = write_designs(
            run,
            out=out,
            fasta=fasta,
            circular=circular or (),
            bed=bed,
            region=region or (),
            template=template,
            n=n,
            rules={name: value for name, value in given.items() if value is not None},
            constraints=constraints,
            vcf=vcf,
            changes=changes,
            sampler=sampler,
            steps=steps,
            temperature=temperature,
            stride=stride,
            batch_size=batch_size,
            line_width=line_width,
            most_states=max_states,
            sidecar=sidecar,
            screen=screen,
            screen_timeout=screen_timeout,
            label=label,
            guide=guide.read(),
            oracle_flank=oracle_flank,
            memory=memory,
            relatives=relatives or (),
            strains=strains,
            seed=common.seed,
            device=common.device,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    print_told(told, json=json)
