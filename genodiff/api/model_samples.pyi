# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

class ModelSamples:
    """What `genodiff sample` and `genodiff redesign` write, as strings."""

    def sample(
        self,
        /,
        n: int = 1,
        *,
        sampler: str | None = None,
        sampler_options: collections.abc.Mapping[str, float] | None = None,
        steps: int | typing.Literal['auto'] | None = 'auto',
        temperature: float = 1.0,
        top_p: float = 1.0,
        stride: int | None = None,
        allow_n: bool = False,
        batch_size: int | None = None,
        memory: typing.Literal['on', 'off', 'novel'] | None = None,
        block: int | None = None,
        seed: int = 1,
        length: int | None = None,
        prompt: str | None = None,
        records: bool = False,
    ) -> typing.Any:
        """`n` new sequences as strings, those that `genodiff sample` writes with the same settings.

        `length` is in bases, of text in tokens, and may exceed the trained length, its default.
        `prompt` is how each text begins. Record i depends on (`seed`, i) alone. With `records`, each is
        a `SampledSequence`. Raises `UsageError` for settings that contradict one another.

        >>> m.sample(4, length=200)

        Args:
            n: Number of sequences.
            sampler: ancestral, first-hitting, confidence, entropy-bounded, strand-symmetric, remdm-cap,
                remdm-rescale, remdm-loop, p2, analytic, left-to-right, both-ends, uniform-ancestral
                [the objective's own].
            sampler_options: A setting of the sampler, as eta=0.1; one or several.
            steps: Steps per window (auto: 256, or --bits-lost).
            temperature: 1 is the model's own law, 0 its likeliest bases.
            top_p: Draw among the likeliest bases that hold this much probability.
            stride: New bases per window beyond the trained length (default: half of it).
            allow_n: Let N be drawn as well as A, C, G and T.
            batch_size: Records at a time: changes the speed, never the bytes.
            memory: on: with a memory of the training genome; novel: and no record copies more of it
                than 9 in 10 held-out sequences (default: on for a run of train --memory). Of --bed and
                --region each window leaves its own locus out; novel is not for them.
            block: Bases of a block, which knows all before it and nothing after it (default: as
                trained).
            seed: Seed of every random draw.
            length: Positions of each (default: the trained length).
            prompt: Of text: how each begins.
            records: Give names and evaluations, too.
        """

    def infill(
        self,
        /,
        sequences: typing.Any,
        *,
        sampler: str | None = None,
        sampler_options: collections.abc.Mapping[str, float] | None = None,
        steps: int | typing.Literal['auto'] | None = 'auto',
        temperature: float = 1.0,
        top_p: float = 1.0,
        stride: int | None = None,
        allow_n: bool = False,
        batch_size: int | None = None,
        memory: typing.Literal['on', 'off', 'novel'] | None = None,
        block: int | None = None,
        seed: int = 1,
        records: bool = False,
    ) -> typing.Any:
        """`sequences` with every N, n and ? filled, in the form in which they were given.

        A string gives a string, a list a list, a `SeqRecord` a `SeqRecord`, a path a list of strings,
        as does a frame. Every other letter stays as it is, lower case and IUPAC codes included. It is
        what `genodiff sample --template` writes. Of text, gaps are `[[20]]`: 20 tokens. With `records`,
        each is a `SampledSequence`.

        >>> m.infill("ACGTNNNNACGT")

        Args:
            sequences: What is to be filled.
            sampler: ancestral, first-hitting, confidence, entropy-bounded, strand-symmetric, remdm-cap,
                remdm-rescale, remdm-loop, p2, analytic, left-to-right, both-ends, uniform-ancestral
                [the objective's own].
            sampler_options: A setting of the sampler, as eta=0.1; one or several.
            steps: Steps per window (auto: 256, or --bits-lost).
            temperature: 1 is the model's own law, 0 its likeliest bases.
            top_p: Draw among the likeliest bases that hold this much probability.
            stride: New bases per window beyond the trained length (default: half of it).
            allow_n: Let N be drawn as well as A, C, G and T.
            batch_size: Records at a time: changes the speed, never the bytes.
            memory: on: with a memory of the training genome; novel: and no record copies more of it
                than 9 in 10 held-out sequences (default: on for a run of train --memory). Of --bed and
                --region each window leaves its own locus out; novel is not for them.
            block: Bases of a block, which knows all before it and nothing after it (default: as
                trained).
            seed: Seed of every random draw.
            records: Give names and evaluations, too.
        """

    def redesign(
        self,
        /,
        sequences: typing.Any,
        n: int = 1,
        *,
        rules: collections.abc.Mapping[str, typing.Any] | None = None,
        sampler: str | None = None,
        steps: int | None = None,
        temperature: float = 1.0,
        from_noise: float | None = None,
        stride: int | None = None,
        batch_size: int | None = None,
        most_states: int | None = None,
        guide: collections.abc.Mapping[str, typing.Any] | None = None,
        oracle_flank: int = 0,
        memory: typing.Literal['on', 'off'] | None = None,
        seed: int = 1,
        regions: collections.abc.Sequence[tuple[int, int]] | None = None,
        oracle: collections.abc.Callable[..., typing.Any] | str | pathlib.Path | None = None,
    ) -> typing.Any:
        """`n` designs of each sequence, whole, that satisfy `rules`: a list of strings.

        Of each sequence the intervals `regions` (0-based, half-open) are designed anew and judged; all
        other letters stay. Without `regions`, N is any base and an IUPAC code one of its set, and the
        whole sequence is judged. A circular `SeqRecord` or GenBank record goes round, and a region of
        it may end beyond its last base.

        With an `oracle` the designs are guided to what it likes, by SMC at strength 1; `guide` has
        further settings, such as `{"strength": 2}` or `{"guidance": "best-of-n"}`. It sees each region
        and `oracle_flank` bases on both sides. A sequence that is a contig of the training genome
        leaves each region's own locus out of its `memory`.

        One sequence gives a list, several a list of lists. Raises `UsageError` with a minimal conflict
        where nothing satisfies all, before the network runs.

        >>> m.redesign("ACGTNNNNNNACGT", 4, rules={"require": ["GAATTC"]})
        >>> m.redesign("ACGTNNNNNNACGT", oracle=lambda some: [s.count("TA") for s in some])

        Args:
            sequences: What is to be designed.
            n: Designs of each sequence.
            rules: Constraints by the names of the flags, such as {"avoid": ["GGTCTC"], "max_edits": 5}.
            sampler: ancestral, confidence, first-hitting [the objective's own].
            steps: Steps per window (256).
            temperature: 1 is the model's own law.
            from_noise: Begin with what stands there, noised to this time (0.1: little, 1: all of it),
                in place of nothing.
            stride: New bases per window beyond the trained length (default: half of it).
            batch_size: Records at a time: changes the speed, never the bytes.
            most_states: States that the constraints of a region may need (default 8,388,608).
            guide: Guidance by the settings of `genodiff.generate.guide_settings.GuideSettings`, such as
                {"guidance": "smc", "oracle": score}.
            oracle_flank: Bases on both sides of a region that the oracle sees too.
            memory: on: with a memory of the training genome, each window's own locus left out (default:
                on for a run of train --memory).
            seed: Seed of every random draw.
            regions: Intervals (start, end) of each sequence.
            oracle: A callable of a list of strings, "module:function", or the folder of a fine-tuned
                model.
        """
