# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

class ModelMaps:
    """What `genodiff ism`, `genodiff dependencies` and `genodiff tracks` write, as arrays."""

    def ism(
        self,
        /,
        sequences: typing.Any,
        *,
        region: collections.abc.Sequence[str] = (),
        bed: str | pathlib.Path | None = None,
        context: int | None = None,
        unit: typing.Literal['nats', 'bits'] = 'nats',
        memory: typing.Literal['on', 'off'] | None = None,
        batch_size: int = 8,
        label: str | None = None,
    ) -> typing.Any:
        """Scores (4, L), float64, of every base in place of every base: saturation mutagenesis.

        Rows are A, C, G and T, as in one-hot arrays (N, 4, L). A score is log p(base | all others)
        − log p(reference | all others) in `unit`; the reference's is 0, and a column at N is NaN. Of a
        fine-tuned model it is the change of the log-odds of the class `label`, or of the value of a
        regression.

        One sequence gives one array, several a list. `sequences` may be a FASTA file; `region` or `bed`
        then say which parts, and give a list. A row of `bed` on - is read as its reverse complement, as
        if that were the sequence. Raises `UsageError` for a model of text.

        >>> m.ism("ACGTACGT").shape
        (4, 8)

        Args:
            sequences: FASTA file; each record is a region unless --region or --bed says so.
            region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
            bed: BED file of regions; a row on - is read as its reverse complement.
            context: Bases of a window (default: the trained length).
            unit: Unit of what is written; 1 bit is 0.69 nats.
            memory: on: with a memory of the training genome, each window's own locus left out (default:
                on for a run of train --memory).
            batch_size: Windows at a time: changes the speed, never the map.
            label: Of a fine-tuned classifier: the class whose log-odds change.
        """

    def dependencies(
        self,
        /,
        sequences: typing.Any,
        *,
        region: collections.abc.Sequence[str] = (),
        bed: str | pathlib.Path | None = None,
        context: int | None = None,
        unit: typing.Literal['nats', 'bits'] = 'nats',
        memory: typing.Literal['on', 'off'] | None = None,
        batch_size: int = 8,
        every: int = 16,
        exact: bool = False,
    ) -> typing.Any:
        """The dependency map of a sequence of R bases: how a change at one base moves another.

        A map has `dependency` (R, R), float32, source by target: the largest change of the log-odds of
        a base at the target, with the target masked, by putting another base at the source. `change`
        and `base` (R, 4, R) have it for each substitution, signed, and the base that moved most. The
        diagonal is 0, rows and columns at N are NaN.

        Targets `every` bases apart are masked together, which is quicker and not exact; `exact` masks
        each by itself. One sequence gives one map, several a list; regions as in `ism`. Raises
        `UsageError` for more than 1,024 bases, and for a model of text.

        >>> m.dependencies("ACGTACGT", exact=True).dependency.shape
        (8, 8)

        Args:
            sequences: FASTA file; each record is a region unless --region or --bed says so.
            region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
            bed: BED file of regions; a row on - is read as its reverse complement.
            context: Bases of a window (default: the trained length).
            unit: Unit of what is written; 1 bit is 0.69 nats.
            memory: on: with a memory of the training genome, each window's own locus left out (default:
                on for a run of train --memory).
            batch_size: Windows at a time: changes the speed, never the map.
            every: Targets this many bases apart are masked together; what that changes is told.
            exact: Mask each target by itself: 3 evaluations a pair.
        """

    def tracks(
        self,
        /,
        sequences: typing.Any,
        *,
        region: collections.abc.Sequence[str] = (),
        bed: str | pathlib.Path | None = None,
        every: int | None = None,
        context: int | None = None,
        memory: typing.Literal['on', 'off'] | None = None,
        batch_size: int = 8,
    ) -> typing.Any:
        """What the model says of each base of a sequence given all others.

        The tracks of L bases have `p` (L, 4), float32, the chances of A, C, G and T; `logo` (L, 4), the
        heights p times information; and `entropy`, `information` and `surprisal` (L,), in bits.
        `letters` are those of the reference. N has NaN. Of a model with relatives, `related` has what
        these say, by name (`how-to/tracks.md`).

        Each base is masked by itself: L evaluations. `every=m` masks every m-th base of a tile at once,
        which is quicker and not exact. One sequence gives one object, several a list; regions as in
        `ism`, but tracks run along the genome: the strand of a row is not used. Raises `UsageError` for
        a model of text.

        >>> m.tracks("ACGTACGT").p.shape
        (8, 4)

        Args:
            sequences: FASTA file; all of it is read unless --region or --bed says so.
            region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
            bed: BED file of regions; the strand column is not used: tracks run along the genome.
            every: Mask every N-th base in one pass (approximate; default: each by itself). Smaller N is
                faster: 8 needs 8 passes per window, 64 needs 64.
            context: Bases of a window (default: the trained length).
            memory: on: with a memory of the training genome, each window's own locus left out (default:
                on for a run of train --memory).
            batch_size: Windows at a time: changes the speed, never the map.
        """
