"""A request that takes long: it is planned, goes on after a break, and says where its file is from.

The entries of a job are bytes, a function of (request, number). They are kept in OUT.partial until
the file is there. So the same request goes on after the last whole entry, and gives the bytes of a
run without a break.
"""

import logging
import signal
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from genodiff.errors import DataError, Interrupted, format_count
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file, sha256_json, stamp_time
from genodiff.io.input_file import is_file, planning
from genodiff.io.process import keep_freed_memory
from genodiff.io.progress import ProgressDisplay, format_duration, say_slow
from genodiff.io.target import describe_file
from genodiff.jobs.journal import Journal
from genodiff.jobs.machine import choose_device
from genodiff.jobs.options import FileRequest
from genodiff.jobs.request import Option, list_fields
from genodiff.version import __version__

Rows = Callable[[], Iterable[bytes]]
_log = logging.getLogger("genodiff")
Asked = TypeVar("Asked", bound=FileRequest)


class EmptyOutputError(DataError):
    """The output would hold nothing, so nothing of it is kept."""


class Job(ABC, Generic[Asked]):
    """The work of one request.

    `hashes` are the sha256 of files that opening has read, by their names. `total` is of what
    progress counts, named by `noun`; 0 where it is not known. `keeps` is False where what is read
    cannot be read again, so that nothing can be gone on with. `digest` names the request once it is
    known. `unit` is what an entry is called.
    `journal` is open while entries are made.
    """

    noun: str
    unit: ClassVar[str] = "row"
    total = 0
    keeps = True
    digest = ""
    journal: Journal

    @property
    def needs_torch(self) -> bool:
        """Whether a network may be read."""
        return True

    def __init__(self, request: Asked) -> None:
        self.request = request
        self.device = choose_device(request.device, needs_torch=self.needs_torch)
        self.hashes: dict[str, str] = {}

    @abstractmethod
    def open(self, stack: ExitStack) -> None:
        """Open what is read, and set `total`; nothing is computed yet."""

    @abstractmethod
    def plan(self) -> dict[str, Any]:
        """What it would take."""

    @abstractmethod
    def identify(self) -> dict[str, Any]:
        """What opening found that decides the entries: which model it is, what is in memory."""

    @cached_property
    def requested(self) -> dict[str, Any]:
        """The fields of the request that decide the output, as its sidecar says them."""
        return describe_fields(self.request, self.hashes)

    def name_file(self, field: str) -> dict[str, Any] | None:
        """The file of an input, as a sidecar names it; None for sequences in memory, or none."""
        given = getattr(self.request, field)
        if given is None or not is_file(given):
            return None
        return {"path": str(given), "sha256": self.requested[field]}

    def name_request(self, *, whole: bool = False) -> str:
        """The digest of what decides the entries; of the `whole` output that a shard is part of."""
        options = {one.name: one.option for one in list_fields(type(self.request))}
        asked = {
            name: value
            for name, value in self.requested.items()
            if (name != "shard" if whole else options[name].decides == "entries")
        }
        return sha256_json({"asked": asked, **self.identify(), "version": __version__})

    @abstractmethod
    def entries(self, first: int) -> Iterator[bytes]:
        """The entries from number `first` on."""

    @abstractmethod
    def write(self, rows: Rows) -> dict[str, Any]:
        """Write the output from all entries; what its sidecar says beside what every one does."""

    def list_files(self) -> list[str]:
        """All files that are written."""
        return self.request.list_files()

    def weigh(self, entry: bytes) -> int:
        """How much of `total` an entry is."""
        return 1

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        """Write the sidecar; what it says."""
        if self.request.is_stream:
            return told | {"file": None}
        told |= {"file": describe_file(self.request.out)}
        atomic.write_json(self.request.sidecar_file, told)
        return told

    def run(self) -> dict[str, Any]:
        """Do it; what the sidecar says. Raises `UsageError` where OUT.partial is foreign."""
        request, began = self.request, time.monotonic()
        with ExitStack() as stack, planning(request.plan):
            self.open(stack)
            if request.plan:
                return {**self.plan(), "files": self.list_files()}
            keep_freed_memory()
            self.digest = self.name_request()
            kept = request.partial
            if request.is_stream or not self.keeps:
                kept = f"{stack.enter_context(tempfile.TemporaryDirectory())}/entries"
            journal = Journal(kept, self.digest)
            journal.check(fresh=request.fresh, force=request.force)
            if request.fresh:
                journal.start_anew()
            elif journal.has_begun:
                _log.info("%s: resuming after %s", kept, _count_kept(journal, self.unit))
            self.journal = journal
            stack.callback(journal.close)
            try:
                done = sum(map(self.weigh, journal.rows())) if journal.kept else 0
                made = stack.enter_context(closing(self._make(journal, done)))
                # What goes to stdout does not wait for the last entry.
                live = partial(follow, journal, made)
                written = self.write(live) if request.is_stream else None
                deque(made, maxlen=0)
            except (KeyboardInterrupt, Interrupted) as stop:
                if kept != request.partial:
                    raise
                if not journal.has_begun:
                    nothing = f"no {self.unit} was finished, and nothing is kept"
                    raise say_stopped(stop, nothing, "run the same command again") from None
                are = "are" if journal.kept > 1 else "is"
                kept = f"{_count_kept(journal, f'finished {self.unit}')} {are} kept in {kept}"
                fix = "run the same command again to resume"
                raise say_stopped(stop, kept, fix) from None
            try:
                journal.seal()
                if written is None:
                    with say_slow(f"writing {request.out}"):
                        written = self.write(journal.rows)
                told = self._finish(written, began)
            except EmptyOutputError:
                journal.remove()
                raise
            journal.remove()
        return told

    def _finish(self, told: dict[str, Any], began: float) -> dict[str, Any]:
        told = {"genodiff": __version__, "out": str(self.request.out), **told}
        told["requested"] = self.requested
        seconds = round(time.monotonic() - began, 3)
        told |= {"device": self.device, "argv": sys.argv, "seconds": seconds}
        return self.finish(told | {"created": stamp_time()})

    def tick(self, n: int) -> None:
        """So much more of `total` is done: told by entries that take long, which then weigh 0."""
        if n:
            self._shown.add(n)

    def _make(self, journal: Journal, done: int) -> Generator[bytes, None, None]:
        """The entries that are missing, each kept as it is made, with a line of progress."""
        with _Progress(self.noun, self.total, done) as self._shown:
            for entry in self.entries(journal.kept):
                journal.append(entry)
                yield entry
                self.tick(self.weigh(entry))


