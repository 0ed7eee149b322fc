"""The optional C library of the CPU kernels: one copy per instruction set, chosen at run time.

Without a compiler, or with one that knows no vector extensions, the install succeeds all the same and the scan runs in torch.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup

SOURCES = "genodiff/kernels/native"
FLAGS = ["-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp", "-Wno-psabi"]
COPIES = {"base": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    COPIES |= {"avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4"]}

setup(
    ext_modules=[
        Extension(
            f"genodiff.kernels._native_{name}",
            sources=[f"{SOURCES}/native.c"],
            depends=sorted(str(header) for header in Path(SOURCES).glob("*.h")),  # an sdist takes them along
            extra_compile_args=FLAGS + more,
            extra_link_args=["-fopenmp"],
            optional=True,
        )
        for name, more in COPIES.items()
    ]
    if sys.platform != "win32"
    else []
)
