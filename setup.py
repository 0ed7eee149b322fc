"""The optional C library of the CPU kernels: one copy per instruction set, chosen at run time.

Without a compiler, or with one that knows no vector extensions, the install succeeds all the same
and the scan runs in torch. The library is called through ctypes and knows nothing of Python, so a
wheel serves every version of it.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

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
if platform.machine().lower() in ("x86_64", "amd64"):
    COPIES |= {"avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4"]}


class Build(build_ext):
    def get_ext_filename(self, name: str) -> str:
        """The file of an extension: genodiff/kernels/_native_avx2.so, without a Python in it."""
        return name.replace(".", "/") + ".so"


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """Any Python 3, any of its interfaces, this platform."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
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
