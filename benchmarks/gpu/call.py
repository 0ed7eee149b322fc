"""One of the calls on a lent GPU: its stages, one after another or side by side, each with its own
deadline.

    python benchmarks/gpu/call.py NUMBER [--rehearse] [--only STAGE ...] [--seconds S]

`run.sh` sets up the environment and starts this. A stage is a process group of its own. One that
fails or outlasts its deadline is ended and recorded, and the next one begins. What the stages write
is packed into `$OUT/call-N.tar.gz` every few seconds, whole each time, so that a call that is cut
off brings what it has. Two files come back: the archive and the log. Exit code 1 says that a stage
failed. Needs nothing but Python's own library.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from stages import CALLS, Stage

HERE = Path(__file__).resolve().parent
PACK_EVERY = 10.0  # seconds between two packings, while something changes
SPARE = 12.0  # seconds at a call's end, for packing
REHEARSED = 900  # seconds that a stage of a rehearsal may take, on a busy machine
TAIL = 25  # lines of a failed stage's output that are shown again


class Place(NamedTuple):
    """The folders of a call."""

    out: Path  # what comes back
    results: Path  # what is packed into the archive
    work: Path  # what stays on the machine: packages, Triton's cache, runs
    carried: Path  # what travelled along: packages, a genome


def fill(stage: Stage, place: Place, rehearse: bool, seconds: float) -> list[str]:
    """The command of a stage."""
    names = {
        "python": sys.executable,
        "here": str(HERE),
        "results": str(place.results),
        "out": str(place.out),
        "work": str(place.work),
        "carried": str(place.carried),
        "seconds": str(max(1, int(seconds))),
    }
    line = stage.rehearsed if rehearse and stage.rehearsed else stage.command
    return [part.format(**names) for part in shlex.split(line)]


def find_commit(carried: Path) -> str:
    """The commit that is measured: of the tree, or as `fetch.sh` wrote it down."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return done.stdout.strip()
    noted = carried / "commit"
    return noted.read_text().strip() if noted.exists() else os.environ.get("COMMIT", "unknown")


def pack(folder: Path, to: Path) -> None:
    """`folder` as an archive, written beside its name and then renamed."""
    scratch = to.with_name(to.name + ".part")
    with tarfile.open(scratch, "w:gz", compresslevel=5) as archive:
        archive.add(folder, arcname=to.name.removesuffix(".tar.gz"))
    scratch.replace(to)


def newest_change(folder: Path) -> float:
    """When something in a folder was last written."""
    times = [0.0]
    for path in folder.rglob("*"):
        try:
            times.append(path.stat().st_mtime)
        except OSError:  # a scratch file that was renamed meanwhile
            continue
    return max(times)


class Running:
    """A stage at work."""

    def __init__(self, stage: Stage, command: list[str], output: Path, most: float) -> None:
        self.stage, self.output, self.most, self.why = stage, output, most, ""
        self.start = time.monotonic()
        with output.open("wb") as sink:
            self.process = subprocess.Popen(
                command, cwd=HERE.parents[1], env=os.environ | dict(stage.environment),
                stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def is_over(self) -> bool:
        """Whether it has ended, or was ended here because its time is over."""
        if self.process.poll() is None and time.monotonic() - self.start > self.most:
            self.why = "out of time"
            self.end()
        return self.process.poll() is not None

    def end(self, grace: float = 5.0) -> None:
        """End it, with all that it started."""
        for number, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 0.0)):
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                return
            end = time.monotonic() + wait
            while time.monotonic() < end and self.process.poll() is None:
                time.sleep(0.1)


