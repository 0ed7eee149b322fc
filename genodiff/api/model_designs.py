"""Designs in memory: `m.redesign`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from genodiff.api.sequences import is_single, read_records
from genodiff.kernels.defaults import own_defaults

_MARK = b"?"


class ModelDesigns:
    """What `genodiff redesign` writes, as strings."""

    memory: Literal["on", "off"] | None

    @own_defaults()
    def redesign(
        self,
        sequences: Any,
        n: int = 1,
        *,
        regions: Sequence[tuple[int, int]] | None = None,
        rules: Mapping[str, Any] | None = None,
        seed: int = 1,
        sampler: str | None = None,
        steps: int | None = None,
        temperature: float = 1.0,
        stride: int | None = None,
        batch_size: int | None = None,
        most_states: int | None = None,
        oracle: Callable[..., Any] | str | Path | None = None,
        guide: Mapping[str, Any] | None = None,
        oracle_flank: int = 0,
        memory: str | None = None,
    ) -> Any:
        """`n` designs of each sequence, whole, that satisfy `rules`: a list of strings.

        Of each sequence the intervals `regions` (0-based, half-open) are designed anew and judged;
        all other letters stay. Without `regions`, N is any base and an IUPAC code one of its set,
        and the whole sequence is judged. A circular `SeqRecord` or GenBank record goes round, and a
        region of it may end beyond its last base. `rules` are constraints by name, as the flags of
        `genodiff redesign`: `{"avoid": ["GGTCTC"], "max_run": 5, "max_edits": 4}`.

        With an `oracle` (a callable of a list of strings, "module:function", or the folder of a
        fine-tuned model) the designs are guided to what it likes, by SMC at strength 1. `guide` are
        further arguments of `genodiff.api.guiding.GuideSettings`, such as `{"strength": 2}` or
        `{"guidance": "best-of-n"}`. It sees each region and `oracle_flank` bases on both sides.
        `memory` "on" mixes in what the training genome holds; a sequence that is a contig of it
        leaves each region's own locus out (None: where the run was trained with a memory).

        One sequence gives a list, several a list of lists. Raises `UsageError` with a minimal
        conflict where nothing satisfies all, before the network runs.

        >>> m.redesign("ACGTNNNNNNACGT", 4, rules={"require": ["GAATTC"]})
        >>> m.redesign("ACGTNNNNNNACGT", oracle=lambda some: [s.count("TA") for s in some])
        """
        from genodiff.api.redesign import design_sequences
        from genodiff.generate.sampling import Sampling

        memory = memory or self.memory
        how = Sampling(sampler, steps, temperature, 1.0, stride, False, batch_size, memory=memory)
        given = read_records(sequences, extra=_MARK, goes_round=True)
        if oracle is not None:
            guide = {"guidance": "smc", **(guide or {}), "oracle": oracle}
        model: Any = self
        what = (regions, rules, seed, most_states, guide, oracle_flank)
        found = design_sequences(model, given, n, how, *what)
        return found[0] if is_single(sequences, _MARK) else found
