"""A fine-tuned model on new sequences: classes with probabilities, or values.

RUN is the folder of `genodiff finetune`, or of one of its units (a unit is one model fitted to one
task with one seed). SEQUENCES is FASTA or GenBank (- is stdin), a table (.csv, .tsv, .parquet),
intervals (BED, with --fasta: a row on - is read as its reverse complement) or, for models of text,
sentences. With --region, parts of the genome --fasta are read in its place. The fit's own protocol
is followed: what is longer than it read is cut, and strands are read as in training.

Of `genodiff finetune bases`, RUN labels each base of the genome SEQUENCES (FASTA): into x.gff3,
x.bed or a folder with bigWig files, in shards where --shard says so.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genodiff.api.predict import predict as predict_sequences
from genodiff.cli.request_flags import make_verb
from genodiff.errors import UsageError, format_count


def _arrange(values: dict[str, Any]) -> None:
    """Put RUN in its place, which may be given as --model RUN, and a table on stdout."""
    run, sequences, model = (values[name] for name in ("run", "sequences", "model"))
    if sequences is None and model is not None and Path(model).is_dir():
        run, sequences, model = model, run, None
    if run is None or (sequences is None and not values["region"] and not values["fasta"]):
        missing = "SEQUENCES" if run is not None and Path(run).is_dir() else "RUN"
        raise UsageError(f"{missing} is missing", fix="give genodiff predict RUN SEQUENCES")
    values |= {"run": run, "sequences": sequences, "model": model}
    values["out"] = values["out"] or ("" if values["json"] else "-")


def _say(told: Mapping[str, Any]) -> str:
    if "intervals" in told:
        of = format_count(len(told["intervals"]), "interval")
        return f"{told['kind']} of {format_count(told['bases'], 'base')} of {of}"
    seeds = ", ".join(str(unit["seed"]) for unit in told["units"])
    several = "s" * (len(told["units"]) > 1)
    about = f"{told['task']}, {told['model']}, seed{several} {seeds}"
    return f"{format_count(told['rows'], 'sequence')} ({about})"


predict = make_verb(predict_sequences, _say, _arrange)
