# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import genodiff.api.data
import genodiff.api.genomes
import genodiff.api.relatives
import genodiff.api.tokenizer
import genodiff.runs.progress_reader
import genodiff.studies.demo
import genodiff.training.run
import pathlib
import typing

from genodiff.api.data import check_documents as check_documents
from genodiff.api.effects import deletion_effect as deletion_effect
from genodiff.api.effects import insertion_effect as insertion_effect
from genodiff.api.effects import one_hot_network as one_hot_network
from genodiff.api.effects import substitution_effect as substitution_effect
from genodiff.api.finetuned import FinetunedModel as FinetunedModel
from genodiff.api.load import load as load
from genodiff.api.load import score_variants as score_variants
from genodiff.api.model import Model as Model
from genodiff.api.relatives import list_relatives as list_relatives
from genodiff.version import __version__ as __version__

_BESIDE: dict[str, str]

def build_genomes(
    genomes: str | pathlib.Path,
    *,
    out: pathlib.Path | str | None = None,
    jobs: int | None = None,
    seq_len: int = 1024,
    temperature: float = 1.0,
    parquet: pathlib.Path | str | None = None,
    offline: bool = False,
    force: bool = False,
    plan: bool = False,
) -> genodiff.api.genomes.BuiltGenomes:
    """The stores of a list of genomes: built where they are not there, dealt to splits, counted.

    `genomes` is a list (docs/how-to/many-genomes.md), or the folder or URL of what was built of
    one. `out` is the folder to build in (default: in the cache folder, where `genodiff.train` finds
    it). `jobs` genomes are built at a time (default: as many as there are cores). The windows of
    each split have `seq_len` bases, and with `parquet` they are written to that folder as tables
    for Hugging Face `datasets`. With `plan` nothing is built. Raises `UsageError`, `DataError`
    naming each bad line, `MachineError`.

    Args:
        genomes: A list of genomes, or the folder or URL of built ones.
        out: Folder to build in (default: in the cache folder).
        jobs: Genomes built at a time (default: --threads, or as many as there are cores).
        seq_len: Window length to count windows by.
        temperature: Shares go as weight x windows^(1/T): 1 by size, high all alike.
        parquet: Also write the windows to this folder, for Hugging Face datasets.
        offline: Never touch the network.
        force: Build again even if it is there.
        plan: Say what would be done, and stop.
    """

def build_relatives(
    relatives: str | pathlib.Path | collections.abc.Sequence[str | pathlib.Path] = (),
    *,
    out: pathlib.Path | str | None = None,
    only: collections.abc.Sequence[str] = (),
    jobs: int | None = None,
    offline: bool = False,
    force: bool = False,
    plan: bool = False,
) -> genodiff.api.relatives.BuiltRelatives:
    """Fetch the genomes of relatives, check them by their hashes, and index them, once.

    `relatives` are recipes by name (`genodiff.list_relatives`), lists of genomes (.tsv) and FASTA
    files. `only` names those that are taken. They are built in the cache folder, where `relatives=`
    finds them by the same names; or in the folder `out`, which `relatives=` takes itself, and which
    may be moved. `jobs` are built at a time (default: as many as cores and memory allow). A build
    that was killed goes on, to the same bytes. With `plan` nothing is fetched or built.

    Raises `DataError` naming each genome that cannot be had, when all others are built; and
    `MachineError` where disk or memory lacks, before anything is fetched.

    >>> genodiff.build_relatives("saccharomyces", plan=True).row["to_build"]  # doctest: +SKIP
    8

    Args:
        relatives: Recipes by name, lists of genomes, FASTA files.
        out: Folder to build in, to be given to --relatives [the cache folder].
        only: Name of a genome to take; one or several [all].
        jobs: Genomes built at a time (default: --threads, or as cores and memory allow).
        offline: Never touch the network.
        force: Overwrite a file that genodiff did not write itself.
        plan: Say what would be done, and stop.
    """

def build_store(
    recipe: str | pathlib.Path,
    *,
    fasta: str | pathlib.Path | None = None,
    text: str | pathlib.Path | None = None,
    tokenizer: str | pathlib.Path = 'bytes',
    packing: typing.Literal['auto', 'packed', 'padded'] = 'auto',
    domain: typing.Literal['dna', 'text'] | None = None,
    bed: str | pathlib.Path | None = None,
    seq_len: int = 1024,
    offline: bool = False,
    force: bool = False,
) -> genodiff.api.data.BuiltStore:
    """The store that training reads, built where it is not there yet, verified and counted.

    `recipe` is a name, a YAML file, or your own FASTA, GenBank or EMBL file; with the domain text a
    file or folder. `tokenizer` and `packing` are for text, `bed` (train, valid or test in column 4)
    for DNA. The windows of each split have `seq_len` tokens. `force` builds again. Raises
    `UsageError`, and `DataError` for data that cannot train.

    Args:
        recipe: A recipe's name, or a YAML file; with --domain text your file, too.
        fasta: Your FASTA file in place of the recipe's source.
        text: Your file or folder of text in place of the recipe's source.
        tokenizer: Of text: bytes, text8, gpt2, bert-base-uncased, or a tokenizer's folder.
        packing: Of text: how windows are cut.
        domain: What it should hold.
        bed: Your splits: a BED file with train, valid or test in column 4; the strand is not used.
        seq_len: Window length to count windows by.
        offline: Never touch the network.
        force: Build again even if it is there.
    """

def check_checkpoint(
    path: str | pathlib.Path,
) -> dict[str, typing.Any]:
    """What stands in a run folder, a checkpoint or a published folder, after all of it was read.

    Of a run: step, digest, checkpoints, parameters. Of published weights: layout, digest, files,
    config, vocabulary. Nothing is written. Raises `CheckpointError` for the first fault.

    Args:
        path: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
    """

def clean_cache(
    *,
    older_than: float | None = None,
    kinds: collections.abc.Sequence[str] = (),
    everything: bool = False,
    plan: bool = False,
) -> dict[str, typing.Any]:
    """Remove what the cache folder holds of `kinds` (none: of every kind), not used for
    `older_than` days; or `everything`.

    What a running process makes or has open stays, with a line. With `plan` nothing is removed.
    Returns "folder", "plan", "bytes" (freed), "removed" (rows as of `list_cache`) and "kept": each
    "path" that stays, and "why". Raises `UsageError` where it is not said what is to go.

    >>> clean_cache(older_than=30, plan=True)["bytes"]                  # doctest: +SKIP
    1250000

    Args:
        older_than: Days: what has not been used for so long.
        kinds: A kind that `cache list` names; one or several.
        everything: Every kind, of every age.
        plan: Say what would be done, and stop.
    """

