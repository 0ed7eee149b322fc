"""Words of each verb beside its name, in a folder that `write_inputs` has filled: for laws over all
verbs. A verb that is not here is called with `list_usual_words`.
"""

import gzip
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from genodiff.jobs.request import Field, Request, list_fields
from genodiff.jobs.verbs import list_verbs
from tests.tiny_run import differ, genome_text, write_vcf

RELATED = ("--relatives", "r1.fa", "r2.fa", "--strains")
GENOME = ("--fasta", "g.fa")
CALLS: dict[str, tuple[str, ...]] = {
    "score": ("{run}", "v.vcf", *GENOME, "-o", "o.vcf", *RELATED),
    "tracks": ("{run}", *GENOME, "--region", "c1:1-900", "-o", "t", "--every", "16", *RELATED),
    "ism": ("{run}", *GENOME, "--region", "c1:101-150", "-o", "i.tsv", *RELATED),
    "dependencies": ("{run}", *GENOME, "--region", "c1:101-110", "-o", "d.tsv", *RELATED),
    "embed": ("{run}", *GENOME, "--region", "c1:1-500", "-o", "e.csv", *RELATED),
    "eval": ("{run}", *GENOME, *RELATED),
    "sample": ("{run}", "-n", "2", "--length", "64", "-o", "n.fa", *RELATED),
    "redesign": ("{run}", *GENOME, "--region", "c1:101-130", "-o", "r.fa", *RELATED),
    "constraint": ("g.fa", "--region", "c1:1-900", "--relatives", "r1.fa", "r2.fa", "-o", "k"),
    "align": ("g.fa", "--region", "c1:1-900", "--relatives", "r1.fa", "--strains", "-o", "r.paf"),
    "compare": ("{run}", "other", "--out", "cmp"),
    "predict": ("{fitted}", "s.fa", "-o", "p.csv", "--seed", "1"),
    "finetune bases": (
        "{run}", "g.fa", "--genes", "g.gff3", "-o", "b", "--core", "60", "--context", "20",
        *RELATED,
    ),
    "finetune table": ("--train", "train.csv", "--test", "test.csv", "-o", "f", "--model", "{run}"),
    "train": ("own", *GENOME, "-o", "runs/t", "--preset", "caduceus-ps-tiny"),
    "data relatives": ("l.tsv",),
    "data genomes": ("l.tsv",),
    "checkpoint import": ("pub", "-o", "imported"),
    "finetune *": ("--model", "{run}", "--data", "flies", "-o", "f"),
}  # fmt: skip


SUITE = "deepstarr-sample"
"""The suite whose files `write_inputs` writes, for the verb "finetune *"."""


def list_planned():
    """The verbs that have a plan."""
    return [n for n, v in list_verbs().items() if "plan" in {f.name for f in list_fields(v.open())}]


def find_words(verb, run, fitted=None):
    """The words of a call of a verb in this folder."""
    if verb in CALLS:
        return [word.format(run=run, fitted=fitted) for word in CALLS[verb]]
    return list_usual_words(list_verbs()[verb].open(), run, Path.cwd())


def write_inputs(text: str = "", variants: int = 1):
    """A genome, two relatives, variants, genes and lists in this folder."""
    text = text or genome_text()
    Path("g.fa").write_text(text)
    for i in (1, 2):
        Path(f"r{i}.fa").write_text(differ(text, 0.1, i))
    Path("l.tsv").write_text("path\tsplit\nr1.fa\ttrain\nr2.fa\ttrain\n")
    Path("g.gff3").write_text("##gff-version 3\nc1\tx\tCDS\t31\t60\t.\t+\t0\tID=a\n")
    write_vcf(Path("v.vcf"), variants * [f"c1 50 {text.split()[1][49].upper()} G,C,T,A"])
    Path("s.fa").write_text(f">s\n{text.split()[1][:25]}\n")
    Path("flies").mkdir()
    letters = "".join(text.split()[1::2]).upper().replace("N", "A")
    for i, part in enumerate(("train", "val", "test")):
        starts = range(1000 * i, 1000 * i + 900, 15)
        rows = [f"{letters[at : at + 249]}\t{at % 7}\t{at % 5}\n" for at in starts]
        head = "Sequence\tDev_log2_enrichment\tHk_log2_enrichment\n"
        name = f"flies/deepstarr_sample_{part}.tsv.gz"
        Path(name).write_bytes(gzip.compress((head + "".join(rows)).encode()))


def list_usual_values(request: type[Request[Any]], run: Path, here: Path) -> dict[str, Any]:
    """A value of each field without a default: a run, a FASTA file, a new output, or a word.

    A verb that needs another value has a call of its own where this is asked.
    """
    (here / "usual.fa").write_text(f">chr1\n{'ACGTTGCAAC' * 20}\n")
    defaults = {one.name: one.default for one in fields(request)}
    return {
        one.name: _choose(one, run, here)
        for one in list_fields(request)
        if defaults[one.name] is MISSING
    }


def _choose(one: Field, run: Path, here: Path) -> Any:
    if one.name == "run":
        return run
    if one.name == "out":
        return here / "mine"
    return here / "usual.fa" if one.option.is_input else "word"


def list_usual_words(
    request: type[Request[Any]], run: Path, here: Path, *, leave_out: str = ""
) -> list[object]:
    """The same on the command line, without the field `leave_out`."""
    values, words = list_usual_values(request, run, here), list[object]()
    for one in list_fields(request):
        if one.name in values and one.name != leave_out:
            flag = [] if one.option.is_word else [one.flags[0]]
            words += [*flag, values[one.name]]
    return words
