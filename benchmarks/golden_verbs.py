"""Hashes of what every verb writes and says, through the command line.

    PYTHONPATH=TREE python benchmarks/golden_verbs.py OUT.json [--only WORD ...]

The net under a move of the rim (api, cli, jobs): files, sidecars, plans, what is printed, shards
and their merge, and the one line of each refusal. As golden.py it runs on any two commits, and
leaves times, paths, versions and dates out.
"""

import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from golden import SERVER, changes, digest, timeless

TINY = "--preset caduceus-ps-tiny --seq-len 128 --max-steps 8 --batch-size 4 --threads 1 -q"

SETUP = [
    f"train toy {TINY} --out net",
    f"train toy {TINY} --memory --out remembers",
    "train words.txt --domain text --preset caduceus-ph-tiny --seq-len 128 --max-steps 8 "
    "--batch-size 4 --threads 1 -q --out text",
    "finetune table --train train.csv --test test.csv --model net --seeds 1 --epochs 1 --out fits "
    "--threads 1 -q",
]

PLACES = "--region chrA:101-140 --region chrB:11-25"
VERBS = {
    "ism tsv": f"ism net --fasta g.fa --out @.tsv {PLACES}",
    "ism bed": "ism net --fasta g.fa --out @.tsv --bed r.bed --unit bits --context 64",
    "ism npz": f"ism net --fasta g.fa --out @.npz {PLACES} --json",
    "ism parquet": f"ism net --fasta g.fa --out @.parquet {PLACES}",
    "ism stdout": "ism net --fasta s.fa --out -",
    "ism plan": f"ism net --fasta g.fa --out @.tsv {PLACES} --plan --json",
    "ism memory": f"ism remembers --fasta g.fa --out @.tsv {PLACES} --memory on",
    "ism page": f"ism net --fasta g.fa --out @.html {PLACES} --genes r.bed",
    "ism picture": "ism net --fasta g.fa --out @.svg --region chrA:101-140",
    "ism fitted": "ism fits --fasta s.fa --out @.tsv --label 1",
    "dependencies tsv": "dependencies net --fasta g.fa --out @.tsv --region chrA:101-140",
    "dependencies bed": "dependencies net --fasta g.fa --out @.npz --bed r.bed --every 8",
    "dependencies exact": "dependencies net --fasta s.fa --out - --exact --unit bits",
    "dependencies plan": f"dependencies net --fasta g.fa --out @.tsv {PLACES} --plan --json",
    "dependencies page": "dependencies net --fasta g.fa --out @.html --region chrA:101-140",
    "tracks hub": f"tracks net --fasta g.fa --out @ {PLACES}",
    "tracks tables": "tracks net --fasta g.fa --out @ --bed r.bed --format bedgraph "
    "--format bedgraph.gz --format npz --format parquet --every 8",
    "tracks page": "tracks net --fasta g.fa --out @ --region chrA:101-140 --format html "
    "--format svg --json --memory off",
    "tracks plan": f"tracks net --fasta g.fa --out @ {PLACES} --plan --json",
    "tracks shards": "tracks net --fasta g.fa --out @.1.npy --shard 1/2 --region chrA:101-180 ; "
    "tracks net --fasta g.fa --out @.2.npy --shard 2/2 --region chrA:101-180 ; "
    "merge @.1.npy @.2.npy --out @",
    "embed parquet": "embed net --fasta s.fa --out @.parquet",
    "embed npz": "embed net --fasta s.fa --out @.npz --window 20 --stride 10",
    "embed bed": "embed net --fasta g.fa --bed r.bed --out @.parquet --json",
    "embed shards": "embed net --fasta s.fa --out @.1.parquet --shard 1/2 ; "
    "embed net --fasta s.fa --out @.2.parquet --shard 2/2 ; "
    "merge @.1.parquet @.2.parquet --out @.parquet",
    "predict csv": "predict fits s.fa --out @.csv",
    "predict jsonl": "predict fits s.fa --out @.jsonl",
    "predict stdout": "predict fits s.fa --json",
    "predict bed": "predict fits r.bed --fasta g.fa --out @.tsv",
    "predict region": f"predict fits --fasta g.fa {PLACES} --out @.parquet",
    "eval shards": "eval net --shard 1/2 --json --out @.1.npy --max-windows 20 --batch-size 4 ; "
    "eval net --shard 2/2 --json --out @.2.npy --max-windows 20 --batch-size 4 ; "
    "merge @.1.npy @.2.npy --out @.json",
    "score vcf": "score net v.vcf --fasta g.fa --out @.vcf",
    "score tsv": "score net v.vcf --fasta g.fa --out @.tsv --unit bits",
    "score jsonl": "score net v.vcf --fasta g.fa --out @.jsonl --exact",
    "score parquet": "score net v.tsv --fasta g.fa --out @.parquet --context 2x",
    "score stdout": "score net v.vcf --fasta g.fa --json",
    "score chain": "score net v.vcf --fasta g.fa --out @.vcf --method chain",
    "score llr": "score net v.vcf --fasta g.fa --out @.tsv --method llr --allow-mismatches",
    "score nelbo": "score net v.vcf --fasta g.fa --out @.tsv --method nelbo --se 1 "
    "--max-evaluations 128 --region chrA:1-300",
    "score background": "score net v.vcf --fasta g.fa --out @.vcf --background 100",
    "score haplotypes": "score net v.vcf --fasta g.fa --out @.vcf --haplotypes",
    "score memory": "score remembers v.vcf --fasta g.fa --out @.tsv --memory on",
    "score plan": "score net v.vcf --fasta g.fa --plan --json",
    "score shards": "score net v.vcf --fasta g.fa --out @.1.vcf --shard 1/2 ; "
    "score net v.vcf --fasta g.fa --out @.2.vcf --shard 2/2 ; merge @.1.vcf @.2.vcf --out @.vcf",
    "sample fasta": "sample --checkpoint net --fasta @.fa --n 3 --length 90 --steps 8",
    "sample json": "sample --checkpoint net --fasta @.fa --n 2 --length 300 --steps 8 --json",
    "sample template": "sample --checkpoint net --template t.fa --fasta @.fa",
    "sample plan": "sample --checkpoint net --fasta @.fa --n 3 --length 90 --plan --json",
    "sample text": "sample --domain text --checkpoint text --out @.txt --n 2 --length 60",
    "redesign edits": "redesign net --fasta g.fa --out @.fa --region chrA:101-160 --max-edits 5 "
    "-n 2 --avoid GATC",
    "redesign bed": "redesign net --fasta g.fa --out @.fa --bed r.bed --gc 30-70% --json",
    "redesign template": "redesign net --template t.fa --out @.fa --max-run 5",
    "redesign guided": "redesign net --fasta g.fa --out @.fa --region chrA:101-160 "
    "--guidance smc --oracle fits --oracle-label 1 -n 2",
    "redesign plan": "redesign net --fasta g.fa --out @.fa --bed r.bed --plan --json",
    "scorecard": "scorecard s.fa --real g.fa --json",
    "data check": "data check v.vcf --fasta g.fa --json",
}  # fmt: skip
"""Name -> commands; @ is the name's own stem of output files, all of which are hashed."""

