"""A model card (README.md) from `model.json`, `provenance.json` and `eval.json`."""

from pathlib import Path
from typing import Any

from genodiff.data.recipe import load_recipe
from genodiff.errors import GenodiffError, printable
from genodiff.runs.feed import OWN
from genodiff.runs.folder import PROVENANCE
from genodiff.runs.sealed_files import read_json
from genodiff.runs.trained_model import TrainedModel
from genodiff.version import __version__

_EVAL = "eval.json"
_UNKNOWN = "other"


def format_card(
    model: TrainedModel, layout: str, found: dict[str, Any], licence: str | None = None
) -> str:
    """The text of the model card, in Markdown.

    `found` is what the export wrote: tensors, rows, form. The card states what is not known.
    """
    source = model.data.get("source") if isinstance(model.data.get("source"), dict) else None
    parts = [
        format_front(licence),
        _what(model, layout, found),
        _load(layout, found),
        _data(model, source, licence),
        _memory(found),
        _training(model, source),
        _metrics(model),
        _limits(model, source),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def format_front(licence: str | None) -> str:
    """The head of a card, as hubs read it."""
    return "\n".join(
        [
            "---",
            f"license: {licence or _UNKNOWN}",
            "tags:",
            *(f"- {t}" for t in ("biology", "genomics", "dna", "masked-diffusion")),
            "---",
        ]
    )


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
    return f"# {printable(model.run.resolve().name)}\n\n| | |\n|---|---|\n" + "\n".join(
        f"| {k} | {v} |" for k, v in rows.items()
    )


def _load(layout: str, found: dict[str, Any]) -> str:
    if layout == "safetensors":
        return (
            "## Use\n\n```python\nfrom genodiff.runs.model import load_model\n\nmodel = "
            'load_model("THIS_FOLDER")\n```'
        )
    imported = "```console\ngenodiff checkpoint import THIS_FOLDER --out runs/mine\n```"
    lines = [
        "## Use",
        "",
        "With transformers, on any machine (`pip install 'genodiff[hf]'`; this folder holds no "
        "code). The import comes first: without it transformers does not know these classes, and "
        'may ask for "sentencepiece or tiktoken".',
        "",
        "```python",
        "import genodiff.hf",
        "from transformers import AutoModelForMaskedLM",
        "",
        'model = AutoModelForMaskedLM.from_pretrained("THIS_FOLDER")',
        "```",
        "",
        "With genodiff:",
        "",
        imported,
    ]
    if "architecture" in found:
        lines += [
            "",
            "With the classes of the Caduceus repository: "
            f"`{found['architecture']}.from_pretrained(THIS_FOLDER)`.",
        ]
    return "\n".join(lines)


def _data(model: TrainedModel, source: dict[str, Any] | None, licence: str | None) -> str:
    lines = ["## Data and licence", ""]
    if source is not None:
        named = (f"{printable(f['name'])} (sha256 {f['sha256'][:12]})" for f in source["files"])
        files = ", ".join(named)
        lines.append(
            f"Imported from published weights: {files}. See their publisher for the data that "
            f"they were trained on."
        )
    else:
        is_own = model.config.recipe == OWN
        name = "the user's own FASTA file" if is_own else f"recipe {printable(model.config.recipe)}"
        fingerprint = str(model.data.get("fingerprint"))[:12]
        lines.append(
            f"Trained on {name}, windows of {model.config.data.seq_len:,} bases. Fingerprint of "
            f"content and splits: {fingerprint}."
        )
        lines += [f"Source: {s.url} (licence: {printable(s.licence)})." for s in _sources(model)]
    unknown = "The licence of these weights was not stated at export."
    lines.append(f"Licence of these weights: {licence}." if licence else unknown)
    return "\n".join(lines)


def _memory(found: dict[str, Any]) -> str:
    if "memory" not in found:
        return ""
    kept = found["memory"]
    return (
        "## Memory\n\n"
        f"`memory/` holds the train split itself, {kept['bases']:,} bases at 2 bits each "
        f"({kept['bytes']:,} bytes, fingerprint {kept['fingerprint'][:12]}). With "
        '`genodiff.load("THIS_FOLDER", memory="on")` and `--memory on` it is part of the model. '
        "Anyone who has this folder has that sequence; its licence is that of the genome."
    )


def _sources(model: TrainedModel) -> list[Any]:
    if model.config.recipe == OWN:
        return []
    try:
        return list(load_recipe(model.config.recipe).sources)
    except GenodiffError:
        return []


def _training(model: TrainedModel, source: dict[str, Any] | None) -> str:
    if source is not None:
        return ""
    c = model.config
    lines = [
        "## Training",
        "",
        f"{model.step:,} steps of {c.train.batch_size} windows, {c.diffusion.schedule} "
        f"schedule, AdamW lr {c.optim.lr}, "
        f"weights averaged with decay {c.optim.ema_decay}, precision {c.train.precision}, "
        f"seed {c.seed}.",
    ]
    start = getattr(c, "init_sha256", None)
    if start:
        lines.append(f"Started from published or earlier weights (sha256 {start[:12]}).")
    sessions = _json(model.run / PROVENANCE).get("sessions") or []
    places = {
        printable(f"{s.get('device')}, torch {(s.get('versions') or {}).get('torch')}", 80)
        for s in sessions
        if isinstance(s, dict)
    }
    if places:
        lines.append(f"Hardware: {'; '.join(sorted(places))}.")
    return "\n".join(lines)


def _metrics(model: TrainedModel) -> str:
    rows = []
    for name, e in _json(model.run / _EVAL).items():
        if not isinstance(e, dict) or e.get("checkpoint") != model.digest:
            continue
        try:
            rows.append(f"| {' | '.join(_cells(name, e))} |")
        except (KeyError, TypeError, ValueError):
            continue
    if not rows:
        return (
            "## Metrics\n\nNot measured: run `genodiff eval` before `genodiff checkpoint export`."
        )
    names = [
        "split",
        "bits per base (upper bound)",
        "95 % interval",
        "perplexity",
        "best Markov line",
        "bases",
        "seed",
    ]
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    return "## Metrics\n\n" + "\n".join([head, *rows])


def _cells(name: str, e: dict[str, Any]) -> list[str]:
    ends, lines = e.get("ci95_bits"), e.get("markov_bits") or {}
    interval = f"{ends[0]:.4f} – {ends[1]:.4f}" if ends else ""
    best = f"{min(lines.values()):.4f}" if lines else ""
    return [
        printable(name),
        f"{e['bits_per_base']:.4f}",
        interval,
        f"{e['perplexity']:.4f}",
        best,
        f"{e['tokens']:,}",
        str(e["seed"]),
    ]


def _limits(model: TrainedModel, source: dict[str, Any] | None) -> str:
    lines = [
        "## Limits",
        "",
        f"- Trained or set up for windows of {model.config.data.seq_len:,} bases; longer ones "
        f"were not measured.",
        "- A likelihood says nothing about function, fitness or disease. Not for clinical use.",
        "- Generated DNA has not been tested for function or safety.",
        "- It was trained on genomes of few individuals and species. Expect more bits per base on "
        "other genomes.",
    ]
    if source is not None:
        lines.append(
            "- Weights trained only by masked-language modelling are not calibrated at the high "
            "mask rates of masked diffusion."
        )
    return "\n".join(lines)


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except GenodiffError:
        return {}