def describe_fields(request: Any, hashes: Mapping[str, str]) -> dict[str, Any]:
    """The fields that decide an output, as plain values, files by sha256; not those of opening."""
    return {
        one.name: _describe(getattr(request, one.name), one.option, hashes)
        for one in list_fields(request.__class__)
        if one.option.decides != "nothing" and not one.option.is_opened
    }


def _describe(value: Any, option: Option, hashes: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        of = {one.name: one.option for one in (list_fields(option.group) if option.group else ())}
        return {
            str(name): _describe(one, of.get(name, option), hashes)
            for name, one in value.items()
            if name not in of or of[name].decides != "nothing"
        }
    if isinstance(value, list | tuple):
        return [_describe(one, option, hashes) for one in value]
    if option.is_input:
        known = hashes.get(str(value)) if isinstance(value, str | Path) else None
        reads = isinstance(value, str | Path) and Path(value).is_file()
        return known or (sha256_file(value) if reads else None)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, Path):
        return str(value)
    return value if isinstance(value, str | int | float) else None


class _Progress(ProgressDisplay):
    """How much of `total` is done, how quickly, and how long the rest takes."""

    def __init__(self, noun: str, total: int, done: int) -> None:
        super().__init__()
        self.noun, self.total, self.done = noun, total, done
        self.first = self.begun = 0.0

    def add(self, n: int) -> None:
        """So much more is done."""
        self.done += n
        of, now = f" of {self.total:,}" if self.total else "", time.monotonic()
        text = f"{self.done:,}{of} {self.noun}"
        if not self.begun:  # all that is read and compiled before the first entry is over
            self.begun, self.first = now, self.done
        elif now > self.begun:
            pace = (self.done - self.first) / (now - self.begun)
            text += f" · {pace:,.3g}/s"
            if self.total and pace:
                text += f" · {format_duration((self.total - self.done) / pace)} to go"
        self.show(text, self.done, self.total)


def follow(journal: Journal, made: Iterator[bytes]) -> Iterator[bytes]:
    """All entries: those that are kept, then each as it is `made`, whoever else reads them."""
    n, kept = 0, -1
    while n != kept:
        for entry in islice(journal.rows(), n, None):
            n += 1
            yield entry
        while n == journal.kept and (new := next(made, None)) is not None:
            n += 1
            yield new
        kept = journal.kept


def _count_kept(journal: Journal, unit: str) -> str:
    """The whole entries that are kept; where there are none, that one has begun."""
    return format_count(journal.kept, unit) if journal.kept else "part of the work"


def say_stopped(stop: BaseException, kept: str, fix: str) -> Interrupted:
    """What a break says: by what, what is `kept`, and how to go on."""
    signum = stop.signum if isinstance(stop, Interrupted) else signal.SIGINT
    by = "Ctrl-C" if signum == signal.SIGINT else "SIGTERM"
    return Interrupted(f"stopped by {by}; {kept}", signum, fix=fix)
