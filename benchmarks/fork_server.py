"""Commands of genodiff without the seconds that each would import for: one process imports all of
it once, with one thread, and is forked for every command.

    with ForkServer() as server:
        done = server.run(["eval", "RUN", "--json"], cwd=folder)

A command has its own arguments, folder, environment, stdin, stdout and stderr, and ends as it
would. What a library reads when it is imported cannot be given late: where the environment differs
from the server's in one of `AT_IMPORT`, and on systems other than Linux, a real process is started.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

AT_IMPORT = (
    "PYTHON", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "VECLIB_", "BLIS_",
    "POLARS_", "RAYON_", "NUMBA_", "TORCH", "PYTORCH_", "CUDA_", "CUBLAS_", "TRITON_", "LD_", "MPL",
    "HF_", "LANG", "LC_", "TERM", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "TMPDIR",
)  # fmt: skip
"""How the names of variables begin that Python or a library reads before a command runs."""

PRELOADED = (
    "torch._dynamo", "lightning.pytorch", "matplotlib.figure", "matplotlib.backends.backend_agg",
    "scipy.stats", "sklearn.linear_model", "sklearn.metrics", "jinja2", "rich.progress",
)  # fmt: skip
"""What commands import as they run, beside the modules of genodiff and what these import."""
NOT_PRELOADED = ("genodiff.__main__", "genodiff.kernels.triton")


class Command:
    """A command that runs: signals reach it by `pid`; its streams are what it was given."""

    def __init__(self, words: Sequence[str], pid: int, status: socket.socket) -> None:
        self.args, self.pid, self._status = list(words), pid, status
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; minus the signal that ended it. Raises `TimeoutExpired`."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                said = self._status.recv(64)
            except TimeoutError:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout) from None
            self.returncode = os.waitstatus_to_exitcode(int(said or signal.SIGKILL))
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired, BlockingIOError):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """A process of its own that waits for commands; it is started by the first of them."""

    def __init__(self, forks: bool = True, folder: str | Path | None = None) -> None:
        """Without `forks` every command that is `run` is a process of its own. Processes that give
        the same `folder`, which is there, have one server: it ends with the last of them.
        """
        self._folder = folder
        self._forks = forks and sys.platform.startswith("linux")
        self._socket: socket.socket | None = None
        self._environment: dict[str, str] = {}

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the server. Commands that run go on to their end."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def serves(self, env: Mapping[str, str]) -> bool:
        """Whether a fork stands for a process with the environment `env`."""
        if not self._forks:
            return False
        ours = self._environment or _choose_environment()
        return _at_import(ours) == _at_import(_with_one_thread(env))

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        input: str | bytes = "",
        timeout: float | None = None,
        code: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """What `genodiff WORDS` does, with what it wrote to stdout and stderr."""
        data = input.encode() if isinstance(input, str) else input
        env = os.environ if env is None else env
        if not self.serves(env):
            how = ["-m", "genodiff"] if code is None else ["-c", code]
            options: Any = {"cwd": cwd, "env": env, "input": data, "timeout": timeout}
            done = subprocess.run([sys.executable, *how, *words], capture_output=True, **options)
            shown = [text.decode().replace("\r\n", "\n") for text in (done.stdout, done.stderr)]
            return subprocess.CompletedProcess(done.args, done.returncode, *shown)
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out:
            stdin.write(data)
            stdin.seek(0)
            with tempfile.TemporaryFile() as err:
                command = self.start(words, stdin, out, err, cwd=cwd, env=env, code=code)
                try:
                    command.wait(timeout)
                except BaseException:
                    command.kill()
                    raise
                said = [_read(stream) for stream in (out, err)]
        return subprocess.CompletedProcess(command.args, command.wait(), *said)

    def run_code(self, code: str, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
        """What `python -c CODE WORDS` does, with all of genodiff imported; `more` as in `run`."""
        return self.run([str(word) for word in words], code=code, **more)

    def start(
        self,
        words: Sequence[str],
        stdin: IO[Any] | int = subprocess.DEVNULL,
        stdout: IO[Any] | int = subprocess.DEVNULL,
        stderr: IO[Any] | int = subprocess.DEVNULL,
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> Command:
        """Begin `genodiff WORDS` with these files as its streams, or `python -c CODE WORDS`."""
        env = _with_one_thread(os.environ if env is None else env)
        self.join()
        assert self._socket is not None
        ours, theirs = socket.socketpair()
        asked = {"words": list(words), "cwd": str(cwd or Path.cwd()), "env": env, "code": code}
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(asked).encode())
            request.flush()
            with open(os.devnull, "r+b") as nowhere:
                given = (nowhere if s == subprocess.DEVNULL else s for s in (stdin, stdout, stderr))
                streams = [s if isinstance(s, int) else s.fileno() for s in given]
                files = [theirs.fileno(), request.fileno(), *streams]
                socket.send_fds(self._socket, [b"."], files)
        theirs.close()
        return Command(["genodiff", *words], int(ours.recv(64)), ours)

    def join(self) -> None:
        """Connect to the server, and start it where there is none."""
        if self._socket is not None:
            return
        import fcntl

        self._environment = _choose_environment()
        folder = Path(self._folder or tempfile.mkdtemp())
        self._socket = socket.socket(socket.AF_UNIX)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                self._socket.connect(str(folder / "server"))
            except (FileNotFoundError, ConnectionRefusedError):
                self._start_server(folder / "server")
                self._socket.connect(str(folder / "server"))
        if self._folder is None:
            shutil.rmtree(folder)
        atexit.register(self.close)

    def _start_server(self, address: Path) -> None:
        address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen()
            listener.set_inheritable(True)
            words = [sys.executable, str(Path(__file__).resolve()), str(listener.fileno())]
            os.posix_spawn(sys.executable, words, self._environment)


def _with_one_thread(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: one thread where none is asked for is what tests mean."""
    return {"OMP_NUM_THREADS": "1", **env}


