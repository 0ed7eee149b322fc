"""A unit of a sweep: one (task, model, setting, seed), with a folder and a row of its own.

UNITS/KEY/state.safetensors    where the fit is, while it runs
UNITS/KEY/model.safetensors    the weights of its best epoch, network and head
UNITS/KEY/fitted.json          what the fit found on the validation part
UNITS/KEY/test.safetensors     the predictions for the test part, and the truth
UNITS/KEY/predictor.json       what prediction needs beside the weights, with README.md
UNITS/KEY/result.json          the row, and the history of the epochs: written last
"""

from pathlib import Path
from typing import Any

from pydantic import Field

from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.unit_files import PREDICTOR as PREDICTOR
from genodiff.finetuning.unit_files import RESULT as RESULT
from genodiff.finetuning.unit_files import UNITS as UNITS
from genodiff.io.file_kinds import sha256_json
from genodiff.settings import Settings

MODEL, FITTED, TEST = "model.safetensors", "fitted.json", "test.safetensors"
README = "README.md"


class Unit(Settings):
    """What one unit is. `data` is the digest of the examples; `setting` names `settings`.

    `choices` says how validation chose the settings, and `choice_seconds` how long that took.
    `seen` says what pretraining saw of the test part, and what was left out of it.
    """

    suite: str
    task: str
    split: str
    data: str
    model: ModelSpec
    settings: FitSettings
    setting: str = "paper"
    seed: int
    choices: list[dict[str, Any]] = Field(default_factory=list)
    choice_seconds: float = 0.0
    seen: dict[str, Any] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        """16 hex digits: the hash of everything that decides the unit's value."""
        names = ("suite", "task", "split", "data", "seed")
        what: dict[str, Any] = {name: getattr(self, name) for name in names}
        what |= {"kind": self.model.kind, "digest": self.model.digest}
        if self.model.kind == "baseline":
            what["baseline"] = self.model.preset
        else:
            what["settings"] = self.settings.model_dump(mode="json")
            what["settings"]["probe_c"] = [0.01, 0.1, 1.0, 10.0]  # that older units had, too
            if self.settings.parts == 1:
                del what["settings"]["parts"]  # older units had no parts and keep their key
            if self.settings.head in ("mean", "parts"):
                del what["settings"]["head"]  # which the number of parts says
            if self.settings.shift == 0:
                del what["settings"]["shift"]
        return sha256_json(what)[:16]

    def tell_choice(self) -> dict[str, Any]:
        """`choices` and `choice_seconds`, as rows have them; nothing where nothing was chosen."""
        if not self.choices:
            return {}
        return {"choices": self.choices, "choice_seconds": self.choice_seconds}

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.task} {self.model.name} seed {self.seed}"

    @property
    def method(self) -> str:
        """full, frozen or baseline."""
        return "baseline" if self.model.kind == "baseline" else self.settings.method

    def folder(self, out: Path) -> Path:
        """The unit's own folder inside a sweep's folder."""
        return out / UNITS / self.key
