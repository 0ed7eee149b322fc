"""The command line: one short file per verb, loaded only when its verb runs."""

import os
import signal
import sys

from cyclopts import App
from cyclopts.exceptions import CycloptsError

from genodiff import __version__
from genodiff.errors import GenodiffError, printable

app = App(
    name="genodiff",
    help="Masked-diffusion language models of genomes: train on a FASTA, measure in bits per "
    "base, sample new DNA.",
    version=__version__,
    help_format="plaintext",
)

# Registered by name, so that `--help` imports no verb (and no torch); hence the one-line help given
# here.
_VERBS = {
    "demo": "The embedded default end to end on a CPU in minutes: train, evaluate, sample, report.",
    "train": "Train a model on a recipe (hg38, sacCer3, toy, ...) or on your own FASTA; run "
    "again to resume.",
    "eval": "Bits per base with its confidence interval, beside Markov baselines.",
    "embed": "Embeddings of DNA windows to .npz, .parquet or .zarr.",
    "judge": "Generative perplexity of samples, with entropy and diversity beside it.",
    "compare": "Objectives and networks side by side: equal tokens, one store, one table.",
    "sample": "Sample DNA to FASTA, from nothing or into a template's N.",
    "data": "Check, get, build and list data.",
    "checkpoint": "Check a run folder or checkpoint; read and write published weights.",
    "config": "Show, check and document settings.",
    "finetune": "Fine-tune on benchmarks or your own labelled sequences; check and "
    "audit their data.",
    "report": "Write a run's report.html again.",
    "doctor": "What runs on this machine, and why.",
}
for _verb, _help in _VERBS.items():
    app.command(
        f"genodiff.cli.{_verb}:{'app' if _verb in ('data', 'checkpoint', 'config', 'finetune') else _verb}",
        name=_verb,
        help=_help,
    )


# Times that an idle thread of GNU OpenMP looks for work before it sleeps. Its own default, some
# milliseconds, takes the core from the thread that all wait for wherever another program wants one
# too: small networks then train at a tenth of their speed.
_SPIN = "10000"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every ending has its documented exit code, every user's error is one
    line.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPIN)  # read when torch is loaded
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments or bool(os.environ.get("GENODIFF_DEBUG"))
    arguments = [a for a in arguments if a != "--debug"]
    try:
        app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except GenodiffError as error:
        if debug:
            raise
        sys.exit(_fail(str(error), error.exit_code))
    except CycloptsError as error:
        if debug:
            raise
        sys.exit(
            _fail(
                f"{' '.join(str(error).split()).rstrip('.')}; see `genodiff "
                f"{_verb_of(arguments)}--help`",
                2,
            )
        )
    except KeyboardInterrupt:
        sys.exit(_fail("interrupted", 128 + signal.SIGINT))
    except BrokenPipeError:
        _drop_stdout()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        if debug:
            raise
        where = f"{printable(error.filename)}: " if error.filename is not None else ""
        sys.exit(
            _fail(
                f"{where}{error.strerror or error}; check the path, its permissions and "
                f"the free space",
                5,
            )
        )
    except MemoryError:
        if debug:
            raise
        sys.exit(_fail("out of memory; give a smaller --batch-size or --seq-len", 5))


def _drop_stdout() -> None:
    """Let go of what stdout still holds: else the interpreter's end tries again to write it, and
    makes the exit code 120.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        _drop_stdout()
    print(f"genodiff: error: {message}", file=sys.stderr)
    return code


def _verb_of(arguments: list[str]) -> str:
    return f"{arguments[0]} " if arguments and arguments[0] in _VERBS else ""
