"""What all tests share: the shared folder, where present, checked tensor shapes, a small run."""

import atexit
import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator
from importlib import import_module
from zlib import crc32

import hypothesis
import jaxtyping
import pytest
import torch
from folders import SHARED

# A shell's background job ignores Ctrl-C and nohup a hang-up; so would what a test starts.
for _signal, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _usual)

# What is compiled once serves the processes that tests start, and the next run of them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Users' stdout is buffered: what a full disk does at the interpreter's end shows only so.
os.environ.pop("PYTHONUNBUFFERED", None)

# Where the processes of this run of pytest meet the server of `tests.commands`.
if "GENODIFF_TEST_FORKS" not in os.environ:
    os.environ["GENODIFF_TEST_FORKS"] = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, os.environ["GENODIFF_TEST_FORKS"], ignore_errors=True)

# Triton decides at its first import whether kernels are interpreted, and torch may import it.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Shapes and types of tensors are checked where this is set, as by tests/test_shapes.py: the first
# case of each test of these rooms. Each call of a network takes more than twice as long with it.
CHECK_SHAPES = "GENODIFF_CHECK_SHAPES" in os.environ
for _room in ("diffusion", "backbones", "kernels") if CHECK_SHAPES else ():
    jaxtyping.install_import_hook(f"genodiff.{_room}", "beartype.beartype")

# Nine tenths of the time of a fit of relatives go into searching the chances of its chain: the
# tests of the fit do so, in `memory`; others take those that it begins with.
alignment_fit = import_module("genodiff.memory.alignment")  # after the hooks
SEARCHED = alignment_fit._SEARCHED
# So do windows of a small genome that hold one another: an eighth of them serve the same. It is set
# before any module takes the number by its name.
import_module("genodiff.runs.related_genome").FIT_WINDOWS = 16


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Search or not, before the first fixture of the test."""
    room = item.path.parent.name
    alignment_fit._SEARCHED = SEARCHED if room == "memory" else ()


# No deadline (shared machines are slow now and then) and the same examples every time, so that a
# red test stays red.
hypothesis.settings.register_profile("genodiff", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("genodiff")


# Files with tests of minutes: they begin first, so that no process is left alone with one.
_LONGEST = {"test_docs.py", "test_sanitizers.py", "test_evaluate.py"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, the others in their order; cases beyond `few` are slow, and beyond twice
    as many long. With `CHECK_SHAPES`, the first case of each test alone.

    Which cases stay is drawn by their names, so that no value of a parameter is left out for good.
    """
    cases: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if few := item.get_closest_marker("few"):
            cases[item.nodeid.partition("[")[0], few.args[0]].append(item)
    for (_, most), several in cases.items():
        drawn = sorted(several, key=lambda item: crc32(item.name.encode()))
        for rank, item in enumerate(drawn[most:], most):
            item.add_marker(pytest.mark.slow)
            if rank >= 2 * most:
                item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: item.path.name not in _LONGEST)
    if CHECK_SHAPES:
        items[:] = {item.nodeid.partition("[")[0]: item for item in reversed(items)}.values()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for among the tests, while they are collected or later: all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test printed crosses between processes as UTF-8: names of other bytes are escaped."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture
def shared():
    """The shared folder; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("no shared folder here (set GENODIFF_SHARED)")
    return SHARED


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Give each process of tests a cache of its own."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_CACHE", str(cache))
        yield cache


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of an untrained network on a small genome, one for each module of tests."""
    from tiny_run import write_run

    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def model(run):
    """The network of `run`, loaded anew for each test."""
    from genodiff.runs.model import load_model

    return load_model(run)


@pytest.fixture(autouse=True)
def fresh_log():
    """Undo what an earlier test's command line did to the log."""
    log = logging.getLogger("genodiff")
    log.handlers.clear()
    log.propagate = True
    log.setLevel(logging.NOTSET)


THREADS = torch.get_num_threads()


@pytest.fixture(autouse=True)
def usual_threads():
    """Undo what an earlier test's command line did to torch: its threads would fight for cores."""
    if torch.get_num_threads() != THREADS:
        torch.set_num_threads(THREADS)


@pytest.fixture
def threads():
    """Numbers of threads to try."""
    return [1, 2, 3]


@pytest.fixture(scope="session")
def text_run(tmp_path_factory):
    """A run of 6 steps on a song, in a folder with the song."""
    from tests.commands import exit_code
    from tests.texts import write_song

    folder = tmp_path_factory.mktemp("text")
    words = ["train", write_song(folder), "--domain", "text", "--seq-len", 32, "--max-steps", 6]
    words += "--d-model 16 --n-layer 1 --n-head 2 --batch-size 4 --validate-windows 4".split()
    out = folder / "run"
    assert exit_code(*words, "--out", out, "--threads", 1, "-q") == 0
    return out