REFUSED = [
    f"{verb} net --fasta g.fa --out {out} {more}".strip()
    for verb, out in (("ism", "x.tsv"), ("dependencies", "x.tsv"), ("tracks", "x"))
    for more in (
        "--context 1", "--batch-size 0", "--region chrZ:1-10", "--region chrA:9000-9999",
        "--bed nothing.bed", "--unit bit", "--evry 3", "--memory of", "--region chrA:5-2",
    )
] + [
    "ism", "ism net", "ism net --fasta g.fa", "ism nothing --fasta g.fa --out x.tsv",
    "ism net --fasta g.fa --out x.doc", "ism net --fasta g.fa --out g.fa",
    "ism net --fasta g.fa --out foreign.tsv", "ism net --fasta s.fa --out - --json",
    "ism net --fasta g.fa --out x.tsv --genes r.bed", "ism text --fasta g.fa --out x.tsv",
    "ism net --fasta g.fa --out x.tsv --label 1", "ism fits --fasta s.fa --out x.tsv --label 7",
    "ism fits --fasta s.fa --out x.tsv --context 64", "ism net --fasta g.fa --out x.svg",
    "dependencies net --fasta g.fa --out x.tsv --every 1",
    "dependencies net --fasta g.fa --out x.tsv --every x",
    "dependencies net --fasta g.fa --out x.tsv --region chrA:1-1100",
    "tracks net --fasta g.fa --out x --format wig", "tracks net --fasta g.fa --out x --shard 3/2",
    "tracks net --fasta g.fa --out x --shard 1/2", "tracks net --fasta g.fa --out x --every 1",
    "tracks net --fasta g.fa --out x.npy --shard 1/2 --format npz",
    "embed net --fasta s.fa --out x.csv", "embed net --fasta s.fa --out x.npz --window 0",
    "embed net --fasta s.fa --out x.npz --stride 5",
    "embed net --fasta s.fa --out x.npz --layer 99",
    "embed net --fasta s.fa --out x.parquet --shard 0/2", "embed net --out x.npz",
    "embed net --fasta s.fa --out foreign.parquet",
    "predict fits s.fa --out x.doc", "predict fits s.fa --batch-size 0", "predict net s.fa",
    "predict fits", "predict fits r.bed --out x.csv", "predict fits s.fa --task nothing",
    "score net v.vcf --fasta g.fa", "score net v.vcf --fasta g.fa --out x.vcf --method llrr",
    "score net v.vcf --fasta g.fa --out x.vcf --se 0", "score net v.vcf --fasta g.fa --out x.doc",
    "score net v.vcf --fasta g.fa --out x.vcf --context 1", "score net v.vcf --out x.vcf",
    "score net v.vcf --fasta g.fa --out x.vcf --background many",
    "score net v.vcf --fasta g.fa --out x.vcf --shard 1", "score net --fasta g.fa --out x.vcf",
    "score net bad.vcf --fasta g.fa --out x.vcf", "score net v.vcf --fasta g.fa --out v.vcf",
    "score net v.vcf --fasta g.fa --out x.vcf --max-evaluations 0",
    "score net v.vcf --fasta g.fa --out x.vcf --json", "score text v.vcf --fasta g.fa --out x.vcf",
    "score net v.vcf --fasta g.fa --out x.vcf --batch-size 0",
    "sample --checkpoint net --fasta x.fa --n 0", "sample --checkpoint net --fasta x.fa --steps 0",
    "sample --checkpoint net --fasta x.fa --temperature -1", "sample --checkpoint net",
    "sample --checkpoint net --fasta x.fa --sampler nothing", "sample --fasta x.fa --run nothing",
    "sample --checkpoint net --fasta x.fa --top-p 2", "sample --checkpoint net --out x.fa --gaps",
    "sample --checkpoint net --fasta x.fa --length 0", "sample --checkpoint net --fasta g.fa",
    "sample --checkpoint net --fasta x.fa --avoid ZZ", "sample --checkpoint net --fasta x.doc",
    "sample --checkpoint net --fasta x.fa --prompt ACGT --template t.fa",
    "redesign net --fasta g.fa --out x.fa", "redesign net --out x.fa --region chrA:1-10",
    "redesign net --fasta g.fa --out x.fa --region chrA:101-160 --max-edits -1",
    "redesign net --fasta g.fa --out x.fa --region chrA:101-160 -n 0",
    "redesign net --fasta g.fa --out x.fa --region chrA:101-160 --gc 90-10%",
    "redesign net --fasta g.fa --out x.fa --region chrA:101-160 --enzymes EcoRX",
    "redesign net --fasta g.fa --out g.fa --region chrA:101-160",
    "redesign net --fasta g.fa --out x.fa --region chrA:101-160 --protein sideways",
    "merge --out x.vcf", "merge s.fa --out x.vcf", "eval net --shard 1/2",
    "eval net --shard 5/2 --out x.json",
]  # fmt: skip
"""Commands that are refused: their exit status and what they say of it are hashed."""

