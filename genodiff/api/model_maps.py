"""The maps of a model in memory: `m.ism`, `m.dependencies` and `m.tracks`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.sequences import is_single
from genodiff.kernels.defaults import own_defaults

if TYPE_CHECKING:
    from genodiff.scoring.map_files import PairMap
    from genodiff.scoring.track_values import BaseTracks


class ModelMaps:
    """What `genodiff ism`, `genodiff dependencies` and `genodiff tracks` write, as arrays."""

    memory: Literal["on", "off"] | None

    @own_defaults()
    def ism(
        self,
        sequences: Any,
        *,
        bed: str | Path | None = None,
        region: Sequence[str] = (),
        label: str | None = None,
        context: int | None = None,
        unit: Literal["nats", "bits"] = "nats",
        memory: Literal["on", "off"] | None = None,
        batch_size: int = 8,
    ) -> Any:
        """Scores (4, L), float64, of every base in place of every base: saturation mutagenesis.

        Rows are A, C, G and T, as in one-hot arrays (N, 4, L). A score is log p(base | all others)
        − log p(reference | all others) in `unit`; the reference's is 0, and a column at N is NaN.
        Of a fine-tuned model it is the change of the log-odds of the class `label`, or of the
        value of a regression.

        One sequence gives one array, several a list. `sequences` may be a FASTA file; `region`
        (chr1:1,000-2,000) or `bed` then say which parts, and give a list. A row of `bed` on - is
        read as its reverse complement, as if that were the sequence. `context` is in bases
        (default: the trained length). `memory` is that of `score_variants`. Raises `UsageError` for
        a model of text.
        """
        from genodiff.api.ism import map_saturation

        found = map_saturation(
            self, sequences, bed=bed, region=region, label=label, context=context,  # type: ignore[arg-type]
            unit=unit, memory=memory or self.memory, batch_size=batch_size,
        )  # fmt: skip
        arrays = [one.score for one in found]
        single = is_single(sequences, b"") and bed is None and not region
        return arrays[0] if single else arrays

    @own_defaults()
    def dependencies(
        self,
        sequences: Any,
        *,
        bed: str | Path | None = None,
        region: Sequence[str] = (),
        every: int = 16,
        exact: bool = False,
        context: int | None = None,
        unit: Literal["nats", "bits"] = "nats",
        memory: Literal["on", "off"] | None = None,
        batch_size: int = 8,
    ) -> Any:
        """The dependency map of a sequence of R bases: how a change at one base moves another.

        A map has `dependency` (R, R), float32, source by target: the largest change of the log-odds
        of a base at the target, with the target masked, by putting another base at the source.
        `change` and `base` (R, 4, R) have it for each substitution, signed, and the base that moved
        most. The diagonal is 0, rows and columns at N are NaN.

        Targets `every` bases apart are masked together, which is quicker and not exact; `exact`
        masks each by itself. One sequence gives one map, several a list; regions and `memory` as in
        `ism`.
        Raises `UsageError` for more than 1,024 bases, and for a model of text.
        """
        from genodiff.api.dependencies import map_dependencies

        found: list[PairMap] = map_dependencies(
            self, sequences, bed=bed, region=region, every=every, exact=exact,  # type: ignore[arg-type]
            context=context, unit=unit, memory=memory or self.memory, batch_size=batch_size,
        )  # fmt: skip
        single = is_single(sequences, b"") and bed is None and not region
        return found[0] if single else found

    @own_defaults()
    def tracks(
        self,
        sequences: Any,
        *,
        bed: str | Path | None = None,
        region: Sequence[str] = (),
        every: int | None = None,
        context: int | None = None,
        memory: Literal["on", "off"] | None = None,
        batch_size: int = 8,
    ) -> Any:
        """What the model says of each base of a sequence given all others.

        The tracks of L bases have `p` (L, 4), float32, the chances of A, C, G and T; `logo` (L, 4),
        the heights p times information; and `entropy`, `information` and `surprisal` (L,), in bits.
        `letters` are those of the reference. N has NaN.

        Each base is masked by itself: L evaluations. `every=m` masks every m-th base of a tile at
        once, which is quicker and not exact. One sequence gives one object, several a list; regions
        and `memory` as in `ism`, but tracks run along the genome: the strand of a row is not used.
        Raises `UsageError` for a model of text.
        """
        from genodiff.api.tracks import map_tracks

        found: list[BaseTracks] = map_tracks(
            self, sequences, bed=bed, region=region, every=every,  # type: ignore[arg-type]
            context=context, memory=memory or self.memory, batch_size=batch_size,
        )  # fmt: skip
        single = is_single(sequences, b"") and bed is None and not region
        return found[0] if single else found
