"""The three calls on a lent GPU: their stages, in order, with the deadline of each.

Commands are one line each, split as a shell would. `{python}`, `{here}` (this folder), `{results}`
(what is packed), `{out}`, `{work}`, `{carried}` and `{seconds}` are filled in by `call.py`.
"""

from typing import NamedTuple


class Stage(NamedTuple):
    """One command of a call."""

    name: str
    about: str
    seconds: int  # the most it may take on a GPU
    command: str
    rehearsed: str = ""  # the command of a rehearsal; the same if empty
    environment: tuple[tuple[str, str], ...] = ()


class GpuCall(NamedTuple):
    """Stages that run in one call, and the seconds in which it ends."""

    about: str
    seconds: int
    stages: tuple[Stage, ...]


def measure(name: str, about: str, seconds: int, script: str, tiny: str = "") -> Stage:
    """A stage of a script here, which writes NAME.json; `tiny` are a rehearsal's flags."""
    command = f"{{python}} {{here}}/{script} --out {{results}}/{name}.json"
    return Stage(name, about, seconds, command, f"{command} --rehearse {tiny}")


def verb(name: str, about: str, seconds: int, line: str) -> Stage:
    """A stage of one line of genodiff's own command line, on the GPU."""
    command = f"{{python}} -m genodiff {line} --device "
    return Stage(name, about, seconds, command + "cuda", command + "cpu")


RUN = "{work}/runs/genome"
PYTEST = "{python} -m pytest -q -p no:cacheprovider -W default"
NO_PLUGINS = (("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),)
INSTALL = Stage(
    "packages", "what the machine lacks is installed", 90,
    "{python} {here}/packages.py {carried} {work}/site",
)  # fmt: skip
UNPACK = Stage(
    "unpack", "kernels that an earlier call compiled", 20,
    "{python} {here}/cache.py unpack {work}/triton {carried}/triton-cache.tar.gz",
)  # fmt: skip
PACK = Stage(
    "pack", "compiled kernels into an archive of their own", 30,
    "{python} {here}/cache.py pack {work}/triton {out}/triton-cache.tar.gz",
)  # fmt: skip
PROBE = Stage(
    "probe", "versions, imports, driver, memory", 60,
    "{python} {here}/probe.py --out {results}/probe.json",
)  # fmt: skip
DOCTOR = Stage("doctor", "genodiff's own checks", 90, "{python} -m genodiff doctor --json")
MACHINE = measure("machine", "what it copies and multiplies at best", 40, "machine.py")
TESTS = Stage(
    "tests", "the tests that need a GPU", 110,
    f"{PYTEST} -p xdist.plugin -n 4 -m gpu tests/kernels/test_triton.py"
    " tests/kernels/test_triton_mixer.py",
    f"{PYTEST} tests/kernels/test_triton_mixer.py -m 'not slow' -k 'convolution and 1-3-4'",
    NO_PLUGINS,
)  # fmt: skip
NCU = Stage(
    "ncu", "the counters of one backward scan, where that is allowed", 45,
    "ncu --clock-control none --set full --launch-skip 2 --launch-count 1"
    " --kernel-name regex:scan_backward {python} {here}/step.py"
    " --warm 1024 --only caduceus-ph-470k --out {results}/ncu-step.json",
    "{python} {here}/step.py --warm 1024 --rehearse --out {results}/ncu-step.json",
)  # fmt: skip
KEEP = Stage(
    "keep", "the run's weights and figures", 20,
    "{python} {here}/keep.py " + RUN + " {results}/run",
)  # fmt: skip

CALLS = {
    1: GpuCall(
        "correctness, and our own speed", 540,
        (
            INSTALL, PROBE, UNPACK, DOCTOR,
            measure("parity", "every kernel against float64, cases side by side", 150,
                    "parity.py --seconds {seconds}"),
            TESTS, MACHINE,
            measure("warm", "one step of each size and length, lengths side by side", 90,
                    "step.py --warm 1024,8192,131072", "--warm 1024,8192"),
            PACK,
            measure("scan", "our scan alone", 45, "scan.py --own --seconds {seconds}"),
            measure("step", "our training step", 110,
                    "step.py --own --machine {results}/machine.json --seconds {seconds}"),
        ),
    ),
    2: GpuCall(
        "beside the peers, the choices, a profile", 560,
        (
            INSTALL, UNPACK,
            measure("peers", "whether mamba-ssm imports and makes a step", 40, "peers.py"),
            MACHINE,
            measure("scan", "our scan beside mamba-ssm's", 90, "scan.py --seconds {seconds}"),
            measure("step", "our training step beside mamba-ssm's", 200,
                    "step.py --machine {results}/machine.json --seconds {seconds}"),
            measure("choices", "what choices.json pins, against alternatives", 60,
                    "scan.py --choices --seconds {seconds}"),
            measure("timeline", "where the time of a step goes", 60,
                    "timeline.py --seconds {seconds}"),
            PACK, NCU,
        ),
    ),
    3: GpuCall(
        "a real run, killed and resumed, and the verbs on it", 590,
        (
            INSTALL, UNPACK,
            measure("resume", "100 steps, and the same killed and begun again", 100,
                    "train.py resume --folder {work}/runs --seconds {seconds}", "--steps 6"),
            measure("genome", "five minutes of training on yeast", 375,
                    "train.py genome --folder {work}/runs --fasta {carried}/genome.fa.gz"
                    " --minutes 5 --seconds {seconds}", "--steps 6"),
            KEEP,
            verb("eval", "bits per base of the run", 60, f"eval {RUN} --max-windows 256"),
            KEEP,
            verb("sample", "sequences from the run", 40,
                 f"sample {RUN} -n 8 --length 256 --steps 64 -o {{results}}/sample.fa"),
            PACK,
        ),
    ),
}  # fmt: skip
