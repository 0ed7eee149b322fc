"""Try an installed genodiff away from its tree: the kernels in C, a few steps, a sample.

    python try_wheel.py [--without-c]

The release workflow runs it on each wheel. It writes into a temporary folder alone.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run_genodiff(*words: str, folder: str) -> str:
    """What the command prints on stdout; its messages go through."""
    command = [sys.executable, "-P", "-m", "genodiff", *words]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        doctor = json.loads(run_genodiff("doctor", "--json", "--offline", folder=folder))
        wanted = "torch" if "--without-c" in sys.argv else "native-"
        assert doctor["scan"].startswith(wanted), doctor["checks"]
        cpu = Path("/proc/cpuinfo")
        if wanted == "native-" and cpu.is_file() and " avx2 " in cpu.read_text():
            assert doctor["scan"] != "native-base", "the copy for this machine was not chosen"
        assert all(check["status"] != "fail" for check in doctor["checks"]), doctor["checks"]
        run_genodiff("train", "toy", "--max-steps", "5", "--out", "run", folder=folder)
        dna = run_genodiff(
            "sample", "--checkpoint", "run", "--fasta", "-", "--n", "1", "--length", "200",
            folder=folder,
        )  # fmt: skip
        sequence = "".join(dna.splitlines()[1:])
        assert len(sequence) == 200, dna
        assert set(sequence) <= set("ACGT"), dna
        print(f"genodiff {run_genodiff('--version', folder=folder).split()[0]}: {doctor['scan']}")


if __name__ == "__main__":
    main()
