"""Fetch and index the genomes of related species, which `--relatives` reads.

RELATIVES are recipes by name, lists of genomes (.tsv: path or URL, name, species, sha256), and
FASTA files. Without any, the recipes are told.
"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.relatives import build_relatives, list_relatives
from genodiff.cli.common import OUTPUT, Common, Force, Json, Plan, convert_whole_number


def relatives(
    relatives: Annotated[
        list[str] | None, Parameter(help="Recipes by name, lists of genomes, FASTA files.")
    ] = None,
    /,
    *,
    out: Annotated[
        Path | None,
        OUTPUT,
        Parameter(help="Folder to build in, to be given to --relatives [the cache folder]."),
    ] = None,
    only: Annotated[
        list[str] | None,
        Parameter(
            help="Name of a genome to take; one or several [all].",
            negative="",
            consume_multiple=True,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Genomes built at a time (default: --threads, or as cores and memory allow).",
        ),
    ] = None,
    force: Force = False,
    plan: Plan = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Fetch and build relatives, and print what they are."""
    common.prepare()
    if not relatives:
        for row in list_relatives():
            size = f"{row['genomes']} genomes, {row['bases'] / 1e6:,.1f} Mb"
            line = f"{row['name']:<15} {size:<24} {row['built']} built  {row['description']}"
            sys.stdout.write((json_module.dumps(row) if json else line) + "\n")
        return
    built = build_relatives(
        relatives,
        out=out,
        only=only or (),
        jobs=jobs or common.threads,
        plan=plan,
        offline=common.offline,
        force=force,
    )
    if json:
        sys.stdout.write(json_module.dumps(built.row) + "\n")
        return
    print("\n".join(built.describe()))
    if not plan:
        told = " ".join(f"--relatives {one}" for one in ([out] if out else relatives))
        print(f"give {told}")