STAMPS = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?|\b\d[\d.,]* (ms|s|min|seconds?)\b|"
    r"/[\w./+-]*/golden-\w+/|\b[0-9a-f]{64}\b|\b[0-9a-f]{12,16}\b|\d+\.\d+\.\d+(\.?dev\d+)?"
)


def make_inputs() -> None:
    """A genome of two contigs, regions, variants, sequences, and tables to fit."""
    rng = random.Random(7)
    contigs = {"chrA": rng.choices("ACGT", k=2000), "chrB": rng.choices("ACGT", k=700)}
    contigs["chrB"][100:112] = "N" * 12
    genome = {name: "".join(letters) for name, letters in contigs.items()}
    Path("g.fa").write_text("".join(f">{name}\n{text}\n" for name, text in genome.items()))
    Path("s.fa").write_text(">a\nACGTNNACGTTTGGACCA\n>b\nGATTACAGATTACAGGATCC\n>c\nACGTCCAATT\n")
    Path("t.fa").write_text(">a\nACGTNNNNNNACGTTTNNNACG\n>b\nNNNNNNNNNN\n>c\nACGTRYCC\n")
    Path("r.bed").write_text("chrA\t100\t130\tfirst\t0\t+\nchrB\t40\t60\tsecond\t0\t-\n")
    rows = []
    for at in (50, 120, 121, 260, 400):
        ref = genome["chrA"][at - 1]
        rows.append(("chrA", at, ref, next(b for b in "ACGT" if b != ref)))
    rows += [
        ("chrA", 500, genome["chrA"][499:503], genome["chrA"][499]),
        ("chrA", 600, genome["chrA"][599], genome["chrA"][599] + "GATTACAGATTA"),
        ("chrB", 30, genome["chrB"][29], "*"),
    ]
    head = "##fileformat=VCFv4.2\n##contig=<ID=chrA>\n##contig=<ID=chrB>\n"
    head += '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    head += "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts1\n"
    lines = [f"{c}\t{p}\t.\t{r}\t{a}\t.\t.\t.\tGT\t0|1" for c, p, r, a in rows]
    Path("v.vcf").write_text(head + "\n".join(lines) + "\n")
    Path("bad.vcf").write_text(head + "\n".join([*lines[:2], "chrA\tx\t.\tA\tC\t.\t.\t."]) + "\n")
    table = "\n".join("\t".join(map(str, row)) for row in rows[:6])
    Path("v.tsv").write_text(f"chrom\tpos\tref\talt\n{table}\n")
    for name in ("foreign.tsv", "foreign.parquet"):
        Path(name).write_text("somebody's\n")
    Path("words.txt").write_text("\n\n".join(f"line {i}: to be or not {i * i}" for i in range(400)))
    for part, n in (("train", 60), ("test", 30)):
        made = ["sequence,label"]
        made += [f"{''.join(rng.choices('ACGT', k=40))},{i % 2}" for i in range(n)]
        Path(f"{part}.csv").write_text("\n".join(made) + "\n")


