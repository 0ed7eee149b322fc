"""The command line: the verbs of the registry, what they share, and each ending's exit code."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

from cyclopts import App, Group, Parameter
from cyclopts.exceptions import ArgumentOrderError, CycloptsError

from genodiff.api.doctor import describe_version
from genodiff.cli.explain import explain
from genodiff.errors import GenodiffError, Interrupted, printable
from genodiff.io.process import end_process, open_missing_streams
from genodiff.jobs.verbs import list_verbs

# Times that an idle thread of GNU OpenMP looks for work before it sleeps. Its default, some
# milliseconds, keeps the core busy when another program wants it, and small networks then train
# at a tenth of their speed.
_SPIN = "10000"

_Shell = Annotated[
    Literal["bash", "zsh", "fish"] | None, Parameter(help="Shell (default: the current one).")
]
# In bash the value of a flag that names a file is completed as any word is.
_FILES = ("\ncomplete -F", "\ncomplete -o bashdefault -o default -F")

GROUPS = {
    "checkpoint": "Check a run folder or checkpoint; read and write published weights.",
    "config": "Show, check and document settings.",
    "data": "Check, get, build and list data.",
    "finetune": "Fine-tune on benchmarks or your own labelled sequences; check and audit their "
    "data.",
    "models": """List and show pretrained models, for `--model NAME`.

They are included in genodiff, or in a folder listed in GENODIFF_MODELS, one folder each, as written
by `genodiff checkpoint export RUN --format safetensors`.""",
}
"""Help of the verb groups."""
_ALONE = {"models": "models list"}
"""The verb of a group when no word follows."""


def build_app() -> App:
    """The command line with every verb, ours and those of plug-ins."""
    app = App(
        name="genodiff",
        help="Evolutionary constraint, variant scores, design and masked-diffusion language "
        "models of genomes.",
        version=describe_version,
        help_format="plaintext",
        group_parameters=Group("Parameters", sort_key=1),  # `Most used` stands before it
        suppress_keyboard_interrupt=False,  # cyclopts would end without a line
    )
    add_completion(app)
    add_verbs(app)
    return app


def add_verbs(app: App, group: str = "") -> None:
    """Make the verbs of the registry commands of `app`; of a `group`, those below it.

    A command is an attribute of this module, so that cyclopts imports what it needs at its turn.
    """
    verbs, seen = list_verbs(), set()
    for name in verbs:
        word, _, below = name.removeprefix(f"{group} " if group else "").partition(" ")
        if word in seen or (group and not name.startswith(f"{group} ")):
            continue
        seen.add(word)
        if word == "*":
            for variant, about in verbs[name].open().list_variants().items():
                app.command(_make(name, variant), name=variant, help=about)
            continue
        about = GROUPS.get(word, "") if below else verbs[name].help
        app.command(f"{__name__}:{group} {word}".replace(": ", ":"), name=word, help=about)


def __getattr__(name: str) -> App | Callable[..., None]:
    """A command by its words: a function, or the `App` of a group."""
    verbs = {} if name.startswith("__") else list_verbs()
    if name in verbs:
        return _make(name)
    if not any(one.startswith(f"{name} ") for one in verbs):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    app = App(name=name, group_parameters=Group.create_default_parameters())
    if name in _ALONE:
        app.default(_make(_ALONE[name]))
    add_verbs(app, name)
    return app


def _make(name: str, *variant: str) -> Callable[..., Any]:
    from genodiff.cli.request_flags import make_command  # what a list of verbs does not need

    return make_command(name, list_verbs()[name].open(), *variant)


def add_completion(app: App) -> None:
    """Make `--show-completion` and `--install-completion` commands of `app`."""

    def show_completion(shell: _Shell = None, /) -> None:
        """Print the completion script of a shell."""
        script = app.generate_completion(prog_name="genodiff", shell=shell)
        sys.stdout.write(script.replace(*_FILES))

    def install_completion(shell: _Shell = None, /) -> None:
        """Write the completion script where the shell looks for it, and name the file."""
        path: Path = app.install_completion(shell=shell, add_to_startup=True)
        path.write_text(path.read_text(encoding="utf-8").replace(*_FILES), encoding="utf-8")
        print(f"{path}: written; open a new shell to use it")

    app.command(show_completion, name="--show-completion")
    app.command(install_completion, name="--install-completion")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Each ending has its exit code, each user's error is one line.

    Without `arguments`, those of the process are taken, and the process ends here.
    """
    if arguments is not None:
        _run_to_end(arguments)
        return
    open_missing_streams()
    try:
        _run_to_end(None)
    except SystemExit as end:
        if isinstance(end.code, int):
            end_process(end.code)
        raise
    end_process(0)


def _run_to_end(arguments: list[str] | None) -> None:
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        _stop_hearing(arguments)
        what = "stopped by Ctrl-C; run the same command again"
        sys.exit(_fail(what, 128 + signal.SIGINT, "interrupted"))
    finally:
        _stop_hearing(arguments)


def _stop_hearing(arguments: list[str] | None) -> None:
    """Ignore further Ctrl-C where the process is about to end: a second would change its code."""
    if arguments is None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(arguments: list[str]) -> None:
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPIN)  # read when torch is loaded
    debug = "--debug" in arguments or bool(os.environ.get("GENODIFF_DEBUG"))
    arguments = [a for a in arguments if a != "--debug"]
    try:
        _call(build_app(), arguments)
        sys.stdout.flush()
    except GenodiffError as error:
        if debug:
            raise
        kind = "interrupted" if isinstance(error, Interrupted) else "error"
        sys.exit(_fail(str(error), error.exit_code, kind))
    except CycloptsError as error:
        if debug:
            raise
        sys.exit(_fail(explain(error), 2))
    except BrokenPipeError:
        _drop(sys.stdout)
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        if debug:
            raise
        where = f"{printable(error.filename)}: " if error.filename is not None else ""
        fix = "check the path, its permissions and the free space"
        sys.exit(_fail(f"{where}{error.strerror or error}; {fix}", 5))
    except MemoryError:
        if debug:
            raise
        sys.exit(_fail("out of memory; give a smaller --batch-size or --seq-len", 5))


def _call(app: App, arguments: list[str]) -> None:
    """Run the verb. `FILE --model RUN` is `RUN FILE`: cyclopts takes no words after such a flag."""
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except ArgumentOrderError as error:
        words, rest = list(error.command_chain or ()), list(arguments)
        for one in error.prior_positional_or_keyword_supplied_as_keyword_arguments:
            flag, value = one.tokens[0].keyword, one.tokens[0].value
            if f"{flag}={value}" in rest:
                rest.remove(f"{flag}={value}")
            elif flag in rest:
                at = rest.index(flag)
                del rest[at : at + 2]
            else:
                raise
            words.append(value)
        app(words + rest[len(error.command_chain or ()) :], exit_on_error=False, print_error=False)


def _drop(stream: TextIO) -> None:
    """Send the rest of a stream nowhere: the interpreter would fail to write it, with code 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(message: str, code: int, kind: str = "error") -> int:
    try:
        sys.stdout.flush()
    except OSError:
        _drop(sys.stdout)
    try:
        print(f"genodiff: {kind}: {message}", file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)
    return code
