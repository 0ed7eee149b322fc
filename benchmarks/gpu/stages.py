"""The calls on a lent GPU: their stages, in order, with the deadline of each.

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
    """What runs in one call, and the seconds in which it ends; a tuple of stages side by side."""

    about: str
    seconds: int
    stages: tuple[Stage | tuple[Stage, ...], ...]


RUN = "{work}/runs/genome"


def measure(name: str, about: str, seconds: int, script: str, tiny: str = "") -> Stage:
    """A stage of a script here, which writes NAME.json; `tiny` are a rehearsal's flags."""
    command = f"{{python}} {{here}}/{script} --out {{results}}/{name}.json"
    return Stage(name, about, seconds, command, f"{command} --rehearse {tiny}")


def verb(name: str, line: str) -> Stage:
    """A stage of one line of genodiff's own command line on the run, on the GPU."""
    command = f"{{python}} -m genodiff {name} {RUN} {line} --device "
    return Stage(name, f"{name}, on the run", 30, command + "cuda", command + "cpu")


PYTEST = "{python} -m pytest -q -p no:cacheprovider -W default"
NO_PLUGINS = (("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),)
FASTA = "{carried}/genome.fa.gz"
INSTALL = Stage(
    "packages", "what the machine lacks is unpacked", 25,
    "{python} {here}/packages.py {carried} {work}/site",
)  # fmt: skip
PROBE = Stage(
    "probe", "versions, imports, driver, memory", 40,
    "{python} {here}/probe.py --out {results}/probe.json",
)  # fmt: skip
DOCTOR = Stage("doctor", "genodiff's own checks", 120, "{python} -m genodiff doctor --json")
MACHINE = measure("machine", "what it copies and multiplies at best", 25, "machine.py")
WARM = measure(
    "warm", "one step of each size and length, so that kernels are compiled", 70,
    "step.py --warm 1024,8192,131072", "--warm 1024,8192",
)  # fmt: skip
TESTS = Stage(
    "tests", "the tests that need a GPU", 120,
    f"{PYTEST} -p xdist.plugin -n 4 -m gpu tests/kernels/test_triton.py"
    " tests/kernels/test_triton_mixer.py",
    f"{PYTEST} tests/kernels/test_triton_mixer.py -m 'not slow' -k 'convolution and 1-3-4'",
    NO_PLUGINS,
)  # fmt: skip
NCU = Stage(
    "ncu", "the counters of one forward and one backward scan", 80,
    "ncu --clock-control none --set full --import-source yes --profile-from-start off"
    " --page details -o {results}/scan {python} {here}/scan.py --profile"
    " --out {results}/ncu.json",
    "{python} {here}/scan.py --profile --rehearse --out {results}/ncu.json",
)  # fmt: skip
KEEP = Stage(
    "keep", "the run's weights and figures", 10,
    "{python} {here}/keep.py " + RUN + " {results}/run",
)  # fmt: skip
DRAWN, VARIANTS = "{results}/sample.fa", "{results}/variants.vcf"

# No call is longer than 200 s: a GPU is at hand for some minutes at a time.
CALLS = {
    1: GpuCall(
        "correctness", 195,
        (
            INSTALL, PROBE,
            (
                DOCTOR, TESTS,
                measure("parity", "every kernel against float64, cases side by side", 120,
                        "parity.py --jobs 6 --seconds {seconds}", "--jobs 6"),
                measure("resume", "the same bits twice, stopped three times, and with graphs", 120,
                        "resume.py --folder {work}/runs --seconds {seconds}", "--steps 8"),
            ),
        ),
    ),
    2: GpuCall(
        "our own speed, and where it goes", 195,
        (
            INSTALL, MACHINE, WARM,
            measure("own_step", "our training step, also as one CUDA graph", 50,
                    "step.py --own --machine {results}/machine.json --seconds {seconds}"),
            measure("timeline", "where the time of a step goes", 40,
                    "timeline.py --seconds {seconds}"),
        ),
    ),
    3: GpuCall(
        "beside mamba-ssm", 195,
        (
            INSTALL, MACHINE, WARM,
            measure("peers", "whether mamba-ssm imports and makes a step", 20, "peers.py"),
            measure("scan", "our scan beside mamba-ssm's", 30, "scan.py --seconds {seconds}"),
            measure("step", "our training step beside mamba-ssm's", 60,
                    "step.py --machine {results}/machine.json --seconds {seconds}"),
        ),
    ),
    4: GpuCall(
        "counters, and the choices", 195,
        (
            INSTALL, NCU,
            measure("choices", "what choices.json pins, against alternatives", 75,
                    "scan.py --choices --seconds {seconds}"),
        ),
    ),
    5: GpuCall(
        "a real run, and the verbs on it", 195,
        (
            INSTALL,
            measure("genome", "a minute of training on yeast", 110,
                    f"train.py --folder {{work}}/runs --fasta {FASTA}"
                    " --minutes 1 --seconds {seconds}", "--steps 6"),
            KEEP,
            verb("sample", f"-n 8 --length 256 --steps 64 -o {DRAWN}"),
            Stage("variants", "variants of what was drawn", 10,
                  f"{{python}} {{here}}/variants.py {DRAWN} {VARIANTS}"),
            (
                verb("eval", "--max-windows 256"),
                verb("score", f"{VARIANTS} --fasta {DRAWN} -o {{results}}/scored.vcf"),
                verb("tracks", f"--fasta {DRAWN} -o {{results}}/tracks"),
                verb("embed", f"--fasta {DRAWN} -o {{results}}/embedded.npz"),
            ),
        ),
    ),
}  # fmt: skip
