"""The ready models: trained, measured, and put where `--model NAME` finds them.

    python benchmarks/models/make.py yeast --fasta sacCer3.fa.gz --out FOLDER [--run RUN]
        [--relatives LIST]

Trains FOLDER/run (or takes RUN, which this trained), evaluates the test split alone and with the
memory of its own genome, writes FOLDER/NAME with weights, card and facts.json, and prints the
commands. `--relatives` adds the figure with the genomes of relatives. The same command on the same
hardware gives the same weights to the bit. Copy FOLDER/NAME to `genodiff/models/`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from commands import genodiff, last_session

MASKS = 4  # draws of masks for each window


class Recipe(NamedTuple):
    """How a model is made, and what its card says that no measurement can."""

    train: tuple[str, ...]
    about: str
    data: str
    held_out: str
    limits: tuple[str, ...]
    licence: str = "Apache-2.0"


RECIPES = {
    "yeast": Recipe(
        ("sacCer3", "--preset", "caduceus-ps-470k", "--max-steps", "3200"),
        "baker's yeast, one genome",
        "S. cerevisiae S288C (sacCer3), all chromosomes but chrXIV, chrXVI and chrM",
        "chrXIV (test), chrXVI (valid)",
        ("One genome of one species: what is conserved it does not know without relatives.",),
    ),
    "ecoli": Recipe(
        ("ecoli_k12", "--preset", "caduceus-ps-470k", "--max-steps", "1600"),
        "Escherichia coli K-12, one genome",
        "E. coli K-12 MG1655 (NC_000913.3), 10,000 to 3,700,000",
        "4,170,000 to 4,641,652 (test), 3,710,000 to 4,160,000 (valid)",
        ("One genome of one species: what is conserved it does not know without relatives.",),
    ),
}


def list_figures(evaluations: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures of RUN/eval.json as facts: what, bits, interval; counting beside the network."""
    figures = []
    for name, one in evaluations.items():
        windows = f"{one['windows']:,} of {one['windows_total']:,} windows"
        kind = "at most" if one["figure"] == "bound" else "exactly"
        what = f"bits per base, {name}, {kind} ({windows}, {one['repeats']} draws of masks)"
        figures.append({"what": what, "value": one["bits_per_base"], "interval": one["ci95_bits"]})
        for order, bits in (one["markov_bits"] or {}).items():
            what = f"bits per base, {name}, counting the train split, order {order}"
            figures.append({"what": what, "value": bits, "interval": None})
    return figures


def make(
    name: str, fasta: Path, out: Path, run_folder: Path | None, relatives: Path | None
) -> Path:
    """Train, evaluate, export; the model's folder."""
    recipe = RECIPES[name]
    folder = run_folder or out / "run"
    if not (folder / "model.json").exists():
        words = (*recipe.train, "--fasta", str(fasta), "--seed", "1")
        genodiff("train", *words, "--out", str(folder))
    common = (str(folder), "--fasta", str(fasta), "--repeats", str(MASKS), "--seed", "1")
    genodiff("eval", *common)
    genodiff("eval", *common, "--memory", "on", "--no-baselines")
    evaluations = json.loads((folder / "eval.json").read_text())
    if relatives is not None:
        more = out / "relatives.json"
        given = ("--relatives", str(relatives), "--no-baselines", "--out", str(more))
        genodiff("eval", *common, *given)
        evaluations |= {f"{k} with relatives": v for k, v in json.loads(more.read_text()).items()}
    model = out / name
    genodiff(
        "checkpoint", "export", str(folder), "--format", "safetensors", "--license",
        recipe.licence, "--out", str(model),
    )  # fmt: skip
    session = last_session(folder)
    facts = {
        "about": recipe.about,
        "data": recipe.data,
        "held_out": recipe.held_out,
        "licence": recipe.licence,
        "figures": list_figures(evaluations),
        "limits": list(recipe.limits),
        "made_by": {
            "commands": [f"genodiff train {' '.join(recipe.train)} --seed 1"],
            **{key: session[key] for key in ("git", "device", "cpu", "threads", "versions")},
            "training_seconds": session["training_seconds"],
        },
    }
    (model / "facts.json").write_text(json.dumps(facts, indent=2) + "\n")
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--fasta", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--relatives", type=Path)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    print(make(asked.name, asked.fasta, asked.out, asked.run or asked.out / "run", asked.relatives))


if __name__ == "__main__":
    main()
