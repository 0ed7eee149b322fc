"""The ready models: trained, measured, and put where `--model NAME` finds them.

    python benchmarks/models/make.py yeast --fasta sacCer3.fa.gz --out FOLDER [--run RUN]
        [--relatives GENOME ...] [--genes ANNOTATION] [--truth TABLE] [--max-windows N]
    python benchmarks/models/make.py yeast --check MODEL --fasta sacCer3.fa.gz [the same]

The first trains FOLDER/run (or takes RUN, which it trained), exports FOLDER/NAME with weights of 16
bits, measures it, and writes facts.json and the card there. Copy FOLDER/NAME to `genodiff/models/`.
The second measures MODEL again and compares: each figure must lie in the interval of the card, or
be the card's own; it ends with 1 where one is not. README.md beside this has the commands.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from commands import genodiff, last_session, plain
from measure import Kept, Sources, measure

from genodiff.api.models import FACTS, describe_model, format_facts, seal_facts
from genodiff.errors import UsageError
from genodiff.hub.model_card import format_front
from genodiff.io import atomic

CARD = "README.md"
THREE = Path(__file__).with_name("yeast_three.bed")
CLOSE = 0.0005  # of a figure without an interval


class Recipe(NamedTuple):
    """How a model is made, and what its card says that no measurement can."""

    train: tuple[str, ...]
    about: str
    data: str
    held_out: str
    stretches: dict[str, tuple[int, int]]
    limits: tuple[str, ...]
    teacher: bool = False
    """Whether the related genomes teach it."""
    licence: str = "Apache-2.0"


ONE_GENOME = (
    "One genome of one species: by itself it does not know which bases are conserved. "
    "Without related genomes its variant scores are not evidence, as the tables above show.",
    "Counting baselines are ahead of the network in repeats; retrieval closes that gap.",
    "Windows of 1,024 bases: more distant sequence is not seen.",
)
RECIPES = {
    "yeast": Recipe(
        ("sacCer3", "--preset", "caduceus-ps-470k", "--max-steps", "3200"),
        "Baker's yeast, one genome.",
        "S. cerevisiae S288C (sacCer3), all chromosomes but chrXIV, chrXVI and chrM",
        "chrXIV (test), chrXVI (valid)",
        {"chrXIV": (0, 784_333)},
        ONE_GENOME,
    ),
    "yeast-taught": Recipe(
        (
            *("sacCer3", "--bed", str(THREE), "--preset", "caduceus-ps-470k"),
            *("--bell", "0.3", "--bell-center", "0.4", "--max-steps", "1500"),
        ),
        "Baker's yeast, taught by four related genomes which bases evolution accepts.",
        "S. cerevisiae S288C (sacCer3), all chromosomes but chrXIII, chrXIV, chrXVI and chrM",
        "chrXIII and chrXIV (test), chrXVI (valid)",
        {"chrXIII": (0, 924_431), "chrXIV": (0, 784_333)},
        (
            "Constraint is read by `--method wildtype`; `llr`, the default, does not show it.",
            "It learnt codons, not start codons or splice donors: see the checks above.",
            *ONE_GENOME[1:],
        ),
        teacher=True,
    ),
    "ecoli": Recipe(
        ("ecoli_k12", "--preset", "caduceus-ps-470k", "--max-steps", "1600"),
        "Escherichia coli K-12, one genome.",
        "E. coli K-12 MG1655 (NC_000913.3), 10,000 to 3,700,000",
        "4,170,000 to 4,641,652 (test), 3,710,000 to 4,160,000 (valid)",
        {"NC_000913.3": (4_170_000, 4_641_652)},
        ONE_GENOME,
    ),
    "human-pieces": Recipe(
        ("hg38", "--preset", "caduceus-ps-470k", "--max-steps", "1800"),
        "7.4 million bases of the human genome, for trying out only.",
        "pieces of hg38: chr1, chr2, chr10 and chr17, 7.4 Mb",
        "pieces of chr21 and chr8 (test), of chr13 and chr20 (valid)",
        {},
        (
            "For trying out commands. It has seen 0.2 % of the human genome: none of its "
            "predictions on human DNA is worth reporting.",
        ),
    ),
}


def make(name: str, run: Path, out: Path, sources: Sources, most: int | None) -> Path:
    """Train where there is no model in `run`, export, measure; the model's folder."""
    recipe = RECIPES[name]
    if not (run / "model.json").exists() and not (run / "checkpoints").exists():
        genodiff(*spell_training(recipe, run, sources))
    model = out / name
    genodiff(
        "checkpoint", "export", str(run), "--format", "safetensors", "--half",
        "--license", recipe.licence, "--out", str(model), "--force",
    )  # fmt: skip
    digest = json.loads((model / "model.json").read_text(encoding="utf-8"))["weights_sha256"]
    kept = Kept(out / f"{name}-{digest[:12]}.json")
    tables = measure(name, model, sources, recipe.stretches, most, kept)
    session = last_session(run)
    made_by: dict[str, Any] = {key: session[key] for key in ("git", "device", "cpu", "threads")}
    made_by |= {
        "commands": [
            plain(*spell_training(recipe, run, sources)),
            f"python benchmarks/models/make.py {name} --run RUN {spell(sources, most)}",
        ],
        "versions": session["versions"],
        "seconds": read_seconds(run),
    }
    facts = {
        "about": recipe.about,
        "data": recipe.data,
        "held_out": recipe.held_out,
        "licence": recipe.licence,
        "measured": f"Measured in {kept.spent / 60:.0f} minutes on one core.",
        "tables": tables,
        "limits": list(recipe.limits),
        "made_by": made_by,
    }
    sealed = seal_facts(facts, model)
    atomic.write_text(model / FACTS, json.dumps(sealed, indent=1, ensure_ascii=False) + "\n")
    told = describe_model(name, model)
    atomic.write_text(model / CARD, f"{format_front(recipe.licence)}\n\n{format_facts(told)}")
    return model


