"""Build the stores of many genomes, deal them to splits, and say how training draws from them.

LIST is a table with a header line, separated by tabs: path (a file or an https:// URL), name,
weight, species, split (cluster, assembly, chromosome, train, valid, test, or a BED file), sha256.
"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.genomes import build_genomes
from genodiff.cli.common import OUTPUT, Common, Json, Plan, convert_whole_number


def genomes(
    genomes: Annotated[
        str, Parameter(name="LIST", help="A list of genomes, or the folder or URL of built ones.")
    ],
    /,
    *,
    out: Annotated[
        Path | None, OUTPUT, Parameter(help="Folder to build in (default: in the cache folder).")
    ] = None,
    jobs: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Genomes built at a time (default: --threads, or as many as there are cores).",
        ),
    ] = None,
    seq_len: Annotated[
        int,
        Parameter(converter=convert_whole_number, help="Window length to count windows by."),
    ] = 1024,
    temperature: Annotated[
        float, Parameter(help="Shares go as weight x windows^(1/T): 1 by size, high all alike.")
    ] = 1.0,
    parquet: Annotated[
        Path | None,
        Parameter(help="Also write the windows to this folder, for Hugging Face datasets."),
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="Build again even if it is there.")] = False,
    plan: Plan = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Build many genomes, and print what each holds and how often it is drawn."""
    common.prepare()
    built = build_genomes(
        genomes,
        out=out,
        jobs=jobs or common.threads,
        seq_len=seq_len,
        temperature=temperature,
        parquet=parquet,
        plan=plan,
        offline=common.offline,
        force=force,
    )
    if json:
        sys.stdout.write(json_module.dumps(built.row | {"parquet": built.parquet}) + "\n")
        return
    print("\n".join(built.describe()))
    for split, rows in built.parquet.items():
        print(f"{parquet}: {rows:,} rows of {split}")
    if not plan:
        print(f"genomes {built.path}")
