"""Saturation mutagenesis: every base of a region to every other, as table, arrays or picture.

The score of a substitution is log p(base) - log p(reference), given all other bases: positive where
the model finds the other base likelier. With a fine-tuned model it is the change of what the model
predicts. The same command goes on where an interrupted one was.
"""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.api.ism import ism as write_map
from genodiff.cli.common import (
    Common,
    Force,
    Json,
    Memory,
    ModelPath,
    Plan,
    stop_on_sigterm,
)
from genodiff.cli.map_flags import (
    Fresh,
    MapBed,
    MapContext,
    MapFasta,
    MapGenes,
    MapOutput,
    MapRegions,
    WindowBatch,
    check_map_output,
    print_map,
)


def ism(
    run: ModelPath,
    *,
    fasta: MapFasta,
    out: MapOutput,
    region: MapRegions = None,
    bed: MapBed = None,
    label: Annotated[
        str | None, Parameter(help="Of a fine-tuned classifier: the class whose log-odds change.")
    ] = None,
    context: MapContext = None,
    unit: Annotated[
        Literal["nats", "bits"], Parameter(help="Unit of scores; 1 bit is 0.69 nats.")
    ] = "nats",
    memory: Memory = None,
    genes: MapGenes = None,
    batch_size: WindowBatch = 8,
    fresh: Fresh = False,
    json: Json = False,
    plan: Plan = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the scores of all substitutions of regions."""
    common.prepare()
    check_map_output(out, json=json, plan=plan)
    with stop_on_sigterm():
        told = write_map(
            run,
            Path(fasta),  # a string of DNA letters would be a sequence
            out=out,
            bed=bed,
            region=region or (),
            label=label,
            context=context,
            unit=unit,
            memory=memory,
            genes=genes,
            batch_size=batch_size,
            device=common.device,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    print_map(told, out, "sites", json=json, plan=plan, evaluations=False)
