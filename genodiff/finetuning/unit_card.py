"""The model card (README.md) of a fine-tuned model that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genodiff.domain import DOMAINS
from genodiff.errors import printable
from genodiff.finetuning.choosing import describe_choice
from genodiff.tasks.contamination import describe_contamination, describe_left_out
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.finetuning.predictor_files import PredictorCard

_TAGS = {"dna": ("biology", "genomics", "dna"), "text": ("text",)}
_STRANDS = {
    "conjoin": "both, read together; their scores are averaged",
    "average": "both, read apart; their scores are averaged",
    "augment": "the given one; training showed both",
    "none": "the given one",
}


def format_card(card: PredictorCard) -> str:
    """The text of the card, in Markdown."""
    parts = [_front(card), _what(card), _use(card), _data(card), _metrics(card), _limits(card)]
    return "\n\n".join(parts) + "\n"


def _front(card: PredictorCard) -> str:
    tags = [f"- {tag}" for tag in (*_TAGS[card.domain], "sequence-classification")]
    return "\n".join(["---", "license: other", "tags:", *tags, "---"])


def _what(card: PredictorCard) -> str:
    unit, unit_of_length = card.unit, DOMAINS[card.domain].units
    rows = {
        "task": f"{unit.suite} {unit.task}, split {unit.split}",
        "answers": ", ".join(card.classes) if card.classes else "a value",
        "kind": card.kind,
        "model": f"{unit.model} ({unit.method}), seed {unit.seed}",
        "sequences": f"the first {card.max_length:,} {unit_of_length} are read",
    }
    if card.settings is not None:
        rows["strands"] = _STRANDS.get(card.settings.rc, card.settings.rc)
    if card.network is not None:
        net = card.network.settings
        rows["network"] = f"{net.kind}, {net.d_model} wide, {net.n_layer} layers"
    if card.settings is not None:
        parts = card.settings.parts
        rows["head"] = card.settings.head + (f" ({parts} stretches)" if parts > 1 else "")
    rows |= {f"choice of {c['of']}": describe_choice(c) for c in card.choices}
    if card.pretraining.get("pretrained_on"):
        about = card.pretraining
        rows["pre-trained on"] = f"{about['pretrained_on']} ({about['checkpoint']})"
    if card.settings is not None and card.settings.adapt:
        rows["adapted"] = f"{card.settings.adapt:,} steps on the train sequences, without labels"
    rows["weights"] = f"{card.weights_sha256[:12]} (first 12 hex digits of their sha256)"
    rows["written by"] = f"genodiff {__version__}"
    lines = "\n".join(f"| {key} | {printable(value)} |" for key, value in rows.items())
    return f"# {printable(unit.task)}: {printable(unit.model)}\n\n| | |\n|---|---|\n{lines}"


def _use(card: PredictorCard) -> str:
    given = "sequences.fa" if card.domain == "dna" else "sentences.csv"
    example = '["ACGT...", "GATT..."]' if card.domain == "dna" else '["A sentence."]'
    return (
        f"## Use\n\n```console\ngenodiff predict THIS_FOLDER {given} --out predictions.csv\n```\n\n"
        '```python\nimport genodiff\n\nmodel = genodiff.load("THIS_FOLDER")\n'
        f"model.predict({example})\n```"
    )


def _data(card: PredictorCard) -> str:
    lines = [
        f"{card.n_train:,} sequences trained it, and {card.n_valid:,} others chose the epoch "
        f"(digest of the data: {card.unit.data}).",
        *(f"Note: {printable(note)}." for note in card.notes),
    ]
    if card.licence:
        lines.append(f"Licence of the data: {printable(card.licence)}.")
    if card.source:
        lines.append(f"Source: {printable(card.source)}.")
    return "## Data\n\n" + "\n".join(lines)


def _metrics(card: PredictorCard) -> str:
    rows = [f"| validation | {card.metric} | {_number(card.valid)} | {card.n_valid:,} |"]
    rows += [
        f"| test | {name} | {_number(value)} | {card.n_test:,} |"
        for name, value in card.test.items()
    ]
    text = "## Metrics\n\n| part | metric | value | examples |\n|---|---|---|---|\n"
    text += "\n".join(rows)
    if card.ci95 is not None:
        low, high = card.ci95
        text += f"\n\n95 % interval of the test {card.metric}: {low:.4f} to {high:.4f}."
    text += "".join(f"\n\n{printable(line[0].upper() + line[1:])}." for line in _tell_seen(card))
    return text if card.test else f"{text}\n\nThese weights were not scored on the test part."


def _tell_seen(card: PredictorCard) -> list[str]:
    """What pretraining saw of the test part, and what was left out of it: a sentence each."""
    found = []
    if "left_out" in card.seen:
        found.append(describe_left_out(card.seen["left_out"]))
    if "pretraining" in card.seen:
        found.append(describe_contamination(card.unit.model, card.seen["pretraining"]))
    return found


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4f}"


def _limits(card: PredictorCard) -> str:
    lines = [
        "- Probabilities are as calibrated as the fit left them; nothing was recalibrated.",
        "- Sequences unlike the train part get an answer too, with no warning.",
    ]
    if card.domain == "dna":
        lines.append("- Not for clinical use.")
    return "## Limits\n\n" + "\n".join(lines)
