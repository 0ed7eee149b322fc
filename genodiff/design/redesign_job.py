"""Designs of regions under constraints, in memory and as files: `genodiff redesign`."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from genodiff.constraints.design_rules import (
    RuleWords,
    make_rules,
    read_rule_file,
    read_rule_words,
)
from genodiff.design.design_drawing import DesignDrawing, EditFiles, put_design
from genodiff.design.design_regions import Source, TemplateSource
from genodiff.design.request import HeldDesignsRequest, RedesignRequest
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.generate.guiding import open_guided
from genodiff.generate.infill import Gap, Template, read_gaps, read_templates
from genodiff.generate.sample_job import MARK, DrawJob
from genodiff.io.faidx import Genome
from genodiff.io.sequences import is_single, read_records
from genodiff.models.opening import ModelHolder, open_language, refuse_fitted


class RedesignJob(DrawJob[RedesignRequest]):
    """The files of `genodiff redesign`."""

    unit = "design"

    def make_drawing(self, stack: ExitStack) -> DesignDrawing:
        asked = self.request
        words = _read_words(asked.rules, asked.constraints)
        if asked.template is not None and words.max_edits is not None:
            what = "--max-edits counts changes of a genome, and a template has no bases to change"
            raise UsageError(what, fix="give --fasta and --bed, or leave --max-edits out")
        source, gaps = self._open_source(stack)
        rules = make_rules(words, source.contigs, source.circular, gaps)
        run = asked.find_run()
        given, fasta = asked.relatives, asked.fasta
        model = open_language(
            run, self.device, given, strains=asked.strains, fasta=fasta, plan=asked.plan
        )
        if model.alphabet.domain != "dna":
            what = f"is a {model.alphabet.domain} model"
            raise CheckpointError(what, file=model.run, fix="give a run of DNA")
        model, guiding = open_guided(model, asked.guide, self.device, asked.label)
        files = {"fasta": asked.fasta, "bed": asked.bed, "template": asked.template}
        files["rules"] = asked.constraints
        named = {key: None if path is None else str(path) for key, path in files.items()}
        drawing = DesignDrawing(
            model, asked.read_sampling(), asked.n or 1, source, gaps, rules,
            most_states=asked.most_states, guiding=guiding, flank=asked.oracle_flank,
            from_noise=asked.from_noise,
        )  # fmt: skip
        drawing.sources = {**named, "regions": list(asked.region) or None}
        drawing.files = EditFiles(asked.vcf_file, asked.bed_file)
        if not any(free.any() for free, _ in drawing.plan()):
            fix = "fix fewer bases, or give other regions"
            raise UsageError("every base of the regions is fixed", fix=fix)
        return drawing

    def _open_source(self, stack: ExitStack) -> tuple[Source, list[Gap] | None]:
        """What is designed, and which parts of it; None for the open letters of templates."""
        asked = self.request
        if asked.template is None:
            genome = Genome(str(asked.fasta), goes_round=True, circular=asked.circular)
            stack.enter_context(genome)
            bed = None if asked.bed is None else str(asked.bed)
            return genome, read_gaps(genome, bed, asked.region, genome.circular)
        templates = list(read_templates(asked.template))
        if not templates:
            raise DataError("holds no record", file=asked.template, fix="give one at least")
        return TemplateSource(templates, str(asked.template), asked.circular), None


def design_sequences(asked: HeldDesignsRequest, holder: ModelHolder) -> Any:
    """What `genodiff.Model.redesign` gives: a list of whole sequences, or a list of such lists."""
    asked.check_noise(stands=asked.regions is not None)
    given = read_records(asked.sequences, extra=MARK, goes_round=True)
    # Numbered: names of sequences in memory may repeat.
    names = [one.name if len(given) == 1 else f"{i}_{one.name}" for i, one in enumerate(given)]
    pairs = zip(names, given, strict=True)
    templates = [Template(name, one.description, one.sequence) for name, one in pairs]
    source = TemplateSource(templates, "sequences in memory")
    gaps = None if asked.regions is None else _list_gaps(source, names, asked.regions)
    guide = asked.read_guide()
    asked.check_flank(guide)
    model = refuse_fitted(holder.inner)
    device = str(next(model.backbone.parameters()).device)
    model, guiding = open_guided(model, guide, device)
    rules = make_rules(_read_words(asked.rules), source.contigs, source.circular, gaps)
    drawing = DesignDrawing(
        model, asked.read_sampling(holder.memory), asked.n, source, gaps, rules,
        most_states=asked.most_states, guiding=guiding, flank=asked.oracle_flank,
        from_noise=asked.from_noise,
    )  # fmt: skip
    whole = {
        name: [bytearray(source.fetch(name, 0, size)) for _ in range(asked.n)]
        for name, size in source.contigs.items()
    }
    for group, _, designs in drawing.read(drawing.draw(asked.seed)):
        for text, (after, _) in zip(whole[group.contig], designs, strict=True):
            put_design(text, group.start, after)
    texts = [[text.decode("ascii") for text in whole[name]] for name in names]
    return texts[0] if is_single(asked.sequences, MARK) else texts


def _list_gaps(
    source: TemplateSource, names: Sequence[str], regions: Sequence[tuple[int, int]]
) -> list[Gap]:
    """The regions of each sequence. Raises `UsageError` for one that is not within it."""
    gaps = [Gap(name, start, end) for name in names for start, end in regions]
    for gap in gaps:
        size = source.contigs[gap.contig]
        last = gap.start + size if gap.contig in source.circular else size
        if not (0 <= gap.start < gap.end <= last and gap.start < size):
            what = f"region ({gap.start}, {gap.end}) is empty or not within the sequence"
            raise UsageError(what, fix="give 0-based intervals (start, end)")
    return gaps


def _read_words(
    rules: Mapping[str, Any] | None, constraints: str | Path | None = None
) -> RuleWords:
    words = RuleWords() if rules is None else read_rule_words(rules)
    return words if constraints is None else words.join(read_rule_file(constraints))
