"""What a run folder holds. A part may be missing, broken or hostile.

A missing part is None (the page says which command makes it); a part that cannot be read becomes a
line of `troubles`. Nothing is computed here.
"""

import csv
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from genodiff.domain import DNA, TEXT, Domain
from genodiff.errors import CheckpointError, GenodiffError, printable
from genodiff.io.fasta import read_fasta
from genodiff.reports.evaluation import Evaluation, parse_evaluations
from genodiff.runs.config import RunConfig
from genodiff.settings import read_yaml

MOST_SAMPLES = 4096


class SampleRecord(NamedTuple):
    """One generated record."""

    name: str
    description: str
    sequence: str


@dataclass(frozen=True)
class RunParts:
    """The parts of a run folder that the report shows."""

    path: Path
    config_text: str
    config: dict[str, Any]
    settings: RunConfig | None = None  # `config` as this genodiff understands it
    metrics: dict[str, list[float]] | None = None
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    samples: list[SampleRecord] | None = None
    sidecar: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None
    model: dict[str, Any] | None = None
    troubles: list[str] = field(default_factory=list)

    @property
    def domain(self) -> Domain:
        """DNA or text."""
        return _domain_of(self.config)

    @property
    def weights(self) -> str:
        """The digest of the model in the folder; empty where it is not known."""
        return str((self.model or {}).get("weights_sha256") or "")

    def is_own(self, name: str) -> bool:
        """Whether the evaluation `name` is of the data and splits that the run was trained on."""
        data = (self.provenance or {}).get("data")
        trained_on = data.get("fingerprint") if isinstance(data, dict) else None
        scored = self.evaluations[name].fingerprint
        if trained_on is None or scored is None:
            return " of " not in name.split(",")[0]  # as evaluations were named before
        return bool(scored == trained_on)

    @property
    def headline(self) -> str | None:
        """The name of the fullest evaluation of the run's own test split; None without one."""
        return max(self._of_test(), key=self._rank, default=None)

    @property
    def with_memory(self) -> Evaluation | None:
        """The fullest evaluation of the run's own test split with a memory; None without one."""
        own = [name for name in self._of_test() if self.evaluations[name].memory is not None]
        best = max(own, key=self._rank, default=None)
        return None if best is None else self.evaluations[best]

    def _of_test(self) -> list[str]:
        return [n for n, e in self.evaluations.items() if e.split == "test" and self.is_own(n)]

    def _rank(self, name: str) -> tuple[Any, ...]:
        return self.evaluations[name].rank(self.weights)

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation that the page's headline is of."""
        return None if self.headline is None else self.evaluations[self.headline]


def read_folder(path: Path, samples: Path | None = None) -> RunParts:
    """The run at `path`.

    `samples` is a file of samples in place of the folder's own. Raises `CheckpointError` where
    there is no run, that is no readable config.yaml.
    """
    fix = "give the folder that `genodiff train` wrote"
    if not path.is_dir():
        raise CheckpointError("is not a run folder", file=path, fix=f"{fix}, such as runs/demo")
    if not (path / "config.yaml").is_file():
        raise CheckpointError("holds no config.yaml", file=path, fix=fix)
    config = read_yaml(path / "config.yaml", error=CheckpointError)
    troubles: list[str] = []
    domain = _domain_of(config)
    understood: RunConfig | None = None
    try:
        understood = RunConfig.parse(config)
    except GenodiffError as fault:
        troubles.append(f"config.yaml is not a configuration of this genodiff: {fault.what}")
    drawn = path / domain.samples if samples is None else samples
    return RunParts(
        path=path,
        config_text=(path / "config.yaml").read_text(encoding="utf-8-sig"),
        config=config if isinstance(config, dict) else {},
        settings=understood,
        metrics=_read_part(path / "metrics.csv", _read_metrics, troubles),
        evaluations=parse_evaluations(_read_json(path / "eval.json", troubles), troubles),
        samples=_read_part(drawn, _READ_SAMPLES[domain.name], troubles),
        sidecar=_read_json(drawn.with_name(f"{drawn.name}.json"), troubles),
        provenance=_read_json(path / "provenance.json", troubles),
        model=_read_json(path / "model.json", troubles),
        troubles=troubles,
    )


def _read_part(path: Path, read: Callable[[Path], Any], troubles: list[str]) -> Any:
    """What `read` makes of a file; None where it is missing, or cannot be read: a trouble."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except GenodiffError as fault:
        troubles.append(f"{path.name} cannot be read: {fault}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError, csv.Error) as fault:
        troubles.append(f"{path.name} cannot be read: {printable(fault, 120)}")
    return None


def _load_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read_json(path: Path, troubles: list[str]) -> dict[str, Any] | None:
    value = _read_part(path, lambda path: [_load_json(path)], troubles)
    if value is not None and not isinstance(value[0], dict):
        troubles.append(f"{path.name} contains no object")
        return None
    return value and value[0]


def _read_metrics(path: Path) -> dict[str, list[float]] | None:
    """Columns of metrics.csv as floats, NaN where a cell is empty.

    loss_hex is left out: it is not a decimal number.
    """
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [r for r in csv.DictReader(stream) if r.get("step")]
    names = [n for n in (rows[0] if rows else {}) if n is not None and n != "loss_hex"]
    cells = {n: [(r.get(n) or "").strip() for r in rows] for n in names}
    return {n: [float(x) if x else math.nan for x in column] for n, column in cells.items()} or None


def _read_samples(path: Path) -> list[SampleRecord]:
    return [
        SampleRecord(r.name, r.description, r.sequence.decode("ascii"))
        for r in islice(read_fasta(path), MOST_SAMPLES)
    ]


def _read_texts(path: Path) -> list[SampleRecord]:
    """The texts of samples.txt, cut where its sidecar says."""
    raw, found = path.read_bytes(), []
    for record in _load_json(path.with_name(f"{path.name}.json"))["records"][:MOST_SAMPLES]:
        name, start, size = str(record["name"]), int(record["start"]), int(record["bytes"])
        text = raw[start : start + size].decode(errors="replace")
        found.append(SampleRecord(name, "", text))
    return found


_READ_SAMPLES = {DNA.name: _read_samples, TEXT.name: _read_texts}


def _domain_of(config: Any) -> Domain:
    is_text = isinstance(config, dict) and config.get("domain") == TEXT.name
    return TEXT if is_text else DNA


def dump(value: object) -> str:
    """`value` as short YAML text for a table cell."""
    if isinstance(value, str | int | float) or value is None:
        return "" if value is None else str(value)
    return yaml.safe_dump(
        value, default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False
    ).strip()
