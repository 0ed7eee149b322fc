"""A model card (README.md) from `model.json`, `provenance.json` and `eval.json`."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from genodiff.data.recipe import load_recipe
from genodiff.errors import GenodiffError, printable
from genodiff.runs.feed import OWN
from genodiff.runs.folder import PROVENANCE
from genodiff.runs.sealed_files import read_json
from genodiff.runs.trained_model import TrainedModel
from genodiff.version import __version__

_FRONT = """---
license: {}
tags:
- biology
- genomics
- dna
- masked-diffusion
---"""
_USE_OURS = """## Use

```python
from genodiff.runs.model import load_model

model = load_model("THIS_FOLDER")
```"""
_USE_PUBLISHED = """## Use

With transformers, on any machine (`pip install 'genodiff[hf]'`; this folder holds no code). The \
import comes first: without it transformers does not know these classes, and may ask for \
"sentencepiece or tiktoken".

```python
import genodiff.hf
from transformers import AutoModelForMaskedLM

model = AutoModelForMaskedLM.from_pretrained("THIS_FOLDER")
```

With genodiff:

```console
genodiff checkpoint import THIS_FOLDER --out runs/mine
```"""
_USE_THEIRS = """

With the classes of the Caduceus repository: `{}.from_pretrained(THIS_FOLDER)`."""
_NOT_MEASURED = "Not measured: run `genodiff eval` before `genodiff checkpoint export`."
_COLUMNS = (
    "split", "bits per base (upper bound)", "95 % interval", "perplexity", "best Markov line",
    "bases", "seed",
)  # fmt: skip
_LIMITS = """## Limits

- Trained or set up for windows of {:,} bases; longer ones were not measured.
- A likelihood says nothing about function, fitness or disease. Not for clinical use.
- Generated DNA has not been tested for function or safety.
- It was trained on genomes of few individuals and species. Expect more bits per base on other \
genomes."""
_NOT_CALIBRATED = """
- Weights trained only by masked-language modelling are not calibrated at the high mask rates of \
masked diffusion."""


def format_card(
    model: TrainedModel, layout: str, found: dict[str, Any], licence: str | None = None
) -> str:
    """The text of the model card, in Markdown.

    `found` is what the export wrote: tensors, rows, form. The card states what is not known.
    """
    source = model.data.get("source")
    source = source if isinstance(source, dict) else None
    use = _USE_OURS if layout == "safetensors" else _USE_PUBLISHED
    if layout != "safetensors" and "architecture" in found:
        use += _USE_THEIRS.format(found["architecture"])
    limits = _LIMITS.format(model.config.data.seq_len) + ("" if source is None else _NOT_CALIBRATED)
    parts = [format_front(licence), _what(model, layout, found), use]
    parts += [_data(model, source, licence), *([_training(model)] if source is None else [])]
    return "\n\n".join([*parts, _metrics(model), limits]) + "\n"


def format_front(licence: str | None) -> str:
    """The head of a card, as hubs read it."""
    return _FRONT.format(licence or "other")


def _what(model: TrainedModel, layout: str, found: dict[str, Any]) -> str:
    net = model.config.backbone
    size = sum(p.numel() for p in model.backbone.parameters())
    rows = {
        "network": f"{net.kind}, {net.d_model} wide, {net.n_layer} layers",
        "parameters": f"{size:,}",
        "strands": getattr(net, "strands", "single"),
        "vocabulary": f"{model.alphabet.name}, "
        f"{found.get('rows', model.alphabet.padded_size)} rows",
        "objective": model.config.diffusion.objective,
        "step": f"{model.step:,}",
        "weights": f"{model.digest} (first 12 hex digits of the sha256 of the run's weights)",
        "written by": f"genodiff {__version__}, layout {layout}",
    }
    if "fused" in found:
        rows["fused_add_norm"] = (
            f"{str(found['fused']).lower()} (the other value makes a network of both strands "
            f"compute a different function)"
        )
    lines = [f"| {key} | {value} |" for key, value in rows.items()]
    return "\n".join([f"# {printable(model.run.resolve().name)}\n\n| | |\n|---|---|", *lines])


def _data(model: TrainedModel, source: dict[str, Any] | None, licence: str | None) -> str:
    config, lines = model.config, ["## Data and licence", ""]
    if source is not None:
        named = (f"{printable(f['name'])} (sha256 {f['sha256'][:12]})" for f in source["files"])
        lines.append(
            f"Imported from published weights: {', '.join(named)}. See their publisher for the "
            f"data that they were trained on."
        )
    else:
        is_own = config.recipe == OWN
        name = "the user's own FASTA file" if is_own else f"recipe {printable(config.recipe)}"
        fingerprint = str(model.data.get("fingerprint"))[:12]
        lines.append(
            f"Trained on {name}, windows of {config.data.seq_len:,} bases. Fingerprint of "
            f"content and splits: {fingerprint}."
        )
        try:
            sources = () if is_own else load_recipe(config.recipe).sources
        except GenodiffError:
            sources = ()
        lines += [f"Source: {s.url} (licence: {printable(s.licence)})." for s in sources]
    unknown = "The licence of these weights was not stated at export."
    lines.append(f"Licence of these weights: {licence}." if licence else unknown)
    return "\n".join(lines)


def _training(model: TrainedModel) -> str:
    c = model.config
    lines = [
        f"## Training\n\n{model.step:,} steps of {c.train.batch_size} windows, "
        f"{c.diffusion.schedule} schedule, AdamW lr {c.optim.lr}, "
        f"weights averaged with decay {c.optim.ema_decay}, precision {c.train.precision}, "
        f"seed {c.seed}."
    ]
    if c.init_sha256:
        lines.append(f"Started from published or earlier weights (sha256 {c.init_sha256[:12]}).")
    places = {
        printable(f"{s.get('device')}, torch {(s.get('versions') or {}).get('torch')}", 80)
        for s in _json(model.run / PROVENANCE).get("sessions") or []
        if isinstance(s, dict)
    }
    if places:
        lines.append(f"Hardware: {'; '.join(sorted(places))}.")
    return "\n".join(lines)


def _metrics(model: TrainedModel) -> str:
    rows = []
    for name, e in _json(model.run / "eval.json").items():
        if not isinstance(e, dict) or e.get("checkpoint") != model.digest:
            continue
        with suppress(KeyError, TypeError, ValueError):  # of text, or of another version
            ends, lines = e.get("ci95_bits"), e.get("markov_bits") or {}
            interval = f"{ends[0]:.4f} – {ends[1]:.4f}" if ends else ""
            best = f"{min(lines.values()):.4f}" if lines else ""
            rows.append(
                f"| {printable(name)} | {e['bits_per_base']:.4f} | {interval} | "
                f"{e['perplexity']:.4f} | {best} | {e['tokens']:,} | {e['seed']} |"
            )
    head = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|"
    return "## Metrics\n\n" + ("\n".join([head, *rows]) if rows else _NOT_MEASURED)


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except GenodiffError:
        return {}
