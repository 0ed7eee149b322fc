"""Hashes of everything that a refactor must leave as it is, bit for bit.

    PYTHONPATH=TREE python benchmarks/golden.py OUT.json    # for both trees; compare the two files

Only the command line is used, so the script runs on any two commits. It trains 200 steps on the toy
genome and a few steps under every objective, evaluates, samples with every sampler, fine-tunes,
embeds, and exports and imports again. Times, paths, versions and dates are left out of the hashes.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from fork_server import ForkServer

CHANGING = """
    argv command commit created date elapsed ended file fingerprint folder genodiff git host key
    machine memory minute path per_s provenance request second sha256 started time version wall
    """.split()
"""Parts of the names of values that change from run to run, or with the package's version."""


SERVER = ForkServer(forks="--processes" not in sys.argv)


def genodiff(*words: str) -> str:
    """Standard output of `genodiff WORDS`; its errors end the script."""
    environment = os.environ | {"GENODIFF_CACHE": str(Path("cache").absolute())}
    done = SERVER.run(words, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def digest(content: bytes | str) -> str:
    """The first 16 digits of the sha256 of the content."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[
        :16
    ]


def changes(name: str) -> bool:
    """Whether a value of this name may differ between two equal runs."""
    return name == "checkpoint" or any(word in name.lower() for word in CHANGING)


def timeless(value: object) -> object:
    """A JSON value without what changes from run to run."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if not changes(k)}
    if isinstance(value, str) and value.startswith("/"):
        return Path(value).name
    return [timeless(v) for v in value] if isinstance(value, list) else value


ADDED = {
    "bases_total", "baselines_from", "bed", "head", "shift", "budget", "t_steps", "t_steps_asked",
    "t_steps_repeats", "markov_mixture", "mixture_bits", "mixture_minus_model_bits", "probe_c",
}  # fmt: skip
"""Keys that older or later versions do not write; the figures are the others."""


def of_evaluation(text: str) -> str:
    """Digest of an evaluation or of rows, by what every version writes of them."""

    def old(value: object) -> object:
        if isinstance(value, dict):
            return {k: old(v) for k, v in value.items() if k not in ADDED}
        return value

    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        values = [json.loads(line) for line in text.splitlines()]
    return of_json("\n".join(json.dumps(old(value)) for value in values))


def of_json(text: str) -> str:
    """Digest of JSON text, or of JSON lines, without times."""
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        values = sorted(
            (json.loads(line) for line in text.splitlines()), key=lambda v: json.dumps(timeless(v))
        )
    return digest(json.dumps([timeless(v) for v in values], sort_keys=True))


def of_metrics(path: Path) -> str:
    """Digest of a metrics.csv without its columns of time."""
    rows = [line.split(",") for line in path.read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if not changes(name)]
    return digest("\n".join(",".join(row[i] for i in kept) for row in rows))


def of_fasta(text: str) -> str:
    """Digest of the sequences alone: headers name the checkpoint, whose hash covers the version."""
    return digest("\n".join(line for line in text.splitlines() if not line.startswith(">")))


def train(name: str, *words: str, steps: int) -> dict[str, str]:
    """Losses and weights of a run."""
    every = [
        "--checkpoint-every",
        str(steps // 2),
        "--validate-every",
        str(steps // 2),
        "--batch-size",
        "4",
    ]
    genodiff(
        "train", *words, "--max-steps", str(steps), *every, "--out", name, "--threads", "1", "-q"
    )
    run = Path(name)
    weights = next(iter(sorted(run.rglob("model.safetensors"))))
    return {
        f"{name}/losses": of_metrics(run / "metrics.csv"),
        f"{name}/weights": digest(weights.read_bytes()),
    }


def sample(run: str, sampler: str, *words: str) -> str:
    """Sequences of four samples."""
    given = ["--checkpoint", run, "--fasta", "-", "--n", "4", "--length", "300", "--steps", "16"]
    return of_fasta(
        genodiff("sample", *given, "--sampler", sampler, "--threads", "1", "-q", *words)
    )


def labelled(path: Path, n: int, seed: int) -> None:
    """A table of random sequences, half of which hold a word."""
    rng = random.Random(seed)
    rows = ["sequence,label"]
    for i in range(n):
        letters = rng.choices("ACGT", k=80)
        if i % 2:
            letters[30:40] = "TATAAATAGC"
        rows.append(f"{''.join(letters)},{i % 2}")
    path.write_text("\n".join(rows) + "\n")


def golden() -> dict[str, str]:
    """Name -> digest of every figure."""
    found = {}
    tiny = ["--seq-len", "128", "--preset"]
    found |= train("toy", "toy", "--preset", "caduceus-ps-83k", "--seq-len", "256", steps=200)
    shown = genodiff("eval", "toy", "--json", "--max-windows", "40", "--threads", "1", "-q")
    found["toy/eval"] = of_evaluation(shown)
    found["toy/eval.json"] = of_evaluation((Path("toy") / "eval.json").read_text())
    contig = [
        "eval",
        "toy",
        "--json",
        "--context",
        "contig",
        "--no-baselines",
        "--threads",
        "1",
        "-q",
    ]
    found["toy/eval contig"] = of_evaluation(genodiff(*contig))
    for sampler in ("ancestral", "first-hitting", "confidence"):
        found[f"toy/{sampler}"] = sample("toy", sampler)
    found["toy/hot"] = sample("toy", "ancestral", "--temperature", "0.8", "--top-p", "0.9")
    Path("gaps.fa").write_text(">a\nACGTNNNNNNACGTTTNNNACG\n>b\nNNNNNNNNNN\n>c\nACGTR?CC\n")
    filled = ["sample", "--checkpoint", "toy", "--fasta", "-", "--template", "gaps.fa", "-q"]
    found["toy/template"] = of_fasta(genodiff(*filled, "--threads", "1"))
    long = ["sample", "--checkpoint", "toy", "--fasta", "-", "--n", "1", "--length", "900", "-q"]
    found["toy/long"] = of_fasta(genodiff(*long, "--steps", "16", "--threads", "1"))
    networks = {"mdlm": "caduceus-ph-tiny", "d3pm": "caduceus-ps-tiny", "sedd": "dit-470k"}
    networks |= {"mlm": "dimamba-470k", "ar": "mamba-tiny"}
    for name, network in networks.items():
        found |= train(name, "toy", *tiny, network, "--objective", name, steps=8)
        more = ["--max-windows", "20", "--no-baselines", "--threads", "1", "-q"]
        found[f"{name}/eval"] = of_evaluation(genodiff("eval", name, "--json", *more))
        sampler = {"sedd": "analytic", "ar": "left-to-right"}.get(name, "first-hitting")
        found[f"{name}/{sampler}"] = sample(name, sampler)
    Path("words.txt").write_text(
        "\n\n".join(f"line {i}: to be or not to be {i * i}" for i in range(400))
    )
    found |= train("text", "words.txt", "--domain", "text", "--preset", "caduceus-ph-tiny", steps=8)
    found["text/eval"] = of_evaluation(
        genodiff("eval", "text", "--json", "--max-windows", "20", "-q")
    )
    spoken = ["sample", "--domain", "text", "--checkpoint", "text", "--out", "-", "--n", "2", "-q"]
    found["text/sample"] = digest(genodiff(*spoken, "--prompt", "to be", "--threads", "1"))
    for part, n in (("train", 240), ("test", 80)):
        labelled(Path(f"{part}.csv"), n, seed=n)
    models = ["--model", "toy", "--model", "scratch", "--model", "baselines", "--seeds", "2"]
    models += ["--parts", "1"]  # the head that every version has: one mean
    fit = [
        "finetune",
        "table",
        "--train",
        "train.csv",
        "--test",
        "test.csv",
        *models,
        "--epochs",
        "2",
    ]
    found["finetune/table"] = of_evaluation(
        genodiff(*fit, "--out", "fits", "--json", "--threads", "1", "-q")
    )
    Path("three.fa").write_text(">a\nACGTNNACGTTTGGACCA\n>b\nGATTACA\n>c\nACGTRCCA\n")
    pooled = ["embed", "toy", "--fasta", "three.fa", "--out", "e.parquet", "--threads", "1", "-q"]
    genodiff(*pooled)
    found["embed"] = (
        digest(Path("e.parquet").read_bytes()) if Path("e.parquet").exists() else "none"
    )
    genodiff("checkpoint", "export", "toy", "--out", "hub")
    genodiff("checkpoint", "import", "hub", "--out", "back")
    genodiff("checkpoint", "export", "back", "--out", "again")
    for folder in ("hub", "back", "again"):
        weights = next(iter(sorted(Path(folder).rglob("*.safetensors"))))
        found[f"{folder}/weights"] = digest(weights.read_bytes())
    found["hub/config.json"] = of_json(Path("hub/config.json").read_text())
    found["imported/sample"] = sample("back", "ancestral")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the JSON file to write: name -> digest")
    parser.add_argument("--processes", action="store_true", help="one for each command: slow")
    target = parser.parse_args().out.absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        result = golden()
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
