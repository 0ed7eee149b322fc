"""Sample DNA to FASTA, from nothing, into a template's N, or into regions of a genome."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from genodiff.api.sample import check_sampler, list_samplers
from genodiff.api.sample import sample as write_samples
from genodiff.cli.common import (
    COUNT,
    OUTPUT,
    Common,
    Force,
    Json,
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
from genodiff.cli.guidance_flags import GuidanceFlags, Label, read_settings
from genodiff.errors import UsageError


def _whole_or_auto(kind: Any, tokens: Sequence[Token]) -> int | str:
    return "auto" if tokens[0].value == "auto" else convert_whole_number(kind, tokens)


def sample(
    run: OptionalModelPath = None,
    *,
    fasta: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True, help="FASTA file to write; - for stdout, .gz for BGZF."
        ),
    ] = None,
    out: Annotated[
        str | None, OUTPUT, Parameter(help="The same, and of text the file to write.")
    ] = None,
    n: Annotated[
        int | None,
        COUNT,
        Parameter(help="Sequences (default 16), or fillings of each template (default 1)."),
    ] = None,
    length: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Bases per sequence (default: the trained length); more grow by windows.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="FASTA file (- for stdin) whose N and ? are filled, every other letter kept.",
        ),
    ] = None,
    bed: Annotated[
        str | None,
        Parameter(
            help="BED file: fill these bases of --template alone, whatever stands there; N "
            "elsewhere stays. The strand column is not used: bases are filled in place."
        ),
    ] = None,
    region: Annotated[
        list[str] | None,
        Parameter(
            name=["--region", "--regions"],
            help="As --bed: chr1:1,000-2,000, 1-based and inclusive; may be given several times.",
            negative="",
        ),
    ] = None,
    only_filled: Annotated[
        bool,
        Parameter(negative="", help="Write the regions of --bed and --region, not the genome."),
    ] = False,
    prompt: Annotated[str | None, Parameter(help="Of text: how each sample begins.")] = None,
    sampler: Annotated[
        str | None, Parameter(help=f"{', '.join(list_samplers())} [the objective's own].")
    ] = None,
    sampler_option: Annotated[
        list[str] | None,
        Parameter(
            name=["--sampler-option"],
            help="A setting of the sampler, as eta=0.1; may be given several times.",
            negative="",
        ),
    ] = None,
    steps: Annotated[
        int | Literal["auto"],
        Parameter(converter=_whole_or_auto, help="Steps per window (auto: 256, or --bits-lost)."),
    ] = "auto",
    bits_lost: Annotated[
        float | None,
        Parameter(
            help="Choose the steps: the fewest that lose so many bits per 1,000 bases, against "
            "one base at a time."
        ),
    ] = None,
    temperature: Annotated[
        float, Parameter(help="1 is the model's own law, 0 its likeliest bases.")
    ] = 1.0,
    top_p: Annotated[
        float, Parameter(help="Draw among the likeliest bases that hold this much probability.")
    ] = 1.0,
    stride: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="New bases per window beyond the trained length (default: half of it).",
        ),
    ] = None,
    memory: Annotated[
        Literal["on", "off", "novel"] | None,
        Parameter(
            help="on: with a memory of the training genome; novel: and no record copies more of it "
            "than 9 in 10 held-out sequences (default: on for a run of train --memory). Of "
            "--bed and --region each window leaves its own locus out; novel is not for them."
        ),
    ] = None,
    relatives: RelativeFiles = None,
    strains: Strains = False,
    allow_n: Annotated[
        bool, Parameter(negative="", help="Let N be drawn as well as A, C, G and T.")
    ] = False,
    batch_size: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Sequences at a time: changes the speed, never the bytes.",
        ),
    ] = None,
    line_width: Annotated[
        int,
        Parameter(converter=convert_whole_number, help="Bases per line; 0: one line per sequence."),
    ] = 60,
    sidecar: Annotated[
        str | None, Parameter(help="Where the sidecar goes (default: OUT.json, beside the file).")
    ] = None,
    domain: Annotated[
        Literal["dna", "text"] | None,
        Parameter(help="What the checkpoint is expected to hold.", show_default=False),
    ] = None,
    screen: Screen = None,
    screen_timeout: ScreenTimeout = None,
    fresh: Annotated[
        bool, Parameter(negative="", help="Do not go on after the records kept in OUT.partial.")
    ] = False,
    label: Label = None,
    guide: GuidanceFlags = GuidanceFlags(),
    plan: Plan = False,
    json: Json = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Sample, and write the sequences with their sidecar.

    The same command goes on where an interrupted one was: finished records are kept.
    """
    common.prepare()
    check_sampler(sampler)
    if fasta is not None and (domain == "text" or prompt is not None):
        raise UsageError(
            "--fasta is for DNA, and text goes to --out",
            fix="give --out FILE, or leave --domain text out",
        )
    if fasta is not None and out is not None:
        what = "--fasta and --out are both the file to write"
        fix = f"a genome to fill is read with --template {fasta}; else give one of the two"
        raise UsageError(what, fix=fix)
    target = fasta if fasta is not None else out
    if target is None:
        raise UsageError("no file to write", fix="give --out FILE, or --fasta FILE; - is stdout")
    if json and target == "-" and not plan:
        raise UsageError("--json and samples cannot both go to stdout", fix="give --fasta FILE")
    for flag, value in (("--fasta" if out is None else "--out", target), ("--template", template)):
        if value == "" or (value is not None and value != "-" and value.startswith("-")):
            raise UsageError(
                f"{flag} needs the name of a file, not {value!r}",
                fix="write ./-name for such a name",
            )
    guided = guide.read()
    with stop_on_sigterm():
        told = write_samples(
            run,
            out=target,
            n=n,
            length=length,
            template=template,
            bed=bed,
            region=region or (),
            only_filled=only_filled,
            prompt=prompt,
            sampler=sampler,
            sampler_options=read_settings(sampler_option or ()),
            memory=memory,
            relatives=relatives or (),
            strains=strains,
            steps=None if steps == "auto" else steps,
            bits_lost=bits_lost,
            temperature=temperature,
            top_p=top_p,
            stride=stride,
            allow_n=allow_n,
            batch_size=batch_size,
            line_width=line_width,
            sidecar=sidecar,
            screen=screen,
            screen_timeout=screen_timeout,
            domain="dna" if fasta is not None else domain,
            label=label,
            guide=guided,
            seed=common.seed,
            device=common.device,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    print_told(told, json=json)
