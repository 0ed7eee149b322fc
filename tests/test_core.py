"""The core does without the wings: a copy without them trains, evaluates, samples and scores."""

import ast
import re
import shutil
from pathlib import Path

from tests.commands import SERVER
from tests.test_floors import FLOOR
from tests.tiny_run import write_vcf

PACKAGE = Path(__file__).resolve().parent.parent / "genodiff"
WINGS = (
    "annotation", "conservation", "design", "diagnosis", "embedding", "finetuning", "hf", "hub",
    "laws", "maps", "quality", "reports", "studies", "tasks",
)  # fmt: skip
"""What no part of the core imports. ARCHITECTURE.md draws them beside it."""

ANEW = """
import sys

# A fork has imported torch and genodiff: the latter is forgotten, and found again in its folder.
for name in [name for name in sys.modules if name.split(".")[0] == "genodiff"]:
    del sys.modules[name]
"""

STORY = """
# An editable installation finds what the copy lacks: without its finder the copy is all there is.
sys.meta_path[:] = [
    one for one in sys.meta_path if "editable" not in str(getattr(one, "__module__", "")).lower()
]
from genodiff.cli import main

def run(*words):
    try:
        main([*words, "--threads", "1", "-q"])
    except SystemExit as end:
        if end.code:
            sys.exit(f"genodiff {' '.join(words)}: exit {end.code}")

run("train", "g.fa", "--preset", "caduceus-ps-tiny", "--seq-len", "64", "--batch-size", "2",
    "--max-steps", "2", "--out", "run")
run("eval", "run", "--no-baselines", "--max-windows", "2")
run("sample", "run", "--fasta", "out.fa", "--n", "1", "--length", "40", "--steps", "4")
run("score", "run", "v.vcf", "--fasta", "g.fa", "--out", "scores.tsv")
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("genodiff.")}
print("wings that were imported:", *sorted(rooms & set(%r)))
"""


def test_without_the_wings_the_core_trains_evaluates_samples_and_scores(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "genodiff")  # what is compiled, too
    shutil.copytree(PACKAGE.parent / "data_recipes", tmp_path / "data_recipes")
    for wing in WINGS:
        shutil.rmtree(tmp_path / "genodiff" / wing)
    letters = "ACGTTGCATCAGGATTACAGCCTATCGGATCA" * 60
    (tmp_path / "g.fa").write_text("".join(f">c{i}\n{letters}\n" for i in range(4)))
    write_vcf(tmp_path / "v.vcf", ["c1 5 T C"])
    done = SERVER.run_code(ANEW + STORY % (WINGS,), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "wings that were imported:"
    assert (tmp_path / "out.fa").read_text().startswith(">")
    assert (tmp_path / "scores.tsv").exists()


HEART = {"alphabet", "backbones", "counter", "diffusion", "domain", "errors", "kernels", "registry",
         "settings", "version"}  # fmt: skip
"""Rooms that train, bound and sample by themselves, with four files of `io`."""
HEART_FILES = {
    "io", "io.diagnosis", "io.file_kinds", "io.process"
}  # fmt: skip
HEART_LINES = 12_000

HEART_STORY = """
from pathlib import Path

allowed, files = %r, %r

class Wall:
    def find_spec(self, name, path=None, target=None):
        room = name.removeprefix("genodiff.")
        if name.startswith("genodiff.") and room.split(".")[0] not in allowed and room not in files:
            raise ImportError(f"{name} is not of the heart")

sys.meta_path.insert(0, Wall())
import torch
from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.objective import Draws
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.sampler import SamplerOptions
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.confidence import confidence
from genodiff.diffusion.schedule import Linear

draw = torch.Generator().manual_seed(0)
uniforms = lambda *shape: torch.rand(*shape, generator=draw, dtype=torch.float64)
settings = CaduceusSettings(d_model=16, n_layer=1, d_state=4)
network = Caduceus(settings=settings, vocab_size=DNA.padded_size, complement=DNA.complement)
process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
objective = Mdlm(process)
bases = torch.tensor(DNA.targets)[torch.arange(32) %% 4].repeat(8, 1)
clean = Clean(bases, torch.ones(8, 32, dtype=torch.bool))
take = lambda: Draws(uniforms(8, 32), uniforms(8), 0.5, torch.arange(8), 8)
weights = list(network.parameters())
def bound():
    windows = objective.bound(network, clean, take())
    return float((windows.scale * windows.ce.sum(-1)).mean())
before = bound()
for _ in range(20):  # by signs of slopes: an optimizer of torch imports its compiler for seconds
    slopes = torch.autograd.grad(objective.loss(network, clean, take()).nats, weights)
    with torch.no_grad():
        torch._foreach_add_(weights, torch._foreach_sign(slopes), alpha=-1e-2)
assert bound() < 0.7 * before, (before, bound())
masks = torch.full((2, 32), DNA.mask_id)
for sampler in (ancestral, confidence):
    options = SamplerOptions(steps=8, u_order=uniforms(2, 32), u_token=uniforms(2, 32))
    with torch.no_grad():
        sampled = sampler(process, network, masks, options)
    assert set(sampled.x0.flatten().tolist()) <= set(DNA.targets)
loaded = [m for name, m in sys.modules.items() if name.split(".")[0] == "genodiff"]
print(sum(len(Path(m.__file__).read_text().splitlines()) for m in loaded if m.__file__))
"""


def test_the_heart_trains_bounds_and_samples_with_every_other_room_blocked():
    done = SERVER.run_code(ANEW + HEART_STORY % (HEART, HEART_FILES), cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= HEART_LINES


def test_architecture_names_every_room_once_and_each_room_has_a_page():
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text()
    assert len(text.encode()) <= 9_000
    drawn = dict(re.findall(r"^\| `(\w+)` \|.*\| (\w+) \|$", text, re.MULTILINE))
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    rooms = set(FLOOR) - modules - {"__init__"}
    assert drawn.keys() == rooms
    assert {room for room, part in drawn.items() if part == "wing"} == set(WINGS)
    for room in rooms:
        page = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
        assert page, room
        if room not in ("api", "cli", "hf", "laws"):
            values = re.findall(r"^    \S", page, re.MULTILINE)
            assert len(values) == 5, room
            assert re.search(r"^Read ", page, re.MULTILINE), room
