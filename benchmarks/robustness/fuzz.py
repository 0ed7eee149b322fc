"""Readers under fire: mutated files, by coverage (atheris) or by a seeded mutator of our own.

    python benchmarks/robustness/fuzz.py READER --runs 1000000 [--seconds 60] [--seed 1]
        [--engine own] [--seeds FOLDER] [--out FOLDER] [--keep FOLDER]

An input is survived where the reader reads it, or ends with the package's own error. Any other
exception is a finding, and so is an input that takes more than five seconds. Seeds are small sound
files, and with --seeds all files of a folder that have the reader's ending and at most 8 kB. A
checkpoint's hashes are made to fit the mutated file, so that what lies behind them is reached too.
Prints one object of JSON: inputs, inputs a second, findings by kind and place; with --out it is a
row of results. The exit code is 1 where there are findings. atheris has to be installed for its
engine, which is the default.
"""

import argparse
import json
import logging
import os
import random
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from fuzz_readers import (  # noqa: E402
    MOST,
    READERS,
    Reader,
    checkpoints,
    collect_seeds,
    import_all,
    make_folder,
)

_SLOW = 5.0  # seconds of an input


_ABOUT = """Mutated files; any exception but the package's own, and more than five seconds, is a
finding. Refused: those that ended with its own error."""


_WORDS = (
    b"\n", b"\r", b"\t", b" ", b"\x00", b"\xff", b"\xef\xbb\xbf", b"-1", b"0", b"1e999", b"nan",
    b"99999999999999999999", b"-0", b"null", b"true", b"[]", b"{}", b'"', b">", b"#", b"N",
    b"[" * 99, b"{" * 99, b"!!python/object:os.system", b"&a",
    b"*a", b"<<: *a", b"..", b"/", b"\xc3\x28",
)  # fmt: skip


class Gunner:
    """Throws inputs at a reader and counts."""

    def __init__(self, reader: Reader, folder: Path, keep: Path | None) -> None:
        from genodiff.errors import GenodiffError

        self.reader, self.keep, self.clean = reader, keep, GenodiffError
        self.path = folder / f"in{reader.ending}"
        self.inputs = self.refused = 0
        self.began = time.monotonic()
        self.found: dict[str, int] = {}

    def throw(self, data: bytes) -> None:
        """One input."""
        self.path.write_bytes(data)
        self.inputs += 1
        began = time.monotonic()
        try:
            self.reader.read(self.path)
        except self.clean:
            self.refused += 1
        except Exception as fault:
            frame = traceback.extract_tb(fault.__traceback__)[-1]
            ours = [
                f for f in traceback.extract_tb(fault.__traceback__) if "genodiff/" in f.filename
            ]
            at = ours[-1] if ours else frame
            place = f"{at.filename.rpartition('genodiff/')[2]}:{at.lineno}"
            self._tell(f"{type(fault).__name__} at {place}: {str(fault)[:80]!r}", data)
        if time.monotonic() - began > _SLOW:
            self._tell("slow", data)

    def _tell(self, what: str, data: bytes) -> None:
        kind = what.partition(": ")[0]
        if not any(known.startswith(kind) for known in self.found):
            if self.keep is not None:
                self.keep.mkdir(parents=True, exist_ok=True)
                (self.keep / f"{len(self.found)}{self.reader.ending}").write_bytes(data)
            self.found[what] = 0
            print(what, data[:200], file=sys.stderr, flush=True)
        for known in self.found:
            if known.startswith(kind):
                self.found[known] += 1

    def report(self) -> dict[str, Any]:
        """The row of results."""
        seconds = time.monotonic() - self.began
        return {
            "inputs": self.inputs, "refused": self.refused, "seconds": round(seconds),
            "inputs a second": round(self.inputs / max(seconds, 1e-9)), "findings": self.found,
        }  # fmt: skip


def mutate(draw: random.Random, seeds: list[bytes]) -> bytes:
    """A seed with one to eight changes of its bytes, spans, words and numbers."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(1, 8)):
        at = draw.randint(0, len(data))
        end = min(len(data), at + draw.choice((1, 1, 2, 4, 16, 64)))
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = draw.randrange(256)
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = data[at:end] * draw.choice((1, 2, 9))
        elif kind == 4:
            data[at:end] = draw.choice(_WORDS)
        elif kind == 5:
            data[at:at] = draw.choice(_WORDS)
        elif kind == 6:
            other = draw.choice(seeds)
            data[at:] = other[draw.randint(0, len(other)) :]
        else:
            del data[at:]
    return bytes(data[:MOST])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("atheris", "own"), default="atheris")
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    if asked.engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["genodiff"]):
            import_all()
    import torch
    from page import write_row

    torch.set_num_threads(1)
    logging.getLogger("genodiff").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    folder = make_folder()
    reader = READERS[asked.reader]
    seeds = collect_seeds(reader, asked.reader, asked.seeds)
    gunner = Gunner(reader, folder, asked.keep)
    for seed in seeds:
        gunner.throw(seed)

    def finish() -> None:
        row = {"reader": asked.reader, "engine": asked.engine, "seed": asked.seed}
        row |= gunner.report()
        print(json.dumps(row), flush=True)
        if asked.out is not None:
            spoiled = sum(gunner.found.values())
            write_row(
                asked.out, f"fuzz: {asked.reader}", _ABOUT, gunner.inputs, gunner.inputs - spoiled,
                {k: row[k] for k in ("engine", "refused", "inputs a second")},
                faults=list(gunner.found), seconds=row["seconds"], seed=asked.seed,
                command="python benchmarks/robustness/fuzz.py READER --seeds DATA/badinput",
            )  # fmt: skip
        for path in (folder, *(c.folder.parents[1] for c in checkpoints)):
            shutil.rmtree(path, ignore_errors=True)
        os._exit(int(bool(gunner.found)))

    def is_over() -> bool:
        spent = time.monotonic() - gunner.began
        return gunner.inputs >= asked.runs or spent > asked.seconds

    if asked.engine == "own":
        draw = random.Random(asked.seed)
        while not is_over():
            gunner.throw(mutate(draw, seeds))
        finish()

    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)

    def test(data: bytes) -> None:
        gunner.throw(data)
        if is_over():
            finish()

    longest = max(map(len, seeds))
    words = [f"-seed={asked.seed}", f"-max_len={max(2048, longest)}", "-timeout=60", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *words, "-rss_limit_mb=6000", str(corpus)], test)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
