"""What a run folder holds. A part may be missing, broken or hostile.

A missing part is None (the page says which command makes it); a part that cannot be read becomes a
line of `troubles`. Nothing is computed here.
"""

import csv
import json
import math
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from genodiff.domain import DNA, TEXT, Domain
from genodiff.errors import CheckpointError, GenodiffError, printable
from genodiff.io.fasta import read_fasta
from genodiff.runs.config import RunConfig
from genodiff.settings import read_yaml

MOST_SAMPLES = 4096


class _Lenient(BaseModel):
    """Strict about the keys that the page needs, silent about all others."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Difference(_Lenient):
    """A paired difference in bits per base and its interval."""

    bits: float
    ci95: tuple[float, float] | None = None


class Group(_Lenient):
    """The scores of one contig or one region class."""

    tokens: int
    windows: int | None = None
    bits_per_base: float | None = None
    perplexity: float | None = None
    ci95_bits: tuple[float, float] | None = None
    markov_bits: dict[str, float | None] | None = None


class FittedMarkov(_Lenient):
    """The Markov line whose order and smoothing were fitted on the valid split."""

    order: int
    bits: float


class MarkovMixture(_Lenient):
    """The mixture of context orders, fitted on the valid split."""

    bits: float


class RatePoint(_Lenient):
    """One bin of the C_k / k curve, in nats."""

    rate_lo: float
    rate_hi: float
    nats: float | None = None
    se: float | None = None
    n: int = 0


class Evaluation(_Lenient):
    """One split of eval.json; see scoring/dna_evaluation.py for the meaning of each key.

    Of text (see scoring/text_evaluation.py) a byte stands where DNA has a base: all bits are per
    byte.
    """

    unit: str = "base"
    tokens_per_byte: float = 1.0
    token_perplexity: float | None = None
    split: str
    tokens: int
    bits_per_base: float
    perplexity: float
    ci95_bits: tuple[float, float] | None = None
    windows: int | None = None
    windows_total: int | None = None
    repeats: int | None = None
    checkpoint: str | None = None
    step: int | None = None
    mask_se_bits: float | None = None
    uniform_bits: float = 2.0
    markov_bits: dict[str, float | None] | None = None
    markov_fitted: FittedMarkov | None = None
    markov_mixture: MarkovMixture | None = None
    source_bits: float | None = None
    source_ci95_bits: tuple[float, float] | None = None
    model_minus_source_bits: Difference | None = None
    contigs: dict[str, Group | None] = {}
    regions: dict[str, Group | None] = {}
    repeat_kmer: int | None = None
    repeat_share: float | None = None
    dropped: dict[str, int] = {}
    curve: list[RatePoint] = []
    seconds: float | None = None

    def markov(self) -> dict[int, float]:
        """Markov orders and their bits per base."""
        return {
            int(k): b
            for k, b in sorted((self.markov_bits or {}).items(), key=lambda x: int(x[0]))
            if b is not None
        }

    def best_markov(self) -> tuple[str, float] | None:
        """The best Markov line of order 1 and more, fixed or fitted: its name and bits per base."""
        lines = [(bits, f"Markov {order}") for order, bits in self.markov().items() if order > 0]
        if self.markov_fitted is not None:
            lines.append((self.markov_fitted.bits, f"Markov {self.markov_fitted.order}, fitted"))
        if self.markov_mixture is not None:
            lines.append((self.markov_mixture.bits, "mixture of orders 1 to 24"))
        return (min(lines)[1], min(lines)[0]) if lines else None


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
    def evaluation(self) -> Evaluation | None:
        """The held-out test split; valid, or whatever there is, where test was not scored."""
        return (
            self.evaluations.get("test")
            or self.evaluations.get("valid")
            or next(iter(self.evaluations.values()), None)
        )


def read_folder(path: Path) -> RunParts:
    """The run at `path`.

    Raises `CheckpointError` where there is no run, that is no readable config.yaml.
    """
    if not path.is_dir():
        raise CheckpointError(
            "is not a run folder",
            file=path,
            fix="give the folder that `genodiff train` wrote, such as runs/demo",
        )
    if not (path / "config.yaml").is_file():
        raise CheckpointError(
            "holds no config.yaml", file=path, fix="give the folder that `genodiff train` wrote"
        )
    config = read_yaml(path / "config.yaml", error=CheckpointError)
    troubles: list[str] = []

    def json_part(name: str) -> dict[str, Any] | None:
        return _read_json(path / name, troubles)

    domain = _domain_of(config)
    return RunParts(
        path=path,
        config_text=(path / "config.yaml").read_text(encoding="utf-8-sig"),
        config=config if isinstance(config, dict) else {},
        settings=_settings(config, troubles),
        metrics=_read_metrics(path / "metrics.csv", troubles),
        evaluations=_read_evaluations(json_part("eval.json"), troubles),
        samples=_READ_SAMPLES[domain.name](path / domain.samples, troubles),
        sidecar=json_part(domain.sidecar),
        provenance=json_part("provenance.json"),
        model=json_part("model.json"),
        troubles=troubles,
    )


def _settings(config: Any, troubles: list[str]) -> RunConfig | None:
    try:
        return RunConfig.parse(config)
    except GenodiffError as fault:
        troubles.append(f"config.yaml is not a configuration of this genodiff: {fault.what}")
        return None


def _read_json(path: Path, troubles: list[str]) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as fault:
        troubles.append(f"{path.name} cannot be read: {printable(fault, 120)}")
        return None
    if not isinstance(value, dict):
        troubles.append(f"{path.name} holds no object")
        return None
    return value


def _read_evaluations(found: dict[str, Any] | None, troubles: list[str]) -> dict[str, Evaluation]:
    evaluations: dict[str, Evaluation] = {}
    for split, value in (found or {}).items():
        try:
            evaluations[split] = Evaluation.model_validate(_per_byte(value))
            evaluations[split].markov()
        except (ValidationError, ValueError) as fault:
            evaluations.pop(split, None)
            first = (
                fault.errors()[0]
                if isinstance(fault, ValidationError)
                else {"loc": ("markov_bits",), "msg": str(fault)}
            )
            where = ".".join(str(p) for p in first["loc"])
            troubles.append(
                f"eval.json, split {printable(split, 40)}: {printable(where, 60)}: "
                f"{printable(first['msg'], 80)}"
            )
    return evaluations


def _per_byte(value: Any) -> Any:
    """An evaluation of text with bytes in the place of bases."""
    if not isinstance(value, dict) or value.get("domain") != TEXT.name:
        return value
    size, tokens = value.get("bytes"), value.get("tokens")
    if not isinstance(size, int) or not isinstance(tokens, int) or size <= 0:
        return {}
    scale, bits = tokens / size, value.get("bits_per_byte")
    points = value.get("curve")
    curve = [
        p | {name: p[name] * scale for name in ("nats", "se") if isinstance(p.get(name), float)}
        for p in (points if isinstance(points, list) else [])
        if isinstance(p, dict)
    ]
    return value | {
        "unit": "byte", "tokens": size, "tokens_per_byte": scale,
        "token_perplexity": value.get("perplexity"), "curve": curve,
        "bits_per_base": bits, "perplexity": 2**bits if isinstance(bits,
        float) and bits < 1000 else None,
    }  # fmt: skip


def _read_metrics(path: Path, troubles: list[str]) -> dict[str, list[float]] | None:
    """Columns of metrics.csv as floats, NaN where a cell is empty.

    loss_hex is left out: it is not a decimal number.
    """
    if not path.is_file():
        return None
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = [r for r in csv.DictReader(stream) if r.get("step")]
        names = [n for n in (rows[0] if rows else {}) if n is not None and n != "loss_hex"]
        columns = {n: [_number(r.get(n)) for r in rows] for n in names}
    except (OSError, ValueError, csv.Error) as fault:
        troubles.append(f"metrics.csv cannot be read: {printable(fault, 120)}")
        return None
    return columns or None


def _number(cell: str | None) -> float:
    return float(cell) if cell and cell.strip() else math.nan


def _read_samples(path: Path, troubles: list[str]) -> list[SampleRecord] | None:
    if not path.is_file():
        return None
    try:
        found = [
            SampleRecord(r.name, r.description, r.sequence.decode("ascii"))
            for r in islice(read_fasta(path), MOST_SAMPLES)
        ]
    except GenodiffError as fault:
        troubles.append(f"{path.name} cannot be read: {fault}")
        return None
    return found


def _read_texts(path: Path, troubles: list[str]) -> list[SampleRecord] | None:
    """The texts of samples.txt, cut where its sidecar says."""
    if not path.is_file():
        return None
    try:
        raw, sidecar = (
            path.read_bytes(),
            json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8")),
        )
        records = sidecar["records"][:MOST_SAMPLES]
        parts = [
            (
                str(r["name"]),
                raw[int(r["start"]) : int(r["start"]) + int(r["bytes"])].decode(errors="replace"),
            )
            for r in records
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
        troubles.append(f"{path.name} cannot be read: {printable(fault, 120)}")
        return None
    return [SampleRecord(name, "", text) for name, text in parts]


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