def _choose_environment() -> dict[str, str]:
    return _with_one_thread(os.environ)


def _at_import(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_IMPORT)}


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n")


def serve(listener: socket.socket) -> None:
    """Import, then fork for every command until nobody is connected any more."""
    del sys.path[0]  # the folder of this script
    genodiff = importlib.import_module("genodiff")
    ours = [found.name for found in pkgutil.walk_packages(genodiff.__path__, "genodiff.")]
    for name in (*PRELOADED, *ours):
        if not name.startswith(NOT_PRELOADED):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the tests' to hear
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                waiting.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            asked: Any = key.fileobj
            message, files, *_ = socket.recv_fds(asked, 1, 5)
            if not message:
                waiting.unregister(asked)
                asked.close()
                if len(waiting.get_map()) == 1:
                    return
            elif os.fork() == 0:
                for one in list(waiting.get_map().values()):
                    one.fileobj.close()  # type: ignore[union-attr]
                _keep(*files)
            for file in files:
                os.close(file)


def _keep(status: int, request: int, *streams: int) -> None:
    """Begin a command, say its process id, wait for its end, and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(status)
        _become(request, streams)
    for file in streams:
        os.close(file)
    with contextlib.suppress(OSError):  # nobody waits any more
        os.write(status, str(pid).encode())
        ended = os.waitpid(pid, 0)[1]
        os.write(status, str(ended).encode())
    os._exit(0)


def _become(request: int, streams: Sequence[int]) -> None:
    """Be the process of one command, to its end."""
    with open(request, "rb") as file:
        file.seek(0)
        asked = json.load(file)
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.stdin = open(0)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace")  # noqa: SIM115
    sys.argv = ["genodiff", *asked["words"]]
    sys.path.insert(0, asked["cwd"])  # as `python -m`
    code: object = 0
    try:
        if asked["code"] is None:
            runpy.run_module("genodiff", run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = "-c"
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(asked["code"], "<string>", "exec"), sys.modules["__main__"].__dict__)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def write_program(folder: Path) -> None:
    """A program `genodiff` in `folder` for shells: each call is a fork of this folder's server."""
    program = folder / "genodiff"
    words = shlex.join([sys.executable, str(Path(__file__).resolve()), "run", str(folder)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        code = ForkServer(folder=sys.argv[2]).start(sys.argv[3:], 0, 1, 2).wait()
        sys.exit(code if code >= 0 else 128 - code)
    serve(socket.socket(fileno=int(sys.argv[1])))
