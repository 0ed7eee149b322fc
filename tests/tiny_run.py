"""A run folder with an untrained network of a few thousand weights, on a small genome that has
everything awkward.
"""

from pathlib import Path

import numpy as np
import torch

from genodiff.alphabet import DNA
from genodiff.data.dna_store import build_dna_store
from genodiff.runs.checkpoint import State, save_checkpoint
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import find_recipe
from genodiff.runs.folder import write_config, write_provenance
from genodiff.runs.model import build_backbone, collect_tensors
from genodiff.runs.resolve import resolve_config

NETWORK = {"kind": "caduceus", "d_model": 16, "n_layer": 1, "d_state": 4, "strands": "paired"}
SEQ_LEN = 64


def genome_text(seed: int = 1) -> str:
    """Contigs c1..c4 of different length: lower case, N, and in c1's end (test) a copy of its
    beginning (train).
    """
    rng = np.random.default_rng(seed)
    letters = np.frombuffer(b"ACGT", np.uint8)
    records = []
    for i, length in enumerate((6000, 4000, 3001, 1300)):
        sequence = letters[rng.choice(4, length, p=[0.3, 0.2, 0.2, 0.3])].copy()
        sequence[200:700] |= 0x20
        sequence[length - 90 : length - 60] |= 0x20
        sequence[length - 40 : length - 35] = ord("N")
        if i == 0:
            sequence[length - 290 : length - 190] = sequence[1000:1100]
        records.append(f">c{i + 1}\n{sequence.tobytes().decode()}\n")
    return "".join(records)


def write_run(folder: Path, name: str = "run", *, seed: int = 0, **settings: object) -> Path:
    """Write `folder`/genome.fa unless it is there, and an untrained run on it as `folder`/`name`.

    `settings` take the place of a configuration's sections of the same name.
    """
    if not (fasta := folder / "genome.fa").exists():
        fasta.write_text(genome_text())
    given = {
        "recipe": "own",
        "fasta": str(fasta),
        "backbone": NETWORK,
        "data": {"seq_len": SEQ_LEN},
    }
    return save_run(folder / name, resolve_config(given | settings), seed)


def save_run(run: Path, config: RunConfig, seed: int = 0) -> Path:
    """A run folder with a checkpoint of step 1 of an untrained network."""
    torch.manual_seed(seed)
    backbone = build_backbone(config, DNA)
    torch.nn.init.normal_(
        next(p for n, p in backbone.named_parameters() if "embed" in n.lower()), std=0.5
    )
    store = build_dna_store(find_recipe(config), config.fasta)
    run.mkdir(parents=True)
    write_config(run, config)
    write_provenance(run, config, store.identity(), {"started": "now"})
    save_checkpoint(run, State(1, collect_tensors(backbone), {}, {}), config, DNA, store.identity())
    return run
