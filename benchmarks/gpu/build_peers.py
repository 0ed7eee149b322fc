"""Builds mamba-ssm and causal-conv1d as wheels for the lent machine, on a machine without a GPU.

    python benchmarks/gpu/build_peers.py SOURCES WHEELS [--jobs 2]

There a full build takes most of the half hour. Run it with the Python that the lent machine has
(3.12), with its torch (the CUDA 13 build of 2.11), setuptools, wheel, ninja, packaging and einops,
and with nvcc 13.0: `fetch.sh build` sets that up. SOURCES holds the two sdists. Only what the
benchmarks call is compiled: sm_90, float32 and bfloat16; of the scan with real A, B and C that vary
in time, and the softplus. Other calls fail with an error instead of another result. The arithmetic
of the kernels is not touched.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

FIXED = ("is_variable_B", "is_variable_C", "delta_softplus")  # always so in a Mamba layer
LEFT_OUT = re.compile(r'^\s*"csrc/selective_scan/\w+_(?:fp16|complex|fp16_\w+|\w+_complex)\.cu",\n')


def replace(path: Path, pattern: str, by: str, least: int = 1) -> None:
    """Substitute in a file. Raises `SystemExit` where the source is not the one that is known."""
    text, n = re.subn(pattern, by, path.read_text(), flags=re.M)
    if n < least:
        raise SystemExit(f"{path}: {pattern} found {n} times, not {least}: another version?")
    path.write_text(text)


def patch_setup(path: Path) -> None:
    """Compile for sm_90 alone, by the C++ standard that torch's headers ask for."""
    replace(path, r'^(\s*)cc_flag\.append\("(?:-gencode|arch=[^"]*)"\)\n', r"\1pass\n", 8)
    arch = r'\1cc_flag = ["-gencode", "arch=compute_90,code=sm_90"]\n'
    replace(path, r"^(\s*)cc_flag = \[\]\n", arch)
    replace(path, r'"-std=c\+\+17",?', "")


def patch_scan(folder: Path) -> None:
    """Leave out what no benchmark calls: a minute of compiling instead of fifteen."""
    setup = folder / "setup.py"
    kept = [line for line in setup.read_text().splitlines(True) if not LEFT_OUT.match(line)]
    setup.write_text("".join(kept))
    source = folder / "csrc" / "selective_scan"
    forward, backward = (source / f"selective_scan_{way}_kernel.cuh" for way in ("fwd", "bwd"))
    for name in FIXED:
        for path in (forward, backward):
            found = rf"BOOL_SWITCH\(params\.{name}, "
            if path == backward or name != "delta_softplus":
                replace(path, found, f"ALWAYS(params.{name}, ")
    switch = source / "static_switch.h"
    always = (
        "#define ALWAYS(COND, CONST_NAME, ...) [&] { TORCH_CHECK(COND, "
        '"built without it: " #COND); constexpr bool CONST_NAME = true; '
        "return __VA_ARGS__(); }()\n"
    )
    switch.write_text(switch.read_text() + "\n#include <c10/util/Exception.h>\n" + always)
    for path in source.glob("selective_scan_fwd_*.cu"):
        replace(path, r"^template void [^;]*complex[^;]*;", "", 0)
    calls = source / "selective_scan.cpp"
    refuse(calls, "at::Half", "input")
    refuse(calls, "c10::complex<float>", "weight")


def patch_conv(folder: Path) -> None:
    """Leave out float16: 5 of 9 pairs of dtypes, each of which takes half a minute to compile."""
    source = folder / "csrc"
    for path in source.glob("causal_conv1d_*.cu"):
        replace(path, r"^template void \w+<[^>]*at::Half[^>]*>[^;]*;\n", "", 5)
    for name in ("input", "weight"):
        refuse(source / "causal_conv1d.cpp", "at::Half", name)


def refuse(path: Path, kind: str, name: str) -> None:
    """Answer a type that is left out with an error."""
    error = f'using {name}_t = float; TORCH_CHECK(false, "built without {kind}"); '
    replace(path, rf"using {name}_t = {re.escape(kind)}; *\\\n *__VA_ARGS__\(\); ", error)


def find_toolkit() -> Path:
    """The folder of the CUDA toolkit, as nvcc itself says: what is found may be a link to it."""
    if shutil.which("nvcc") is None:
        raise SystemExit("no nvcc: install the CUDA toolkit 13.0, or put its bin into PATH")
    command = ["nvcc", "--dryrun", "-x", "cu", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (folder,) = re.findall(r"^#\$ _HERE_=(.+)$", done.stderr + done.stdout, re.M)
    return Path(folder).parent


def build(source: Path, wheels: Path, jobs: int) -> None:
    """One wheel, from its sdist."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(source) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.4 on
            archive.extractall(scratch)
        (folder,) = Path(scratch).iterdir()
        patch_setup(folder / "setup.py")
        if not (folder / "csrc" / "selective_scan").is_dir():
            patch_conv(folder)
        else:
            patch_scan(folder)
            # It imports Mamba-2 and 3 and a generation interface; Mamba-1 needs none of them.
            init = folder / "mamba_ssm" / "__init__.py"
            (own,) = re.findall(r"^__version__ = .*\n", init.read_text(), re.M)
            init.write_text(own)
        site, toolkit = Path(sysconfig.get_paths()["purelib"]), find_toolkit()
        # The toolkit's headers come first: those that torch brings lack some (crt/).
        headers = [toolkit / "include", *site.glob("nvidia/*/include")]
        force = {f"{name}_FORCE_BUILD": "TRUE" for name in ("MAMBA", "CAUSAL_CONV1D")}
        force["LDFLAGS"] = "-Wl,--strip-all"  # four fifths of a library are its symbols
        force |= {"CUDA_HOME": str(toolkit), "LIBRARY_PATH": str(toolkit / "lib64")}
        force |= {"MAX_JOBS": str(jobs), "CPATH": ":".join(map(str, headers))}
        environment = os.environ | force
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps"]
        command += ["--no-build-isolation", "-w", str(wheels), str(folder)]
        subprocess.run(command, check=True, env=environment)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=Path)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    for name in ("mamba_ssm", "causal_conv1d"):
        if any(arguments.wheels.glob(f"{name}-*.whl")):
            continue
        (source,) = arguments.sources.glob(f"{name}-*.tar.gz")
        build(source, arguments.wheels, arguments.jobs)


if __name__ == "__main__":
    main()
