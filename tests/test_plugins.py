"""Every kind of piece, written in one file of a plug-in, is reached from the command line.

A new kind adds its file to `PIECES` and, where the probe does not say enough, a test of its own.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SCHEDULE = '''
from dataclasses import dataclass

from genodiff.diffusion.schedule import SCHEDULES, Schedule


@SCHEDULES.register("cubic")
@dataclass(frozen=True)
class Cubic(Schedule):
    """alpha = 1 - t^3."""

    def alpha(self, t):
        return 1 - t**3

    def masked(self, t):
        return t**3

    def dalpha(self, t):
        return -3 * t**2

    def inverse(self, alpha):
        return (1 - alpha) ** (1 / 3)
'''

SAMPLER = '''
import torch

from genodiff.diffusion.sampler import Filling, one_per_mask, sampler


@sampler("right-to-left", fits=("masked",), evaluations=one_per_mask, uses_steps=False)
def right_to_left(diffusion, denoiser, xt, options):
    """The last mask first."""
    filling = Filling(diffusion, denoiser, xt, options)
    places = torch.arange(xt.shape[1])
    while (masked := filling.x == diffusion.mask_id).any():
        rows = masked.any(-1).nonzero()[:, 0]
        due = places == (places * masked[rows]).amax(-1, keepdim=True)
        logits, sigma = filling.evaluate(rows, torch.ones(len(rows)).double(), due)
        filling.reveal(rows, due, logits, sigma)
    return filling.done()
'''

OBJECTIVE = '''
from dataclasses import dataclass, replace

from genodiff.diffusion.objective import OBJECTIVES
from genodiff.diffusion.objectives.mdlm import Mdlm


@OBJECTIVES.register("scaled")
@dataclass(frozen=True)
class Scaled(Mdlm):
    """MDLM's loss times a setting of its own."""

    factor: float = 1.0

    def loss(self, denoiser, *given):
        terms = super().loss(denoiser, *given)
        return terms._replace(nats=self.factor * terms.nats)
'''


class Piece(NamedTuple):
    """One file of the plug-in and a quick command that needs what the file registers."""

    source: str
    probe: list[str]
    said: str  # by the probe where the piece is there
    missing: str  # by the probe where it is not


PIECES = {
    "toy_schedule": Piece(
        SCHEDULE,
        ["config", "show", "toy", "--schedule", "cubic"],
        "schedule: cubic",
        "unknown schedule",
    ),
    "toy_sampler": Piece(
        SAMPLER, ["sample", "--sampler", "right-to-left"], "no file to write", "no sampler"
    ),
    "toy_objective": Piece(
        OBJECTIVE,
        [
            "config", "show", "toy", "--objective", "scaled", "--objective-options.factor", "2.5",
        ],
        "factor: 2.5",
        "unknown objective",
    ),
}  # fmt: skip


def plug_in(folder: Path, *names: str) -> dict[str, str]:
    """Install the named pieces as a distribution in `folder`; the environment that finds it."""
    about = folder / "toy-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 0.1\n")
    points = "".join(f"{name} = {name}\n" for name in names)
    (about / "entry_points.txt").write_text(f"[genodiff.plugins]\n{points}")
    for name in names:
        (folder / f"{name}.py").write_text(PIECES[name].source)
    path = os.pathsep.join(part for part in (str(folder), os.environ.get("PYTHONPATH")) if part)
    return os.environ | {"PYTHONPATH": path}


def genodiff(environment: dict[str, str], folder: Path, *words: str) -> tuple[int, str]:
    """(exit code, stdout and stderr) of `genodiff WORDS` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "genodiff", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_is_reached_where_its_file_is_installed_and_not_elsewhere(
    name: str, tmp_path: Path
) -> None:
    piece = PIECES[name]
    others = [other for other in PIECES if other != name]
    _, said = genodiff(plug_in(tmp_path / "whole", *PIECES), tmp_path, *piece.probe)
    assert piece.said in said
    code, said = genodiff(plug_in(tmp_path / "part", *others), tmp_path, *piece.probe)
    assert code == 2
    assert piece.missing in said


def test_a_toy_schedule_objective_and_sampler_train_a_model_and_sample_it(tmp_path: Path) -> None:
    environment = plug_in(tmp_path / "plug_in", *PIECES)
    train = "train toy --preset caduceus-ps-tiny --seq-len 64 --max-steps 2 --out run -q"
    ours = "--schedule cubic --objective scaled --objective-options.factor 2.5"
    code, said = genodiff(environment, tmp_path, *train.split(), *ours.split())
    assert code == 0, said
    sample = "sample --checkpoint run --fasta - --n 1 --length 20 --sampler right-to-left -q"
    code, said = genodiff(environment, tmp_path, *sample.split())
    assert code == 0, said
    assert "sampler=right-to-left steps=20 nfe=20" in said


def test_a_plug_in_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    environment = plug_in(tmp_path / "plug_in", "toy_schedule")
    (tmp_path / "plug_in" / "toy_schedule.py").write_text("import no_such_module\n")
    code, said = genodiff(environment, tmp_path, "config", "show", "toy", "--schedule", "cubic")
    assert code == 5
    assert "the plug-in toy_schedule of toy cannot be loaded" in said
