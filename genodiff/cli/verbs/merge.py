"""Put the outputs of `--shard i/n` together: the bytes of a run without shards.

They are of `genodiff score`, `embed`, `eval`, `tracks` or, of a model that labels bases, `predict`.
An evaluation is written as JSON, and added to RUN/eval.json. Tracks become a folder.
"""

import json as json_module
import logging
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.merge import merge as merge_shards
from genodiff.cli.common import OUTPUT, Common, Force, Json, stop_on_sigterm
from genodiff.errors import UsageError

_log = logging.getLogger("genodiff")


def merge(
    shards: Annotated[
        list[str] | None, Parameter(help="The shards, in any order, each with its sidecar.")
    ] = None,
    *,
    out: Annotated[
        str,
        OUTPUT,
        Parameter(help="File to write, of the shards' format, - for stdout; of tracks a folder."),
    ],
    json: Json = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write one file from all shards."""
    common.prepare()
    if json and out == "-":
        raise UsageError("--json and scores cannot both go to stdout", fix="give --out FILE")
    with stop_on_sigterm():
        told = merge_shards(shards or [], out=out, force=force)
    if json:
        print(json_module.dumps(told))
    noun = next(one for one in ("records", "windows", "bases") if one in told)
    _log.info("%s: %s %s of %d shards", out, f"{told[noun]:,}", noun, len(shards or []))
