"""How many files of the package one question passes through: `make walk`.

    python benchmarks/walk.py [--only NAME ...] [--files]

Each walk is a real command, run three times in one process. Of the third run the functions whose
bodies execute are counted (`sys.setprofile`), so what is imported, compiled or built once is left
out. A file counts if a function of it runs, also for one line. A training step goes from the end of
one step's loss to the end of the next one's, with all that Lightning calls between them.
"""

import argparse
import contextlib
import io
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "genodiff"
CONTIG, BASES = "chrT", 30_000
Codes = set[CodeType]


@contextlib.contextmanager
def record(codes: Codes) -> Iterator[None]:
    """Collect the code of every Python function that is called."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def run(words: str) -> None:
    """`genodiff WORDS`, with nothing shown."""
    from genodiff.cli import main

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main([*words.split(), "--threads", "1", "-q"])
    except SystemExit as end:
        if end.code:
            sys.exit(f"{words}: exit {end.code}\n{said.getvalue()}")


def walk_command(words: str) -> Codes:
    """What the third run of a command calls."""
    codes: Codes = set()
    for number in range(3):
        out = words.replace("@", f"out{number}")
        with record(codes) if number == 2 else contextlib.nullcontext():
            run(out)
    return codes


def walk_step(words: str) -> Codes:
    """What one training step of the third run calls."""
    from genodiff.training.module import Pretraining as Module

    codes: Codes = set()
    plain: Callable[..., Any] = Module.training_step
    for number in range(3):
        with contextlib.ExitStack() as stack:
            steps = 0

            def step(self: Any, *given: Any) -> Any:
                nonlocal steps
                loss = plain(self, *given)
                steps += 1
                if number == 2 and steps == 4:  # noqa: B023
                    stack.enter_context(record(codes))
                if steps == 5:
                    stack.close()
                return loss

            Module.training_step = step  # type: ignore[method-assign]
            try:
                run(words.replace("@", f"out{number}"))
            finally:
                Module.training_step = plain  # type: ignore[method-assign]
    return codes


WALKS = {
    "score one SNV": (walk_command, "score yeast in.vcf --fasta g.fa -o @.vcf"),
    "a training step": (
        walk_step,
        "train toy --preset caduceus-ps-tiny --seq-len 128 --max-steps 8 --batch-size 4 --out @",
    ),
    "redesign 60 bases": (
        walk_command,
        f"redesign yeast --fasta g.fa --region {CONTIG}:15001-15060 --max-edits 5 -o @.fa",
    ),
    "tracks, relatives": (
        walk_command,
        f"tracks yeast --fasta g.fa --region {CONTIG}:15001-15001 --relatives a.fa --relatives b.fa"
        " --format npz -o t@",
    ),
}


def write_inputs() -> None:
    """A genome, two relatives of it, and a variant."""
    rng = random.Random(1)
    letters = rng.choices("ACGT", k=BASES)
    Path("g.fa").write_text(f">{CONTIG}\n{''.join(letters)}\n")
    for name, share in (("a", 0.15), ("b", 0.2)):
        other = [rng.choice("ACGT") if rng.random() < share else base for base in letters]
        Path(f"{name}.fa").write_text(f">{name}1\n{''.join(other)}\n")
    alt = "ACGT"["ACGT".index(letters[15_000]) - 1]
    head = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
    Path("in.vcf").write_text(f"{head}{CONTIG}\t15001\t.\t{letters[15_000]}\t{alt}\t.\t.\t.\n")


def list_files(codes: Codes) -> dict[str, list[str]]:
    """The package's files with their functions that ran."""
    found: dict[str, list[str]] = {}
    for code in codes:
        path = Path(code.co_filename)
        if path.is_relative_to(PACKAGE) and code.co_name != "<module>":
            found.setdefault(str(path.relative_to(PACKAGE)), []).append(code.co_name)
    return dict(sorted(found.items()))


def main() -> None:
    """Print a row for each walk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(WALKS))
    parser.add_argument("--files", action="store_true", help="name the files, too")
    asked = parser.parse_args()
    sys.path.insert(0, str(PACKAGE.parent))
    print(f"{'walk':<20} {'files':>6} {'functions':>10} {'rooms':>6}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["GENODIFF_CACHE"] = f"{folder}/cache"
        write_inputs()
        for name in asked.only:
            walk, words = WALKS[name]
            files = list_files(walk(words))
            named = [one for some in files.values() for one in some if not one.startswith("<")]
            rooms = {path.partition("/")[0] for path in files if "/" in path}
            print(f"{name:<20} {len(files):>6} {len(named):>10} {len(rooms):>6}", flush=True)
            if asked.files:
                for path, some in files.items():
                    print(f"    {path}: {', '.join(sorted(set(some)))}")


if __name__ == "__main__":
    main()
