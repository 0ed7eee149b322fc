"""How the C library is compiled where a test does it: as in setup.py, which cannot be imported."""

from pathlib import Path

SOURCES = Path(__file__).parents[2] / "genodiff/kernels/native"
FLAGS = (
    "-std=gnu11 -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi -pthread".split()
)
MARCH = {
    "base": [],
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4"],
}  # of each copy, from narrow to wide
