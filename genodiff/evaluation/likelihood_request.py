"""What the likelihood of sequences in memory is asked. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.jobs.options import Seed
from genodiff.jobs.request import Option, Request


@dataclass(frozen=True, kw_only=True)
class LikelihoodRequest(Request[Any]):
    """log p (n,) in nats of each of `sequences`, exactly: that of drawing it in an order.

    `sequences` are strings, records or a FASTA file, none longer than the trained length; one
    string is one sequence. The order is a sampler's, whose law this is: over all sequences of a
    length, e to this power sums to 1. Letters other than A, C, G and T are given, and not counted.
    Raises `UsageError`, `DataError`; `CheckpointError` where a memory is not to be had.

    >>> m.log_likelihood(["ACGTACGT", "GATTACA"], order="confidence").shape
    (2,)
    """

    work: ClassVar[str] = "genodiff.evaluation.exact_order:measure_sequences"

    sequences: Annotated[Any, Option("Strings, records or a FASTA file.")] = field(kw_only=False)
    order: Annotated[
        str, Option("left-to-right, both-ends, confidence, entropy-bounded, random, ...")
    ] = "left-to-right"
    order_options: Annotated[
        Mapping[str, float] | None,
        Option(
            'Settings of the order, such as {"at_once": 4} or {"steps": 256} [one base at a time].'
        ),
    ] = None
    memory: Annotated[
        Literal["on", "off"] | None,
        Option("Retrieval from the training genome [on for a run of train --memory]."),
    ] = None
    batch_size: Annotated[int, Ge(1), Option("Sequences per batch: affects the speed only.")] = 32
    seed: Seed = 1
