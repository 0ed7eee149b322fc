"""Names of pieces are read without importing them, and are those that are registered."""

import json
import subprocess
import sys

CODE = """
import json, sys
from genodiff.backbones.settings import BACKBONES, PRESETS
from genodiff.diffusion.registries import OBJECTIVES, SAMPLERS, SCHEDULES
from genodiff.maps.track_format import FORMATS
registries = [BACKBONES, PRESETS, OBJECTIVES, SAMPLERS, SCHEDULES, FORMATS]
light = [r.list_names() for r in registries[2:]] + [list(r) for r in registries[:2]]
heavy = [m for m in ("torch", "numpy", "jaxtyping") if m in sys.modules]
from genodiff.scoring.methods import SCORE_METHODS  # of these, numpy is loaded
light.append(SCORE_METHODS.list_names())
heavy += [m for m in ("torch", "scipy", "polars") if m in sys.modules]
full = [list(r) for r in [*registries[2:], *registries[:2], SCORE_METHODS]]
print(json.dumps([light, full, heavy]))
"""


def test_names_are_known_before_torch_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120
    )
    light, full, heavy = json.loads(done.stdout)
    assert heavy == []
    assert [sorted(names) for names in light] == [sorted(names) for names in full]
    assert all(full)