def spell_training(recipe: Recipe, run: Path, sources: Sources) -> tuple[str, ...]:
    """The command that trains a model into `run`; if interrupted, it resumes."""
    train = ["train", *recipe.train, "--fasta", str(sources.fasta)]
    if recipe.teacher:
        if not sources.relatives:
            raise UsageError("the recipe has a teacher", fix="give its genomes with --relatives")
        genomes = run.with_name("relatives")
        genomes.mkdir(exist_ok=True)
        for one in sources.relatives:
            (genomes / one.name).unlink(missing_ok=True)
            (genomes / one.name).symlink_to(one.absolute())
        train += ["--teacher", str(genomes)]
    return (*train, "--seed", "1", "--threads", "1", "--out", str(run))


def spell(sources: Sources, most: int | None) -> str:
    """The flags of the files, without this machine's folders."""
    words = [f"--fasta {sources.fasta.name}"]
    if sources.relatives:
        words.append("--relatives " + " ".join(path.name for path in sources.relatives))
    for flag, path in (("--genes", sources.genes), ("--truth", sources.truth)):
        words += [f"{flag} {path.name}"] if path else []
    return " ".join([*words, *([f"--max-windows {most}"] if most else [])])


def read_seconds(run: Path) -> float:
    """Seconds of training, of the last row of RUN/metrics.csv, or of a card that is there."""
    if (run / FACTS).exists():
        return float(json.loads((run / FACTS).read_text(encoding="utf-8"))["made_by"]["seconds"])
    rows = (run / "metrics.csv").read_text(encoding="utf-8").splitlines()
    column = rows[0].split(",").index("seconds")
    return float(rows[-1].split(",")[column])


def list_figures(tables: list[dict[str, Any]]) -> dict[tuple[str, str, str], list[float]]:
    """Each figure of a card by table, row and column."""
    return {
        (table["title"], row["name"], column): cell
        for table in tables
        for row in table["rows"]
        for column, cell in zip(table["columns"], row["cells"], strict=True)
        if cell
    }


def compare(card: list[dict[str, Any]], again: list[dict[str, Any]]) -> list[str]:
    """What of a card was not found again, a line each."""
    old, new = list_figures(card), list_figures(again)
    faults = [f"{', '.join(key)}: is missing" for key in old.keys() - new.keys()]
    for key in old.keys() & new.keys():
        value, *ends = old[key]
        low, high = ends or (value - CLOSE, value + CLOSE)
        if not low <= new[key][0] <= high:
            faults.append(f"{', '.join(key)}: {new[key][0]:.4f} is outside {low:.4f} to {high:.4f}")
    return sorted(faults)


def check(name: str, model: Path, sources: Sources, most: int | None) -> None:
    """Measure again; ends with 1 where a figure of the card is not found again."""
    card = json.loads((model / FACTS).read_text(encoding="utf-8"))["tables"]
    again = measure(name, model, sources, RECIPES[name].stretches, most)
    faults, figures = compare(card, again), list_figures(card)
    same = sum(list_figures(again).get(key) == cell for key, cell in figures.items())
    print("\n".join(faults) or "every figure lies in its interval", file=sys.stderr)
    print(f"{len(figures)} figures, {same} the same to the last digit, {len(faults)} outside")
    if faults:
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--fasta", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="where the model is put")
    parser.add_argument("--run", type=Path, help="a run that is trained")
    parser.add_argument("--check", type=Path, metavar="MODEL", help="measure this model again")
    parser.add_argument("--relatives", type=Path, nargs="+", default=())
    parser.add_argument("--genes", type=Path, help="BED, GFF3: the laws of genes")
    parser.add_argument("--truth", type=Path, help="a table of benchmarks/relatives")
    parser.add_argument("--max-windows", type=int, help="bits of fewer windows, for a rehearsal")
    asked = parser.parse_args()
    sources = Sources(asked.fasta, tuple(asked.relatives), asked.genes, asked.truth)
    try:
        if asked.check:
            check(asked.name, asked.check, sources, asked.max_windows)
            return
        if asked.out is None:
            parser.error("--out is needed")
        asked.out.mkdir(parents=True, exist_ok=True)
        run = asked.run or asked.out / "run"
        print(make(asked.name, run, asked.out, sources, asked.max_windows))
    except UsageError as fault:
        sys.exit(str(fault))


if __name__ == "__main__":
    main()