class Call:
    """A call in progress: what it has found, and how it is packed."""

    def __init__(self, number: int, place: Place, log: TextIO, limit: float) -> None:
        self.number, self.place, self.log, self.limit = number, place, log, limit
        self.start = time.monotonic()
        self.records: list[dict[str, Any]] = []
        self.packed_at = self.packed_change = 0.0
        self.running: list[Running] = []

    @property
    def elapsed(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self.start

    def say(self, text: str) -> None:
        """A line on the terminal and in the log."""
        line = f"[{self.elapsed:.0f} s] {text}"
        print(line, flush=True)
        print(line, file=self.log, flush=True)

    def record(self, **values: Any) -> None:
        """Add a line to steps.jsonl."""
        self.records.append(values)
        text = "".join(json.dumps(r) + "\n" for r in self.records)
        (self.place.results / "steps.jsonl").write_text(text)

    def pack(self, now: bool = False) -> None:
        """Pack the results, if they changed and were not packed a moment ago."""
        if not now and time.monotonic() - self.packed_at < PACK_EVERY:
            return
        change = newest_change(self.place.results)
        if change > self.packed_change or now:
            self.log.flush()
            shutil.copyfile(self.log.name, self.place.results / "call.log")
            pack(self.place.results, self.place.out / f"call-{self.number}.tar.gz")
            self.packed_change = newest_change(self.place.results)
        self.packed_at = time.monotonic()

    def run(self, stages: tuple[Stage, ...], rehearse: bool) -> list[str]:
        """Run stages side by side; the names of those that did not end well."""
        failed = []
        left = self.limit - self.elapsed - SPARE
        for stage in stages:
            most = min(REHEARSED if rehearse else stage.seconds, left)
            if most < 3:
                self.say(f"{stage.name}: no time left")
                self.record(stage=stage.name, code=None, why="no time left")
                failed.append(stage.name)
                continue
            self.say(f"{stage.name} (at most {most:.0f} s): {stage.about}")
            command = fill(stage, self.place, rehearse, most - 5)
            output = self.place.results / f"{stage.name}.log"
            self.running.append(Running(stage, command, output, most))
        while self.running:
            for one in [one for one in self.running if one.is_over()]:
                self.running.remove(one)
                if not self.close(one):
                    failed.append(one.stage.name)
            self.pack()
            time.sleep(0.2)
        return failed

    def close(self, one: Running) -> bool:
        """Record a stage that has ended; whether it ended well."""
        code, took = one.process.wait(), round(time.monotonic() - one.start, 1)
        one.end(grace=0)  # its children go too: one that is left over would hold the GPU
        more = {"why": one.why} if one.why else {}
        self.record(stage=one.stage.name, code=code, seconds=took, **more)
        well = code == 0 and not one.why
        text = one.output.read_text(errors="replace")
        print(f"--- {one.stage.name}\n{text}", file=self.log, flush=True)
        shown = text.splitlines()[-(3 if well else TAIL) :]
        print("\n".join("    " + line[:300] for line in shown), flush=True)
        self.say(
            f"{one.stage.name}: {'done' if well else one.why or f'exit code {code}'}, {took} s"
        )
        self.pack(now=True)
        return well

    def end_running(self) -> None:
        """End the stages that run."""
        for one in self.running:
            one.end(grace=1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("call", type=int, choices=sorted(CALLS))
    parser.add_argument("--rehearse", action="store_true", help="tiny, on a CPU")
    parser.add_argument("--only", nargs="*", help="these stages alone")
    parser.add_argument("--seconds", type=float, help="the call's own deadline")
    arguments = parser.parse_args()
    folders = (os.environ[f"GENODIFF_GPU_{name}"] for name in ("OUT", "WORK", "CARRIED"))
    out, work, carried = (Path(folder).resolve() for folder in folders)
    number, call = arguments.call, CALLS[arguments.call]
    results = work / f"results-{number}"
    shutil.rmtree(results, ignore_errors=True)
    for folder in (out, work, results):
        folder.mkdir(parents=True, exist_ok=True)
    place = Place(out, results, work, carried)
    limit = arguments.seconds or (3600 if arguments.rehearse else call.seconds)
    failed = []
    with (out / f"call-{number}.log").open("w") as log:
        running = Call(number, place, log, limit)

        def stop(caught: int, _: Any) -> None:
            running.say(f"ended by {signal.Signals(caught).name}")
            running.end_running()
            running.pack(now=True)
            os._exit(128 + caught)

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        running.record(commit=find_commit(carried), call=number, rehearsal=arguments.rehearse)
        running.say(f"call {number}: {call.about}, within {limit:.0f} s")
        for together in call.stages:
            stages = (together,) if isinstance(together, Stage) else together
            wanted = tuple(s for s in stages if not arguments.only or s.name in arguments.only)
            failed += running.run(wanted, arguments.rehearse)
        running.say(f"end; failed: {', '.join(failed) or 'none'}")
        running.pack(now=True)
    for record in running.records:
        print(json.dumps(record))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