def compare(
    runs: collections.abc.Sequence[str | pathlib.Path],
    *,
    fasta: str | pathlib.Path | None = None,
    bed: str | pathlib.Path | None = None,
    text: str | pathlib.Path | None = None,
    split: typing.Literal['test', 'valid', 'train', 'all'] = 'test',
    max_windows: int | None = None,
    repeats: int = 1,
    against: str | None = None,
    margin: float | None = None,
    out: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    device: str = 'auto',
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Two or more finished runs scored on the same bases; the results as plain values.

    The row of a run has bits per base (of text: per byte) with its interval, and its paired
    difference from the run `against` (default: the first); `pairs` has every two runs, with p
    values, Holm's correction and a verdict; runs are called equivalent only where their difference
    is shown to be within ±`margin` bits.

    Differences are paired by window. Runs of other lengths read the same bases in windows of their
    own; text of other tokens is refused. `out` (default: under runs/) holds table.md, compare.html,
    results.json and the figures of all windows, so the same comparison again only reads; files
    there that genodiff did not write are replaced with `force` only. With `plan` nothing is scored,
    and what it would take is returned. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.compare(["runs/a", "runs/b"], margin=0.01)["pairs"]

    Args:
        runs: Two or more run folders.
        fasta: FASTA in place of the first run's.
        bed: BED file whose 4th column names the splits; the strand is not used.
        text: File or folder of text in place of the first run's.
        split: Which split of the first run's data finished runs are scored on.
        max_windows: At most so many windows, evenly spread.
        repeats: Masks for each window.
        against: Run that the others are set against (default: the first).
        margin: Call two models equivalent where their difference is shown to be within this margin.
        out: Where tables go (default: runs/compare-RUN-RUN).
        seed: Seed of every random draw.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def compare_designs(
    designs: collections.abc.Mapping[str, typing.Any] | None = None,
    *,
    run: str | pathlib.Path | None = None,
    real: typing.Any = None,
    train: typing.Any = None,
    most: int = 1000,
    html: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    oracle: str | pathlib.Path | collections.abc.Callable[..., typing.Any] | None = None,
    judge: str | pathlib.Path | collections.abc.Callable[..., typing.Any] | None = None,
    form: typing.Literal['strings', 'ids', 'one-hot'] | None = None,
    label: str | None = None,
    lower: bool = False,
    repeats: int = 8,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """A Pareto table of `designs`, sequences by the name of their method, as plain values.

    `oracle` is what guided them and `judge` an oracle that did not: callables,
    "module:function", or folders of fine-tuned models (with `label` for the log-odds of a class;
    `form` is what a callable takes). `lower` says that small scores are wanted. `run` is a model
    that was not guided: its bits per base, an upper bound from `repeats` masks, are the
    naturalness. `real` are natural sequences, of the designs' length or longer, and `train` what
    is searched for copies: sequences or a run. Of each set, `most` are drawn by `seed`.

    `rows` has a row for each method, then "real". `html` is a page to write. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.compare_designs({"smc": "smc.fa", "ga": "ga.fa"}, real="promoters.fa")["rows"]

    Args:
        designs: NAME=FASTA, designs of a method; give it several times, with --real.
        run: Run whose held-out split is the real sequence, and whose train split is searched for
            copies; with --designs, the model that was not guided.
        real: FASTA file of real sequence, in place of a run's.
        train: With --real: FASTA file, or run, that the generator was trained on.
        most: Samples to measure; more are drawn from.
        html: Page to write, with pictures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        oracle: With --designs: what guided them, MODULE:FUNCTION or a fine-tuned unit.
        judge: With --designs: an oracle that guided none of them.
        form: What the functions take [one-hot for a torch module, else strings].
        label: The class of fine-tuned oracles whose log-odds count.
        lower: With --designs: small scores are wanted.
        repeats: Masks of each sequence.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def constraint(
    genome: typing.Any,
    *,
    out: str | pathlib.Path,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    neutral: str | pathlib.Path | None = None,
    genes: str | pathlib.Path | None = None,
    fdr: float = 0.05,
    maf: bool = False,
    formats: collections.abc.Sequence[str] | None = None,
    assembly: str | None = None,
    email: str = 'nobody@example.org',
    strains: bool = False,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Compute the evolutionary constraint of each base from unaligned related genomes.

    No model, alignment, tree or annotation is needed. `genome` is a FASTA file. Each related genome
    is indexed and fitted at its first use. The output folder holds tracks: rejected substitutions
    (`rs`, GERP's scale), `phylop` (phyloP's CONACC scale), `conserved` (probability of the slow
    classes), `rate` (posterior mean; 1 is neutral), `coverage` and tree `length`; elements.bed,
    conserved elements with a false discovery rate; constraint.html, a page; and a UCSC track hub. A
    base where no related genome lies has no value. Rate 1 is that of the sites of `neutral`, else
    of fourfold sites of `genes`, else of third codon positions or the fastest class of the fitted
    model.

    Work is saved in OUT.partial until `out` is there, and the same call resumes; `fresh` starts
    anew. With `plan` nothing is indexed, fitted or read. Returns the sidecar. Raises `UsageError`,
    `DataError`, `MachineError`.

    >>> genodiff.constraint("genome.fa", relatives=["relative.fa"], out="constraint")

    Args:
        genome: FASTA file of the genome.
        out: Folder to write; with --shard a .npy file of the part.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; tracks run along the genome.
        neutral: BED file of neutral sites, whose rate is 1.
        genes: GFF3, GTF, BED or GenBank file: rate 1 is that of its fourfold sites, and constraint
            is tabulated by codon position, UTR, intron and intergenic sequence.
        fdr: False discovery rate of conserved elements.
        maf: Also write the alignment that was scored, alignment.maf.
        formats: bigwig, bedgraph, bedgraph.gz, npz, parquet, wig, wig.gz; one or several [bigwig].
        assembly: UCSC's name of the genome for the hub (default: the hub brings the sequence).
        email: Address that stands in the hub.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def demo(
    out: pathlib.Path | str = 'runs/demo',
    *,
    minutes: float = 12.0,
    seed: int = 1,
    offline: bool = False,
    device: str = 'auto',
    force: bool = False,
) -> genodiff.studies.demo.DemoResult:
    """Train on the toy genome, evaluate, sample and write a report into the run folder `out`.

    `minutes` is a limit of the whole: training stops after 70 % of it, and what is scored and
    sampled is cut to the rest. A stage that was done with the same weights is not done again.
    `force` sets foreign files in `out` aside. `judge_demo` says whether the result is what it must
    be. Raises `UsageError`, `MachineError`, and what training raises.

    Args:
        out: Run folder; the same command again goes on there.
        minutes: Limit of the whole, where the machine is slow: each part does less.
        seed: Seed of every random draw.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def dependencies(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    context: int | None = None,
    unit: typing.Literal['nats', 'bits'] = 'nats',
    memory: typing.Literal['on', 'off'] | None = None,
    batch_size: int = 8,
    genes: str | pathlib.Path | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    every: int = 16,
    exact: bool = False,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the dependency maps of regions.

    `sequences` is a FASTA file, or strings and records. `region` or `bed` say which part, at most
    1,024 bases each; without them each sequence is a region. A row of `bed` on - is read as its
    reverse complement, as in `genodiff.ism`.

    The dependency of target j on source i is the largest change of the log-odds of any base at j,
    with j masked, by putting another base at i, in `unit`. Targets `every` bases apart are masked
    together, and what that changes is measured and told; `exact` masks each by itself.

    Rows are kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh`
    starts anew. With `plan` nothing is computed, and evaluations are counted. What is returned is
    what the sidecar OUT.json says. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.dependencies("runs/demo", "genome.fa", out="map.html", region=["chr1:1-200"])

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA file; each record is a region unless --region or --bed says so.
        out: .tsv, .parquet, .npz, .svg, .png, .pdf or .html; - for a table on stdout.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; a row on - is read as its reverse complement.
        context: Bases of a window (default: the trained length).
        unit: Unit of what is written; 1 bit is 0.69 nats.
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        batch_size: Windows at a time: changes the speed, never the map.
        genes: GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        every: Targets this many bases apart are masked together; what that changes is told.
        exact: Mask each target by itself: 3 evaluations a pair.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def doctor(
    *,
    offline: bool = False,
    device: str = 'auto',
) -> dict[str, typing.Any]:
    """The checks of this machine: `{"checks": [{"name", "status", "detail", "fix"}], "scan"}`.

    `status` is ok, warn or fail, and `fix` says how to repair it. `scan` is the selective scan in
    use, None where torch does not run. With `offline` the network is not tried. Nothing is written
    or downloaded.

    Args:
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
    """

def embed(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    bed: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    features: collections.abc.Sequence[str] = (),
    window: int | None = None,
    stride: int | None = None,
    layer: int | collections.abc.Sequence[int] = (-1,),
    pool: typing.Literal['mean', 'max', 'center', 'none'] = 'mean',
    strand: typing.Literal['average', 'forward', 'both'] = 'average',
    batch_size: int = 32,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the embeddings of windows, with their provenance beside them.

    `run` is a run, a checkpoint or a published folder. `sequences` are strings, `SeqRecord`s or a
    file: each record is a window, unless `bed`, `region` or `features` say otherwise. A row of
    `bed` on - is read as its reverse complement, and so is a feature; with `features`, `bed` is GTF
    or GFF3. `genodiff.Model.embed` gives arrays in memory.

    With `relatives` (or a model that was loaded with them), four channels stand behind the
    network's: which share of the relatives' votes has the base itself, its transition, a
    transversion, or nothing.

    With `shard`, "i/n", the i-th of n parts of the windows is written, and `genodiff.merge` puts
    the parts together. Of a file, what is done is kept in OUT.partial, and the same call goes on
    after it; `fresh` starts anew. Values do not depend on the batch size. With `plan` nothing is
    computed or written, and windows, bases, shape and bytes are returned; else what OUT.json says.
    Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.embed("runs/demo", "reads.fa", out="reads.parquet", pool="max")

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA, GenBank or EMBL file, - for stdin; each record is a window unless --bed,
            --region, --features or --window says otherwise.
        out: Ends in .npz, .parquet, .zarr, .csv or .tsv.
        bed: BED file of regions; a row on - is read as its reverse complement.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        features: CDS, or CDS=dnaA: features of a GenBank or EMBL file, by type and name, in their
            own direction, with joined parts as one; with --bed, rows of that GTF or GFF3 file, each
            by itself; one or several.
        window: Cut into pieces of this many bases.
        stride: Bases from one piece to the next (default: --window).
        layer: Layer, 0 (embedding) to n_layer; -1 is the last; one or several [-1].
        pool: Over the bases of a window; none keeps each base.
        strand: Both strands averaged, the window as it stands, or both apart.
        batch_size: Windows at a time: changes the speed, not the figures.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def evaluate(
    run: typing.Any,
    *,
    out: str | pathlib.Path = '',
    split: typing.Literal['test', 'valid', 'train', 'all'] = 'test',
    fasta: str | pathlib.Path | None = None,
    text: str | pathlib.Path | None = None,
    recipe: collections.abc.Sequence[str] | None = None,
    bed: str | pathlib.Path | None = None,
    repeats: int = 1,
    t_steps: collections.abc.Sequence[int] | None = None,
    max_windows: int | None = None,
    max_minutes: float | None = None,
    soft_masked: bool = True,
    baselines: bool = True,
    mixture: bool | None = None,
    context: typing.Literal['window', 'contig'] = 'window',
    memory: typing.Literal['on', 'off', 'exhaustive'] | None = None,
    order: str | None = None,
    order_options: collections.abc.Mapping[str, float] | None = None,
    order_evaluations: int | None = None,
    block: int | None = None,
    batch_size: int = 32,
    seed: int = 1,
    offline: bool = False,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    domain: typing.Literal['dna', 'text'] | None = None,
    shard: str | None = None,
    keep: bool = True,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Score the split, print what was found and add it to RUN/eval.json.

    The answer is bits per base (of text: per byte) with interval and baselines, as plain values:
    the keys of `genodiff eval --json`; `nelbo_nats` is in nats per base. `run` may be a loaded
    model. `fasta`, `bed`, `text` and `recipe` take the place of the run's own data; several recipes
    ("NAME" or "NAME=FILE") give {"suite": {recipe: values}}. Of another genome the test split is
    scored by default, so that the Markov lines are fitted on its train part and nothing has seen
    what is scored; `split="all"` scores every base, beside lines of the run's own train split.
    `memory` "on" gives the network alone beside it.

    `keep` adds the result to RUN/eval.json, unless `run` is a published folder or one that you may
    not write to; `out`, a .json file, takes its place. A file there that holds no JSON object is
    replaced with `force` only. With `shard`, the draws of that part of the windows are written to
    `out`, and `genodiff.merge` makes the whole evaluation of them; what is done is kept in
    OUT.partial, and `fresh` starts anew. With `plan` nothing is scored, and what it would take is
    returned. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.evaluate("runs/demo", max_windows=100)["bits_per_base"]

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        out: File.json to add the evaluation to, in place of RUN/eval.json; with --shard the .npy
            file to write.
        split: Which split is scored; all: every base of the file.
        fasta: FASTA file in place of the one that the run was trained on.
        text: Text file or folder in place of the one that the run was trained on.
        recipe: Zero-shot: another text recipe, NAME or NAME=FILE_OR_FOLDER; again for several.
        bed: BED file whose 4th column names the splits; the strand is not used.
        repeats: Masks for each window: more make the interval narrower.
        t_steps: The bound of sampling in so many steps, e.g. 10 20: masks each window again
            (default: what the masks of the bound itself can tell, at no cost).
        max_windows: Score at most this many windows, evenly spread over the split.
        max_minutes: Score as many windows, evenly spread, as fit into about this time, which the
            baselines share; those that take more than half of it are left out.
        soft_masked: 0: soft-masked bases are seen but not counted.
        baselines: What counting achieves; counted on the train split, kept in the cache.
        mixture: Mixture of context orders 1 to 24 (default: where it takes little time).
        context: What a window sees: itself, or also the bases around it, in blocks of 65,536 bases
            (or eight windows, if that is more); a model of --block sees all before it.
        memory: on: the network with a memory of its training genome, beside the network alone
            (default: on for a run of train --memory); exhaustive: every place of the genome is
            tried, not only those that its index finds.
        order: Also the exact likelihood of drawing the windows in this order: left-to-right, both-
            ends, confidence, entropy-bounded, random, or another sampler's.
        order_options: A setting of the order, as at_once=4, bound=0.5 or steps=256 (default: one
            base with each evaluation); one or several.
        order_evaluations: Of a fixed order take so many evaluations of each window, evenly spread
            [all].
        block: Bases of a block, which knows all before it and nothing after it (default: as
            trained).
        batch_size: Windows at a time: changes the speed, not the figures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        domain: What the run is expected to hold.
        shard: i/n: the draws of the i-th of n parts, to --out; `genodiff merge` joins.
        keep: Add the result to RUN/eval.json.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def export_checkpoint(
    run: str | pathlib.Path,
    *,
    format: typing.Literal['caduceus', 'mdlm', 'safetensors'] | None = None,
    out: pathlib.Path | str | None = None,
    fused: bool | None = None,
    license: str | None = None,
    half: bool = False,
    with_memory: bool = False,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write a published folder of a run, with a model card: by default RUN/export.

    `format` None is the layout of the network's kind. The network that the reference's
    `from_pretrained` makes of it has the same logits. `fused` writes the form with fused_add_norm,
    or without; None is the network's own. `license` is for the card. `half` keeps the weights of
    the format "safetensors" in 16 bits. `with_memory` puts the train split inside, at 2 bits a
    base: `memory="on"` then needs no other file. Raises `CheckpointError`, `UsageError`,
    `DataError`.

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        format: A published layout (default: that of the network's kind), or our own.
        out: The folder to make (default: RUN/export).
        fused: Write the form with fused_add_norm, or without (default: the network's own).
        license: Licence of the weights, for the model card.
        half: Of our own format: keep the weights in 16 bits, not 32.
        with_memory: Put the train split inside, at 2 bits a base, for --memory on.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def fetch_data(
    recipe: str | pathlib.Path,
    *,
    out: pathlib.Path | str | None = None,
    offline: bool = False,
    force: bool = False,
) -> list[pathlib.Path]:
    """The files of a recipe on this machine, fetched where needed and checked by their hash.

    `recipe` is a name or a YAML file. Data that are generated have no files. "example" is a made-up
    genome of 100 kb with two related genomes, genes and variants, written into the folder `out`
    (default: example); `force` overwrites other files there. Raises `UsageError` for an unknown
    recipe, `DataError` where a file cannot be had, or may not be with `offline`.

    Args:
        recipe: A recipe's name, a YAML file, or example.
        out: Folder of the example [example].
        offline: Never touch the network.
        force: Overwrite a file that genodiff did not write itself.
    """

def finetune(
    what: str | pathlib.Path,
    *,
    test: str | pathlib.Path | None = None,
    test_share: float | None = None,
    valid: str | pathlib.Path | None = None,
    sequence: str | None = None,
    label: collections.abc.Sequence[str] = (),
    kind: typing.Literal['binary', 'multiclass', 'multilabel', 'regression'] | None = None,
    similarity: float | None = None,
    drop_missing: bool = False,
    name: str | None = None,
    metric: str | None = None,
    split: typing.Literal['official', 'chrom-holdout', 'dedup', 'homology', 'local', 'partial'] = 'official',
    data: str | pathlib.Path | None = None,
    reference: collections.abc.Mapping[str, str] | None = None,
    task: str = 'all',
    model: collections.abc.Sequence[str] = ('baselines', 'scratch'),
    method: typing.Literal['full', 'frozen', 'probe'] | collections.abc.Sequence[typing.Literal['full', 'frozen', 'probe']] = ('full',),
    max_train: int | None = None,
    seeds: int = 5,
    jobs: int = 1,
    out: str | pathlib.Path | None = None,
    protocol: typing.Literal['paper', 'mdlm'] = 'paper',
    margin: float | None = None,
    grid: bool = False,
    search: int = 0,
    exclude_overlap: typing.Literal['some', 'half', 'all'] | None = None,
    keep_weights: bool | None = None,
    offline: bool = False,
    rc: typing.Literal['auto', 'conjoin', 'average', 'augment', 'none'] | None = None,
    epochs: int | None = None,
    max_steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    head: str | None = None,
    parts: int | None = None,
    shift: int | None = None,
    dropout: float | None = None,
    mask_share: float | None = None,
    patience: int | None = None,
    ema: float | None = None,
    adapter: str | None = None,
    adapt: int | None = None,
    precision: typing.Literal['fp32', 'bf16'] | None = None,
    max_length: int | None = None,
    device: str = 'auto',
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Fit every model to every task with every seed; what was found, as plain values.

    `what` is a suite (genomic-benchmarks, gue, nt, glue, ...), or your own labelled sequences: a
    table or FASTA with its `test` (and `valid`) part, or a folder or zip with both. `task`, `data`
    (the folder of a suite's files) and `reference` (NAME → FASTA) are for suites; `name`,
    `sequence`, `label`, `kind`, `metric`, `test_share` and `drop_missing` for your own. Validation
    on seed 1 chooses the `head` where it is None or "auto", on more seeds where it has few
    examples.

    The folder `out` is resumed where it exists. Returned are `out`, `rows` (those of its
    results.jsonl that belong to this plan), `files` (RESULTS.md and report.html) and `comparisons`:
    of each task, paired differences with 95 % intervals over seeds and test examples, Holm's
    corrected p values, and a verdict. `ensembles` are rows too: the mean of the predictions of a
    line's seeds, as one answer.

    `keep_weights`: None keeps each new fit for `genodiff.predict`, True fits those again that are
    done without, False keeps none. With `plan` nothing is trained or written, and units, seconds
    and bytes are returned. Raises `UsageError`, `DataError`, `CheckpointError`, `GenodiffError`
    where a unit failed.

    >>> genodiff.finetune("train.csv", test="test.csv", model=["yeast", "baselines"])["rows"]

    Args:
        what: A suite (genomic-benchmarks, gue, nt, glue, ...), or own sequences.
        test: The test part; not needed where the first has both, or with --test-share.
        test_share: The share of one table that tests, such as 0.2: sequences that are alike stay
            together, and the same ones test each time.
        valid: A validation part for every seed, in place of 10 % of train.
        sequence: Column of sequences.
        label: Column of labels; several make a multi-label task.
        kind: What the labels are.
        similarity: With --split homology: sequences are alike from this share of 24-mers on [0.5].
        drop_missing: Leave out, and count, rows without a label, a sequence or a position (empty,
            NA, nan, inf).
        name: What the task is called.
        metric: What chooses the epoch and heads the table.
        split: Which split is used: as published, without equal and overlapping sequences (dedup),
            or with alike sequences (homology) or chromosomes held apart; local and partial are not
            comparable with published numbers.
        data: Folder with the suite's data.
        reference: NAME=FASTA of a genome; repeatable: --reference hg38=hg38.fa.
        task: Name of a task, several with commas, or all.
        model: Repeatable: RUN or NAME=RUN, scratch, scratch:PRESET, adapted:RUN, a baseline's name,
            or baselines [baselines, scratch].
        method: What is trained: all weights (full), the head alone (frozen), or a regression on
            frozen features (probe); repeatable [full].
        max_train: Train on at most this many examples, drawn once and the same for all models.
        seeds: Run seeds 1 to N; each has its own 90/10 split and order.
        jobs: Fits that run in parallel, on the CPU cores or the GPUs.
        out: Folder of the sweep (default: runs/finetune-SUITE); an existing one is resumed.
        protocol: The Caduceus paper's settings, or MDLM's 16,000 steps.
        margin: Call two models equivalent where their difference is shown to be within this margin.
        grid: Try the paper's grid; choose by validation over all seeds.
        search: Let optuna try this many settings on the first seed's validation part.
        exclude_overlap: Leave out, for all models alike, the test sequences that pretraining saw:
            some, half [half, where no word follows] or all of their 24-mers.
        keep_weights: Keep each fit for `genodiff predict` [every new one]; when given, one that is
            done without is fitted again. --no-keep keeps none.
        offline: Never touch the network.
        rc: Reverse complement. auto: none for oriented tasks, conjoin for networks of both strands
            (PS), else average.
        epochs: Passes over the train part.
        max_steps: Maximum number of steps, in place of epochs.
        batch_size: Examples per step.
        lr: Highest learning rate.
        weight_decay: AdamW's weight decay.
        head: How the features of positions are pooled: mean, parts, attention, conv, or auto, which
            validation chooses once for all seeds [auto].
        parts: Head parts: the number of stretches whose means are read [7].
        shift: Training leaves out up to this many bases at each end, drawn anew each epoch.
        dropout: Share of pooled features dropped in training.
        mask_share: Training hides this share of the bases, drawn anew each epoch.
        patience: Stop after this many epochs without a better validation.
        ema: Decay of an average of the weights over steps, such as 0.998; validation judges it, and
            it is kept.
        adapter: Train few weights of a trained network in the place of all, with method full: lora,
            dora, or with options, lora:r=8,alpha=16,on=in_proj+out_proj. What is kept is merged.
        adapt: Models adapted:RUN: steps of masked diffusion on the task's train sequences, without
            labels, before each fit [500].
        precision: Number format; bf16 uses autocast.
        max_length: Read at most this many bases, or tokens of text (default: the task's).
        device: Where to compute: auto, cpu or cuda.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def finetune_bases(
    run: str | pathlib.Path,
    fasta: str | pathlib.Path,
    *,
    out: str | pathlib.Path,
    genes: str | pathlib.Path | None = None,
    classes: str | pathlib.Path | None = None,
    track: collections.abc.Sequence[str] = (),
    types: collections.abc.Sequence[str] = (),
    all_as: str = '',
    stranded: bool = False,
    mask_shared: bool = False,
    fill: bool = False,
    within: str | pathlib.Path | None = None,
    valid: collections.abc.Sequence[str] = (),
    test: collections.abc.Sequence[str] = (),
    head: typing.Literal['linear', 'conv', 'unet'] = 'conv',
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    chain: bool = False,
    ends: typing.Literal['codons', 'any'] = 'codons',
    loss: typing.Literal['poisson', 'mse'] | None = None,
    class_power: float = 0.0,
    core: int = 4096,
    context: int = 1024,
    method: typing.Literal['full', 'frozen'] = 'full',
    adapter: str | None = None,
    scratch: bool = False,
    epochs: int = 3,
    max_steps: int | None = None,
    batch_size: int = 4,
    lr: float = 0.001,
    patience: int | None = None,
    ema: float = 0.0,
    seed: int = 0,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Fine-tune a network to label each base of a genome, and keep the model in the folder `out`.

    `fasta` is the genome. One of three says what its bases are: `genes` (GFF3, GTF, GenBank or
    BED12; the states of coding genes, on both strands), `classes` (the names of BED rows, or rows
    of GFF3 and GTF of the `types`) or `track` (NAME=FILE, bigWig or bedGraph; NAME+ and NAME- are
    the strands of one). Contigs that a file says nothing of are unknown, and so are letters other
    than A, C, G and T. `within` keeps the labels of intervals alone.

    Labels are learned in windows: a scored core, with context on both sides that is read only.
    `valid` chooses the epoch, `test` is measured once, at the end; both are contigs or parts of
    them, which training never sees the labels of. Without `valid` it is the last tenth of each
    contig. With `relatives` the head also reads how many of them have each base, which `predict`
    then needs as well. With `chain`, genes are learned as one path (a conditional random field).

    A fit that is stopped goes on from OUT.partial to the same bits. What is returned is what
    OUT/labeller.json says. `genodiff predict` and `genodiff.load` read the folder. Raises
    `UsageError`, `DataError` with file and line, `CheckpointError`, `MachineError`.

    >>> genodiff.finetune_bases("yeast", "genome.fa", genes="genes.gff3", out="runs/genes",
    ...                         test=["chrXVI"], epochs=2)

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        fasta: The genome: a FASTA file.
        out: Folder of the model.
        genes: Coding genes: GFF3, GTF, GenBank, EMBL or BED12.
        classes: Classes of bases: BED by its names, or GFF3 and GTF with --types.
        track: NAME=FILE: values of bases, bigWig or bedGraph; one or several.
        types: Rows of --classes that are read, such as exon.
        all_as: One name for all rows of --classes.
        stranded: Two classes of each: on + and on -.
        mask_shared: Bases of two classes are unknown; without it they are an error.
        fill: A base without a value has 0 where its --track has any on the contig.
        within: BED file: labels elsewhere are unknown.
        valid: What chooses the epoch: a contig, or a part of one (chr1:1-50,000); one or several
            [the last tenth of each].
        test: What is measured at the end: a contig, or a part of one (chr1:1-50,000); one or
            several.
        head: What reads the network's features.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        chain: Genes as one path: the steps between states are learned, too (CRF).
        ends: Genes begin with ATG and end with a stop codon, or anywhere.
        loss: Of --track: poisson (counts, the default) or mse (any values).
        class_power: Weight of a class: 0 weighs bases alike, 1 classes alike.
        core: Scored bases of a window.
        context: Bases beside the core, on each side.
        method: full: all weights; frozen: the head alone.
        adapter: Few weights in the place of all: lora, or lora:r=8,on=in_proj+out_proj.
        scratch: Random weights in the place of RUN's.
        epochs: Passes over the training windows.
        max_steps: Steps at most, in place of epochs.
        batch_size: Windows of a step.
        lr: Highest learning rate.
        patience: Stop after so many epochs without a better validation.
        ema: Decay of the average of weights that is judged and kept.
        seed: Seed of every random draw.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def fit_memory(
    run: str | pathlib.Path,
    *,
    windows: int = 60,
    draws: int = 3,
    seed: int = 1,
    offline: bool = False,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """Fit the eleven numbers of a run's memory on its valid split, and keep them with the run.

    They say how often a window copies the training genome, and how faithfully; the defaults are of
    yeast. `windows` of each class (unique, touched, repeat) are drawn, with `draws` masks each.
    Returns what is written to RUN/memory.json: numbers, fingerprint of the memory, and bits per
    base of those windows without the memory, with the numbers of before, and with the new ones.
    `memory="on"` takes them from then on. With `force` a file there that genodiff did not write is
    replaced. Raises `UsageError`, `DataError`, `CheckpointError`.

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        windows: Windows of each class: unique, touched, repeat.
        draws: Masks for each window.
        seed: Seed of every random draw.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def import_checkpoint(
    source: str | pathlib.Path,
    *,
    out: pathlib.Path | str,
    seq_len: int | None = None,
    raw: bool = False,
    tokenizer: str | None = None,
    seed: int = 1,
    offline: bool = False,
    plan: bool = False,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """Make the run folder `out` of published weights; what was found, with a probe of the network.

    `seq_len` is the window of later evaluation and training (default: the source's, or 1,024).
    `raw` takes the weights of a training checkpoint, not their averages. `tokenizer` (a name or a
    path) is for networks of text. With `plan` everything is judged and nothing written. No code
    among the files is run. Raises `CheckpointError`, `UsageError`.

    Args:
        source: A folder of save_pretrained, or a weight file with its config beside it.
        out: The run folder to make.
        seq_len: Window length of later evaluation and training (default: the source's, or 1024).
        raw: Of a training checkpoint the weights themselves, not their averages.
        tokenizer: Of a network of text: bytes, text8, gpt2, bert-base-uncased, or a path.
        seed: Seed of every random draw.
        offline: Never touch the network.
        plan: Read and judge, say what was found, and write nothing.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def ism(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    context: int | None = None,
    unit: typing.Literal['nats', 'bits'] = 'nats',
    memory: typing.Literal['on', 'off'] | None = None,
    batch_size: int = 8,
    genes: str | pathlib.Path | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    label: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the scores of all substitutions of regions.

    `sequences` is a FASTA file, or strings and records. `region` or `bed` say which part; without
    them each sequence is a region. A row of `bed` on - is read as its reverse complement: its
    scores run in the row's direction, and its bases are of that strand; positions are the genome's.

    A score is log p(base | all others) − log p(reference | all others) in `unit`, what `genodiff
    score --exact` gives for the same SNV. `memory` "on" mixes in what the training genome holds,
    but for each window's own locus. With a fine-tuned model it is the change of the log-odds of the
    class `label`, or of the value of a regression, of the region by itself.

    Rows are kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh`
    starts anew. With `plan` nothing is computed, and evaluations are counted. What is returned is
    what the sidecar OUT.json says. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.ism("runs/demo", "genome.fa", out="map.html", region=["chr1:1,000-1,200"])

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA file; each record is a region unless --region or --bed says so.
        out: .tsv, .parquet, .npz, .svg, .png, .pdf or .html; - for a table on stdout.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; a row on - is read as its reverse complement.
        context: Bases of a window (default: the trained length).
        unit: Unit of what is written; 1 bit is 0.69 nats.
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        batch_size: Windows at a time: changes the speed, never the map.
        genes: GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        label: Of a fine-tuned classifier: the class whose log-odds change.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def judge(
    samples: typing.Any,
    *,
    judge: str | pathlib.Path,
    reference: bool = True,
    repeats: int = 8,
    seed: int = 1,
    offline: bool = False,
    device: str = 'auto',
) -> dict[str, typing.Any]:
    """Perplexity of samples under the model in `judge`, with entropy and diversity, plain values.

    `samples` is a file as `genodiff sample` writes it, or sequences of DNA as strings or records.
    `figure` is "exact" of an autoregressive judge, and "bound" of a masked one: perplexity is then
    at most so much, estimated from `repeats` masks for each window. `real` holds the same of as
    many real windows of the judge's test split, `sampling` what the samples' sidecar says. Raises
    `UsageError`, `DataError`, `CheckpointError`.

    >>> genodiff.judge("samples.fa", judge="runs/ar")["samples"]["perplexity"]

    Args:
        samples: FASTA of DNA, or text with <|endoftext|> lines between samples, as `sample` writes
            it.
        judge: Run folder of the judge: autoregressive (exact) or masked (an upper bound).
        reference: The same figures of as many real windows of the judge's test split.
        repeats: Masks for each window, where the judge is masked.
        seed: Seed of every random draw.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
    """

def list_cache(
) -> dict[str, typing.Any]:
    """What lies in the cache folder: "folder", "bytes", "kinds" and "foreign".

    "kinds" has of each kind that is there its name ("kind"), what it is ("about"), how many things
    ("number"), their "bytes", and when one was last used ("last_used", ISO 8601 in UTC). "foreign"
    are paths that genodiff did not name; they are not counted, and never removed. All can be made
    or fetched again.

    >>> list_cache()["kinds"][0]["kind"]                                # doctest: +SKIP
    'stores'

    Args:
    """

def list_models(
) -> list[dict[str, typing.Any]]:
    """Each ready model as `show_model` gives it, in the order of their names.

    >>> [one["name"] for one in genodiff.list_models()]                # doctest: +SKIP
    ['ecoli', 'yeast']

    Args:
    """

def list_recipes(
    domain: typing.Literal['dna', 'text'] | None = None,
) -> list[dict[str, typing.Any]]:
    """The recipes by name, of all domains or one: name, domain, description, present, sources.

    `present` says that nothing has to be fetched: the files are here, or the data are generated.
    `sources` (url, filename, sha256, licence) is empty where they are, or where the files must be
    your own. Nothing is fetched.

    Args:
        domain: Only the recipes of this domain.
    """

def merge(
    shards: collections.abc.Sequence[str | pathlib.Path] = (),
    *,
    out: str | pathlib.Path,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write shards of `score`, `embed`, `eval`, `tracks`, `predict` as one; what its sidecar says.

    `out` has the bytes of a run without shards. `shards` may stand in any order; each has its
    sidecar beside it. "-" is stdout, for text. Of an evaluation `out` is JSON, it is added to
    RUN/eval.json too, and it is what is returned. Of tracks it is a folder. Raises
    `DataError` where one is missing, of another request, or was changed; `UsageError`,
    `MachineError`.

    Args:
        shards: The shards, in any order, each with its sidecar.
        out: File to write, of the shards' format, - for stdout; of tracks a folder.
        force: Overwrite a file that genodiff did not write itself.
    """

def predict(
    run: str | pathlib.Path,
    sequences: typing.Any = None,
    *,
    out: str | pathlib.Path = '',
    form: typing.Literal['csv', 'tsv', 'jsonl', 'parquet'] | None = None,
    column: collections.abc.Sequence[str] = (),
    fasta: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    task: str | None = None,
    model: str | None = None,
    method: str | None = None,
    setting: str | None = None,
    seed: int | None = None,
    ensemble: bool = False,
    batch_size: int = 64,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
    json: bool = False,
) -> typing.Any:
    """The predictions of a fine-tuned model for sequences without labels.

    `run` is the folder of a sweep or of one unit. Of a sweep with several models, `task`, `model`,
    `method`, `setting` and `seed` say which. With `ensemble` the mean of all its seeds is given,
    and `spread`, the standard deviation between them. `sequences` are strings, `SeqRecord`s, a
    mapping from names, or a file ("-" is stdin): FASTA or GenBank, a table (.csv, .tsv, .parquet;
    `column` names its column of sequences), intervals (.bed) of a genome (`fasta`), and for models
    of text sentences, one a line or in a table. A row of BED on - is read as its reverse
    complement. In place of `sequences`, `region` (chr1:1,000-2,000, 1-based and inclusive) says
    which parts of the genome are read.

    Without `out` a frame is returned: name, prediction, and p_CLASS (float32) for each class. With
    `out` (.csv, .tsv, .jsonl, .parquet, "-" for stdout in the format `form`) they are written, in
    bounded memory, with OUT.json beside them, and what that says is returned. What is predicted is
    kept in OUT.partial until `out` is there, and the same call goes on after it.

    A model of `finetune bases` reads a genome (FASTA) and labels each of its bases. `out` is then
    x.gff3 or x.bed, or a folder that has these and a bigWig of each class, strand or track; with
    `shard` a .npy file of a part. Without `out` it is an array of each sequence, (bases, labels).

    Sequences longer than what the fit read are cut as its own were. A file is read to its end
    before the first prediction, so that a fault in it comes at once. On a CPU the values have the
    same bits at any `batch_size` and in any company. Raises `UsageError`, `DataError` with file and
    line, `CheckpointError`, `MachineError`.

    >>> genodiff.predict("runs/labels", ["ACGTACGT", "TTTT"], seed=1)

    Args:
        run: Folder of a sweep, of a unit (one task, model, setting and seed of it), or of `finetune
            bases`.
        sequences: File of sequences; - is stdin (FASTA).
        out: Output: .csv, .tsv, .parquet, .jsonl, or - for CSV on stdout; of a model that labels
            bases a folder, .gff3 or .bed.
        form: The format of stdout [csv].
        column: Column of sequences of a table [sequence, seq]; twice for pairs of sentences.
        fasta: The genome of a BED file, or of --region.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        relatives: Of a model that labels bases with relatives: their genomes, where they are not
            where they were in training.
        task: Task, where a sweep has several.
        model: Model's name in the sweep, or RUN itself.
        method: full, probe or baseline.
        setting: paper, own, grid, ...
        seed: Seed of the fit, where a sweep has several.
        ensemble: Mean of all seeds, with their spread (standard deviation).
        batch_size: Sequences at a time: changes the speed alone.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
        json: One JSON line on stdout for each row.
    """

def redesign(
    run: str | pathlib.Path | None = None,
    *,
    out: str | pathlib.Path,
    line_width: int = 60,
    sidecar: str | pathlib.Path | None = None,
    label: str | None = None,
    guide: collections.abc.Mapping[str, typing.Any] | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    screen: str | collections.abc.Sequence[str] | None = None,
    screen_timeout: float | None = None,
    seed: int = 1,
    rules: collections.abc.Mapping[str, typing.Any] | None = None,
    sampler: str | None = None,
    steps: int | None = None,
    temperature: float = 1.0,
    from_noise: float | None = None,
    stride: int | None = None,
    batch_size: int | None = None,
    most_states: int | None = None,
    oracle_flank: int = 0,
    memory: typing.Literal['on', 'off'] | None = None,
    fasta: str | pathlib.Path | None = None,
    circular: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    template: str | pathlib.Path | None = None,
    n: int | None = None,
    constraints: str | pathlib.Path | None = None,
    vcf: str | pathlib.Path | None = None,
    changes: str | pathlib.Path | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Design regions anew, and write the designs with their edits as VCF and BED.

    The regions `bed` and `region` of the genome `fasta` are designed anew, their flanks being kept.
    `circular` are contigs that go round, beside those of which the file says so. Designs are edits
    along the genome: the strand of a row is not used. Or the open letters of `template` are, N as
    any base and an IUPAC code as its set. `constraints` is a YAML or JSON file of rules. Every
    design satisfies all. What cannot be met is a `UsageError` with a minimal conflict, before the
    network runs.

    Of a genome, the edits go to the files `vcf` (default OUT.vcf), with a sample for each design,
    and `changes` (default OUT.bed).

    `label` is a class of a run that was trained with labels, as in `genodiff.sample`. With a
    `guide` every design satisfies the constraints and is guided. An oracle sees each region, and
    `oracle_flank` bases on both sides of it; of a template, all of it. The network may remember its
    training genome, but for each region's own locus.

    Finished designs are kept in OUT.partial until `out` is there, and the same call goes on after
    them; `fresh` starts anew. With `plan` nothing is drawn. What is returned is what the sidecar
    says. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`, `Interrupted`.

    >>> genodiff.redesign("runs/demo", out="d.fa", fasta="g.fa", region=["chr1:101-160"], n=2)

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model
            (default: the one run under runs/).
        out: FASTA file to write; - for stdout, .gz for BGZF. NAME.gb: GenBank of whole records,
            their features kept, with each region and edit as a feature.
        line_width: Bases per line; 0: one line per sequence.
        sidecar: Where the sidecar goes (default: OUT.json, beside the file).
        label: Draw from this class of a run with labels; with cfg, guide to it.
        guide: Guidance by the settings of `genodiff.generate.guide_settings.GuideSettings`, such as
            {"guidance": "smc", "oracle": score}.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        screen: Command that sees the FASTA file, as its last argument, before anything is written;
            another exit status than 0 refuses it.
        screen_timeout: Seconds that --screen may take [no limit].
        seed: Seed of every random draw.
        rules: Constraints by the names of the flags, such as {"avoid": ["GGTCTC"], "max_edits": 5}.
        sampler: ancestral, confidence, first-hitting [the objective's own].
        steps: Steps per window (256).
        temperature: 1 is the model's own law.
        from_noise: Begin with what stands there, noised to this time (0.1: little, 1: all of it),
            in place of nothing.
        stride: New bases per window beyond the trained length (default: half of it).
        batch_size: Records at a time: changes the speed, never the bytes.
        most_states: States that the constraints of a region may need (default 8,388,608).
        oracle_flank: Bases on both sides of a region that the oracle sees too.
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        fasta: The genome that the regions are of.
        circular: A contig that goes round; a GenBank file or [topology=circular] in a FASTA header
            says so by itself. Constraints and windows cross its origin, and so may a region,
            pX:290-10.
        bed: BED file of regions to design. The strand column is not used: designs are edits along
            the genome, and --protein says which way a gene is read.
        region: As --bed: chr1:1,000-2,000, 1-based and inclusive; one or several.
        template: FASTA file in which N is any base, an IUPAC code one of its set.
        n: Designs of each region (default 1).
        constraints: YAML or JSON file with more constraints.
        vcf: The edits, a sample for each design (default: OUT.vcf).
        changes: BED file of what changed (default: OUT.bed).
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def report(
    *what: str | pathlib.Path,
    model: pathlib.Path | str | None = None,
    out: pathlib.Path | str | None = None,
    samples: pathlib.Path | str | None = None,
    fasta: pathlib.Path | str | None = None,
    top: int = 20,
    offline: bool = True,
    device: str = 'auto',
    force: bool = False,
) -> pathlib.Path:
    """Write the page of what a run folder or a file of scored variants holds; return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (of text, a file of `genodiff sample`) that is
    compared with real sequence in place of the run's own; then the default for `out` is
    SAMPLES.html.

    Several runs are set side by side: curves, bounds, settings that differ. The default for `out`
    is then report-RUN-RUN.html beside the first run.

    Of an output of `genodiff.score` (or of `genodiff.merge`) the default is SCORES.html. `model`,
    the run that made the scores, adds logos of the `top` least likely variants, and scores some
    again to test the standard errors; `fasta` is the genome, by default where it was.

    Raises `CheckpointError` where there is no run folder, `DataError` where `samples` is not there
    or a file holds no scores, `UsageError`, `MachineError`.

    Args:
        what: Run folder, several of them side by side, or an output of genodiff score (or of
            genodiff merge).
        model: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model
            (default: the one run under runs/).
        out: HTML file to write (default: RUN/report.html, SCORES.html, or report-RUN-RUN.html
            beside the first run).
        samples: Samples to set beside real sequence, in place of the run's own; the page is then
            SAMPLES.html.
        fasta: Of scores with --model: the genome (default: where it was).
        top: Of scores: how many of the least likely variants are listed.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def sample(
    run: str | pathlib.Path | None = None,
    *,
    out: str | pathlib.Path | None = None,
    line_width: int = 60,
    sidecar: str | pathlib.Path | None = None,
    label: str | None = None,
    guide: collections.abc.Mapping[str, typing.Any] | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    screen: str | collections.abc.Sequence[str] | None = None,
    screen_timeout: float | None = None,
    seed: int = 1,
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
    fasta: str | pathlib.Path | None = None,
    n: int | None = None,
    length: int | None = None,
    template: str | pathlib.Path | None = None,
    bed: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    only_filled: bool = False,
    prompt: str | None = None,
    bits_lost: float | None = None,
    domain: typing.Literal['dna', 'text'] | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write new sequences, or fillings of a template, with their provenance beside them.

    `run` is a run, a checkpoint or a published folder; None is the one run under runs/. What is
    written is FASTA (.gz is BGZF), of text a text file; "-" is stdout. New sequences are 16, of
    text 4. `template` is a FASTA file whose N and ? are filled, every other letter kept. With `bed`
    or `region` only these bases of the template are filled, whatever stands there and on whatever
    strand, and `only_filled` writes them alone. Of text, `prompt` is how each sample begins, and a
    template has gaps such as [[20]].

    `bits_lost` chooses the steps by the curve of the valid split. Record i depends on (`seed`, i)
    alone. `label` is a class of a run that was trained with labels: its law is drawn from. With cfg
    it is what the law of all is guided to. `screen` is handed all samples before anything is
    written, and nothing is kept in OUT.partial then.

    Finished records are kept in OUT.partial until `out` is there, and the same call goes on after
    them; `fresh` starts anew. With `plan` nothing is written, and evaluations and seconds are
    returned, with lines to read under "lines"; else what the sidecar says. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`, `Interrupted`.

    >>> genodiff.sample("runs/demo", out="new.fa", n=4, length=200)

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model
            (default: the one run under runs/).
        out: The same, and of text the file to write.
        line_width: Bases per line; 0: one line per sequence.
        sidecar: Where the sidecar goes (default: OUT.json, beside the file).
        label: Draw from this class of a run with labels; with cfg, guide to it.
        guide: Guidance by the settings of `genodiff.generate.guide_settings.GuideSettings`, such as
            {"guidance": "smc", "oracle": score}.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        screen: Command that sees the FASTA file, as its last argument, before anything is written;
            another exit status than 0 refuses it.
        screen_timeout: Seconds that --screen may take [no limit].
        seed: Seed of every random draw.
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
        fasta: FASTA file to write; - for stdout, .gz for BGZF, .gb for GenBank. With --bed or
            --region and no --template: the genome that they are of.
        n: Sequences (default 16), or fillings of each template (default 1).
        length: Bases per sequence (default: the trained length); more grow by windows.
        template: FASTA file (- for stdin) whose N and ? are filled, every other letter kept.
        bed: BED file: fill these bases of --template alone, whatever stands there; N elsewhere
            stays. The strand column is not used: bases are filled in place.
        region: As --bed: chr1:1,000-2,000, 1-based and inclusive; one or several.
        only_filled: Write the regions of --bed and --region, not the genome.
        prompt: Of text: how each sample begins.
        bits_lost: Choose the steps: the fewest that lose so many bits per 1,000 bases, against one
            base at a time.
        domain: What the checkpoint is expected to hold.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def score(
    run: str | pathlib.Path,
    variants: typing.Any,
    *,
    out: str | pathlib.Path = '',
    method: str = 'auto',
    se: float = 0.25,
    max_evaluations: int = 512,
    context: int | typing.Literal['2x'] | None = None,
    longest: int = 1024,
    exact: bool = False,
    batch_size: int | None = None,
    memory: typing.Literal['on', 'off'] | None = None,
    seed: int = 1,
    fasta: str | pathlib.Path,
    unit: typing.Literal['nats', 'bits'] = 'nats',
    background: int | str = 'off',
    haplotypes: bool = False,
    features: str | pathlib.Path | None = None,
    genetic_code: collections.abc.Sequence[str] = (),
    region: collections.abc.Sequence[str] = (),
    shard: str | None = None,
    allow_mismatches: bool = False,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    load: str | pathlib.Path | None = None,
    page: bool = False,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
    json: bool = False,
) -> dict[str, typing.Any]:
    """Write the scores of a file of variants to `out`; what its sidecar says.

    `variants` is VCF, BCF or a table (CSV, TSV, parquet) with chrom, pos (from 1), ref and alt; "-"
    is stdin. `out` ends in .vcf, .tsv, .parquet or .jsonl, or in .vcf.gz or .tsv.gz, which get an
    index where the records are sorted; "-" is stdout, as JSON lines with `json`. Records stay in
    their order, and none is dropped: an ALT without a score has its reason.

    With `shard`, "i/n", the i-th of n parts of the records is written, and `genodiff.merge` puts
    the parts together. Scores are kept in OUT.partial until `out` is there, and the same call goes
    on after them; `fresh` starts anew. With `plan` nothing is computed, and counts are returned.
    Random variants of a `background` are kept in the cache folder.

    A file most of whose records do not fit the genome is refused. Where some do not, `out` is
    written whole, they are marked in it, and `DataError` is raised at the end, unless
    `allow_mismatches`. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.score("runs/demo", "variants.vcf", fasta="genome.fa", out="scored.vcf")

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        variants: VCF, BCF, CSV, TSV, JSON lines or parquet (chrom, pos, ref, alt); - for stdin.
        out: .vcf, .tsv, .parquet or .jsonl; .vcf.gz and .tsv.gz get an index; - for stdout.
        method: llr: the bases that differ, masked together; chain: unmasked one after the other;
            nelbo: the bound of the whole window; votes: of relatives, how many have each base (one
            base for another alone); headcount: as votes, each relative counting once, and more
            where the places around change quickly; profiles: of relatives, how well a mutation-
            selection model in its reading frame tolerates it; auto: llr for one base, chain for
            spans of up to 8, nelbo beyond.
        se: Standard error, in nats, that nelbo goes on to.
        max_evaluations: Evaluations of one variant after which nelbo stops above --se, with a flag.
        context: Bases of a window (default: the trained length); 2x scores at double context as
            well, and flags what moves.
        longest: Bases that may differ in one variant: a longer one is not scored, but counted.
        exact: Give every SNV an evaluation of its own.
        batch_size: Windows at a time: changes speed and memory, never the scores (default: about
            32,768 bases).
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        seed: Seed of every random draw.
        fasta: The genome that the variants are of.
        unit: Unit of what is written; 1 bit is 0.69 nats.
        background: Rank scores among random variants of the genome: off, on (10,000), or how many.
            They cost evaluations once, and are kept (see --plan).
        haplotypes: Score the phased variants of one copy together too, from GT and PS: as FORMAT
            fields of a VCF, or a column of a table. They cost evaluations (see --plan).
        features: Genes (GFF3, GTF, BED12, GenBank): puts the consequence of each variant beside its
            score (missense, splice donor, ...).
        genetic_code: CONTIG=N, with --features: NCBI's number of a contig's genetic code, where the
            annotation does not say it; chrM=2. May be given several times.
        region: Only variants in chr1:1,000-2,000, 1-based and inclusive; one or several.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        allow_mismatches: Records that do not fit the FASTA are marked, and are no error.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        load: Also write a table of genetic load by sample, LOAD.tsv: derived alleles and their
            constraint, by consequence with --features. Needs --relatives and genotypes.
        page: Also write OUT.html: what `genodiff report OUT --model RUN` draws.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
        json: One JSON line on stdout for each row.
    """

def scorecard(
    samples: typing.Any = None,
    *,
    run: str | pathlib.Path | None = None,
    real: typing.Any = None,
    train: typing.Any = None,
    most: int = 1000,
    html: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    motifs: str | pathlib.Path | None = None,
    embed: str | pathlib.Path | None = None,
    split: typing.Literal['test', 'valid'] = 'test',
    fasta: str | pathlib.Path | None = None,
    cnn: bool = False,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """How near generated DNA is to real DNA, beside a floor and Markov sequence, as plain values.

    `samples` is a file, or sequences as strings or records; `most` of them are drawn by `seed` in
    one pass. Real sequence is the `split` of the data of `run` (a run folder; `fasta` is its genome
    where it has moved), or what `real` holds. Then `train`, a run folder or sequences, is what
    Markov models count and what copies are looked for in. `motifs` is a MEME, JASPAR or TRANSFAC
    file. `embed` is a run whose embeddings are compared (default: `run`). `cnn` adds a
    convolutional discriminator, which takes minutes.

    `sets` holds the same figures of the samples, of other real sequence of the same size, and of
    Markov sequence of orders 1, 5 and 8; `findings` says where samples are off the floor. `html` is
    a page to write, and `force` replaces a file there that genodiff did not write. Raises
    `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.scorecard("samples.fa", run="runs/demo")["findings"]

    Args:
        samples: FASTA file of generated DNA.
        run: Run whose held-out split is the real sequence, and whose train split is searched for
            copies; with --designs, the model that was not guided.
        real: FASTA file of real sequence, in place of a run's.
        train: With --real: FASTA file, or run, that the generator was trained on.
        most: Samples to measure; more are drawn from.
        html: Page to write, with pictures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        motifs: MEME, JASPAR or TRANSFAC file of motifs to count.
        embed: Run whose embeddings are compared (default: that of --model).
        split: Split of the run's data that is held out.
        fasta: The run's FASTA file, where it has moved.
        cnn: A convolutional discriminator too (minutes).
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def show_model(
    name: str,
) -> dict[str, typing.Any]:
    """What is known of a ready model: its name, folder, size in bytes, weights, kind, and facts.

    "facts" is what FOLDER/facts.json holds (`api/ready_card.py`): what it was trained on, its
    licence, tables of figures, limits, and how it was made; empty for a model without. Raises
    `UsageError` for an unknown name, naming what is near, and `CheckpointError` for a damaged file.

    >>> genodiff.show_model("yeast")["parameters"]                     # doctest: +SKIP
    470702

    Args:
        name: A name that `genodiff models list` prints.
    """

def tracks(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    every: int | None = None,
    context: int | None = None,
    memory: typing.Literal['on', 'off'] | None = None,
    batch_size: int = 8,
    formats: collections.abc.Sequence[str] | None = None,
    genome: str | None = None,
    email: str = 'nobody@example.org',
    genes: str | pathlib.Path | None = None,
    track: collections.abc.Sequence[str] = (),
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the tracks of a genome, or of regions of it.

    Tracks are p(A), p(C), p(G) and p(T) given all other bases, the heights of a logo, entropy,
    information and the surprisal of the reference, in bits; with `relatives` also what these say
    alone, how many of their votes agree, and each relative. `sequences` is a FASTA file, or strings
    and records. `region` or `bed` say which part; without them all is read. Each base is read once,
    wherever regions overlap. Tracks run along the genome: the strand of a row is not used.

    A hub is for UCSC's `genome`, such as hg38, whose names its contigs then have, or without it
    brings its own sequence; `email` stands in it. Each base is masked by itself, or with `every=m`
    each m-th base of a tile at once, which is quicker; how far the two differ is measured and told.

    What is read is kept in OUT.partial until `out` is there, and the same call goes on after it;
    `fresh` starts anew. With `plan` nothing is computed. `force` renames a folder that genodiff did
    not write. What is returned is what the sidecar says. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.

    >>> genodiff.tracks("runs/demo", "genome.fa", out="tracks", region=["chr1:1,000-9,000"])

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA file; all of it is read unless --region or --bed says so.
        out: Folder to write; with --shard a .npy file of the part.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; the strand column is not used: tracks run along the genome.
        every: Mask every N-th base in one pass (approximate; default: each by itself). Smaller N is
            faster: 8 needs 8 passes per window, 64 needs 64.
        context: Bases of a window (default: the trained length).
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        batch_size: Windows at a time: changes the speed, never the map.
        formats: bigwig, bedgraph, bedgraph.gz, npz, parquet, svg, png, pdf, html, wig, wig.gz;
            bigwig comes with a track hub, svg, png and pdf are of one region; one or several
            [bigwig, and html up to 100,000 bases].
        genome: UCSC's name of the genome, such as hg38, for the hub, whose names contigs then have
            (default: the hub brings the sequence).
        email: Address that stands in the hub.
        genes: GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.
        track: NAME=FILE: values that are drawn below, bigWig or bedGraph; or a folder that
            `genodiff predict` wrote: all its values, and its genes; one or several.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def train(
    source: str | pathlib.Path | None = None,
    *,
    fasta: str | pathlib.Path | None = None,
    bed: str | pathlib.Path | None = None,
    text: str | pathlib.Path | None = None,
    genomes: str | pathlib.Path | None = None,
    labels: str | pathlib.Path | None = None,
    memory: bool = False,
    preset: str | None = None,
    config: pathlib.Path | str | None = None,
    out: pathlib.Path | str | None = None,
    resume: pathlib.Path | str | None = None,
    fresh: bool = False,
    init: str | pathlib.Path | None = None,
    domain: typing.Literal['dna', 'text'] | None = None,
    seed: int | None = None,
    device: str = 'auto',
    offline: bool = False,
    logger: collections.abc.Sequence[typing.Literal['csv', 'tensorboard', 'wandb']] = ('csv',),
    argv: list[str] | None = None,
    devices: int = 1,
    fsdp: bool = False,
    plan: bool = False,
    print_sbatch: bool = False,
    force: bool = False,
    **settings: typing.Any,
) -> genodiff.training.run.RunResult:
    """Train until the run's limit, or go on in its folder; how the run stands then.

    `source` is a recipe ("toy", "hg38"), its YAML file, or your own FASTA, GenBank or EMBL file.
    `settings` are those of `genodiff config schema`, by their place or their own name:
    `train("toy", max_steps=50, lr=1e-3, out="runs/x")`, or by section: `optim={"lr": 1e-3}`.
    `genomes` is a list of many genomes (docs/how-to/many-genomes.md), or the folder or URL of what
    was built of one; `data={"temperature": T}` evens out how often each is drawn.
    `labels` is a table (CONTIG LABEL) or BED file (CONTIG START END LABEL): the network learns the
    law of each class beside that of all, for `genodiff.sample(label=...)`; with `genomes`,
    "species" is the list's column. With `memory` it is trained beside a memory of the train split,
    and learns what that does not know.
    `logger` adds curves for "tensorboard" or "wandb" to `metrics.csv`. With `devices` that many
    processes share each step, each on a GPU of its own or on the CPU; a script that asks for them
    needs `if __name__ == "__main__":`. With `fsdp` each of them keeps a part of every tensor.

    The result has `run` (the folder), `step`, `seconds`, `tokens`, `valid_bits` (bits per base of
    the last validation, or None) and `already_done`. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`, and `Interrupted` (its state is saved) after a signal.

    Args:
        source: hg38, sacCer3, toy, wikitext2, ..., a recipe's YAML file, or your FASTA or GenBank
            file; with --domain text a text.
        fasta: Your FASTA in the recipe's place (or without any recipe).
        bed: Your intervals as BED; column 4 says train, valid or test. The strand column is not
            used: a base is in one split, whichever strand is read.
        text: Your file or folder of text in the recipe's place (or without any recipe).
        genomes: Many genomes: a list (columns path, name, weight, species, split, sha256), or the
            folder or URL that `genodiff data genomes` built.
        labels: Conditional training: CONTIG LABEL, or BED with the label in column 4 (its strand is
            not used: a label is of a window), or the word species with --genomes. See sample
            --label.
        memory: Train beside a memory of the train split: the network learns what it lacks.
        preset: Network: caduceus-ps-470k, dit-470k, ...; `genodiff config presets` lists them.
        config: YAML file of settings; flags go over it.
        out: Run folder (default: runs/RECIPE-PRESET).
        resume: Go on in this run folder, which must exist.
        fresh: Refuse to go on: the folder must hold no run.
        init: Begin from these weights: a run, a checkpoint or a published folder.
        domain: What the sequences are (default: the recipe's).
        seed: Seed of every random draw [1].
        device: Where to compute.
        offline: Never touch the network.
        logger: Where curves go; repeatable. metrics.csv is always written; W&B stays offline unless
            WANDB_MODE=online [csv].
        argv: The command that the run folder remembers.
        devices: Processes that share each step, each on a GPU of its own or on the CPU.
        fsdp: Each process keeps a part of every tensor (FSDP2), where one GPU does not hold the
            network.
        settings: Settings of the run, by name.
        plan: Say what would be done, and stop.
        print_sbatch: Print a SLURM job of this command that requeues, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def train_tokenizer(
    texts: str | pathlib.Path | collections.abc.Sequence[str | pathlib.Path],
    *,
    out: pathlib.Path | str,
    vocab_size: int = 8192,
    recipe: str | pathlib.Path | None = None,
    offline: bool = False,
    force: bool = False,
) -> genodiff.api.tokenizer.TrainedTokenizer:
    """Write `out`/tokenizer.json, a byte-level BPE of `texts`; its path and number of tokens.

    `texts` are files and folders. A text `recipe` says how they are read, and only its train files
    are learned from. `vocab_size` counts the 256 bytes and three special tokens. Raises
    `UsageError`, `DataError` for texts that cannot be read, `MachineError` without the package
    tokenizers.

    Args:
        texts: Text files or folders to learn from.
        out: Folder to write tokenizer.json into; give it to --tokenizer.
        vocab_size: Tokens, with the 256 bytes and three special ones.
        recipe: How the files are read: a text recipe; its train files are used.
        offline: Never touch the network.
        force: Overwrite a file that genodiff did not write itself.
    """

def watch(
    *runs: str | pathlib.Path,
    interval: float = 2.0,
    once: bool = False,
) -> collections.abc.Iterator[list[genodiff.runs.progress_reader.Progress]]:
    """How the runs stand, now and every `interval` seconds, until none is in training; or `once`.

    Each `Progress` has `steps`, `loss` and `valid` (bits), `seconds`, `tokens`, `horizon` and
    `state`. Folders are read, never locked. Raises `UsageError` for a folder that holds no run.

    Args:
        runs: Run folders.
        interval: Seconds between two looks.
        once: Look once; so it is where stdout is no terminal.
    """
