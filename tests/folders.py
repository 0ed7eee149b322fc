"""The project's own folder, and the shared one of real data, golden numbers and bad inputs."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GENODIFF_SHARED", ROOT.parent / "shared"))
