"""The optional C library of the CPU kernels: one copy per instruction set, chosen at run time.

Without a compiler, or with one that knows no vector extensions, the install succeeds all the same
and the scan runs in torch.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

SOURCES = "genodiff/kernels/native"
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wno-psabi",
]
COPIES = {"base": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    COPIES |= {"avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4"]}


class Build(build_ext):
    def build_extension(self, extension: Extension) -> None:
        """With OpenMP, or, where the compiler has none (Apple's), with POSIX threads."""
        flags = extension.extra_compile_args
        for threads in ("-fopenmp", "-pthread"):
            extension.extra_compile_args, extension.extra_link_args = [*flags, threads], [threads]
            try:
                super().build_extension(extension)
                return
            except (CompileError, LinkError):
                if threads == "-pthread":
                    raise


setup(
    cmdclass={"build_ext": Build},
    ext_modules=[
        Extension(
            f"genodiff.kernels._native_{name}",
            sources=[f"{SOURCES}/native.c"],
            depends=sorted(
                str(header) for header in Path(SOURCES).glob("*.h")
            ),  # an sdist takes them along
            extra_compile_args=FLAGS + more,
            optional=True,
        )
        for name, more in COPIES.items()
    ]
    if sys.platform != "win32"
    else [],
)
