"""Genomes that are related to the small run's."""

import numpy as np

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def differ(text: str, share: float, seed: int) -> str:
    """A genome in FASTA, of which a share of the bases is another; its contigs have other names."""
    rng, lines = np.random.default_rng(seed), []
    for line in text.splitlines():
        if line.startswith(">"):
            lines.append(f">r{seed}_{line[1:]}")
            continue
        bases = np.frombuffer(line.upper().encode(), np.uint8).copy()
        here = (rng.random(len(bases)) < share) & (bases != ord("N"))
        bases[here] = LETTERS[rng.integers(0, 4, int(here.sum()))]
        lines.append(bases.tobytes().decode())
    return "\n".join(lines) + "\n"
