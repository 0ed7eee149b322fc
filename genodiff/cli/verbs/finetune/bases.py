"""Fine-tune on labels at each base of a genome: genes, classes, or values of tracks.

RUN is a run or a ready model, FASTA the genome. The model is kept in the folder --out, which
`genodiff predict` reads. The same command goes on where an interrupted one was.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genodiff.api.finetune_bases import finetune_bases
from genodiff.cli.common import check_file
from genodiff.cli.request_flags import make_verb


def _say(told: Mapping[str, Any]) -> str:
    parts = [f"best epoch {told['best_epoch'] + 1} of {len(told['history'])}"]
    for part, found in told["measured"].items():
        some = [f"{name} {value:.3f}" for name, value in found.items() if value is not None]
        parts.append(f"{part}: {', '.join(some)}")
    return "; ".join(parts)


def _arrange(values: dict[str, Any]) -> None:
    check_file(Path(values["run"] or ""), values["fasta"], "finetune bases RUN FASTA")


bases = make_verb(finetune_bases, _say, _arrange)
