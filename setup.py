"""The optional C library of the CPU kernels: one copy per instruction set, chosen at run time.

Without a compiler, or with one that knows no vector extensions, the install succeeds all the same
and the scan runs in torch. The library is called through ctypes and knows nothing of Python, so a
wheel serves every version of it.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

SOURCES = "genodiff/kernels/native"
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-g0",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wno-psabi",
    "-pthread",
]
COPIES = {"base": []}
PLATFORM = sysconfig.get_platform()  # of a cross build: _PYTHON_HOST_PLATFORM
if PLATFORM.endswith(("x86_64", "amd64")):
    COPIES |= {"avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4"]}


COMMIT = Path("genodiff/commit.txt")  # in what is built, never in the tree


def read_commit() -> str:
    """The commit of the source: of the tree, or of the sdist that it came in; "" if unknown."""
    if COMMIT.is_file():
        return COMMIT.read_text(encoding="ascii").strip()
    words = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if Path(".git").exists() and not done.returncode else ""


def write_commit(folder: Path) -> None:
    """Put the commit into what is built, where it is known."""
    if commit := read_commit():
        (folder / COMMIT).write_text(commit + "\n", encoding="ascii")


class Modules(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What is installed: the commit too."""
        own = Path(self.build_lib) / COMMIT
        return [*super().get_outputs(include_bytecode), *([str(own)] if own.is_file() else [])]


class Source(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir))


class Build(build_ext):
    def get_ext_filename(self, name: str) -> str:
        """The file of an extension: genodiff/kernels/_native_avx2.so, without a Python in it."""
        return name.replace(".", "/") + ".so"


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """Any Python 3, any of its interfaces, this platform."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": Build, "build_py": Modules, "bdist_wheel": Wheel, "sdist": Source},
    ext_modules=[
        Extension(
            f"genodiff.kernels._native_{name}",
            sources=[f"{SOURCES}/native.c"],
            depends=sorted(
                str(header) for header in Path(SOURCES).glob("*.h")
            ),  # an sdist takes them along
            extra_compile_args=[*FLAGS, *more],
            extra_link_args=["-pthread"],
            optional=True,
        )
        for name, more in COPIES.items()
    ]
    if sys.platform != "win32"
    else [],
)