def run(words: str) -> subprocess.CompletedProcess[str]:
    """What `genodiff WORDS` does, for one thread."""
    environment = os.environ | {"GENODIFF_CACHE": str(Path("cache").absolute())}
    return SERVER.run(shlex.split(words), env=environment)


def of_text(text: str) -> str:
    """Digest of text without times, hashes, versions and this folder."""
    lines = (
        line
        for line in text.splitlines()
        if not line.startswith("##genodiff") and not line.endswith(" to go")
    )
    return digest(STAMPS.sub("_", "\n".join(lines)))


def of_json(text: str) -> str | None:
    """Digest of JSON or JSON lines, None where the text is neither."""
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        try:
            values = [json.loads(line) for line in text.splitlines()]
        except json.JSONDecodeError:
            return None
    return digest(
        STAMPS.sub("_", json.dumps([timeless(value) for value in values], sort_keys=True))
    )


def of_file(path: Path) -> str:
    """Digest of a file's content, by its format."""
    import numpy as np
    import polars as pl

    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            parts = [
                f"{name} {arrays[name].dtype} {arrays[name].shape} {digest(arrays[name].tobytes())}"
                for name in sorted(arrays.files)
                if not changes(name)
            ]
        return digest("\n".join(parts))
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        return digest(f"{frame.schema}\n" + frame.write_json())
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return digest(path.read_bytes())
    return of_json(text) or of_text(text)


def golden(only: list[str]) -> dict[str, str]:
    """Name -> digest."""
    figures = {}
    make_inputs()
    for words in SETUP:
        done = run(words)
        if done.returncode:
            sys.exit(f"{words}: exit {done.returncode}\n{done.stderr}")
    rows = {name: words for name, words in VERBS.items() if any(word in name for word in only)}
    for name, words in (rows if only else VERBS).items():
        stem = name.replace(" ", "_")
        for n, command in enumerate(words.replace("@", stem).split(" ; ")):
            done = run(command + " --threads 1")
            if done.returncode:
                print(f"{command}: exit {done.returncode}\n{done.stderr}", file=sys.stderr)
            figures[f"{name}/{n} out"] = of_json(done.stdout) or of_text(done.stdout)
            figures[f"{name}/{n} exit"] = str(done.returncode)
            figures[f"{name}/{n} err"] = of_text(done.stderr)
        files = [Path(stem), *Path(stem).rglob("*")] if Path(stem).is_dir() else []
        for path in sorted([*files, *Path().glob(f"{stem}.*")]):
            if path.is_file():
                figures[f"{name}/{path}"] = of_file(path)
    for words in REFUSED:
        if not only or any(word in words for word in only):
            done = run(words)
            lines = [line for line in done.stderr.splitlines() if not line.endswith(" to go")]
            said = f"{done.returncode} {STAMPS.sub('_', ' '.join(lines))}"
            figures[f"refused: {words}"] = said
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the JSON file to write: name -> digest")
    parser.add_argument("--processes", action="store_true", help="one for each command: slow")
    parser.add_argument("--only", nargs="+", default=[], help="of names and refused commands")
    asked = parser.parse_args()
    target = asked.out.absolute()
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        os.chdir(folder)
        result = golden(asked.only)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(result):,} figures")
