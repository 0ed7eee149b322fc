"""What is known of a ready model is said from its files alone: card, lines, laws that are met."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import genodiff
from genodiff.api.models import describe_model, format_facts
from genodiff.hub.model_card import format_front
from tests.commands import succeed
from tests.tiny_run import write_run

ROOT = Path(__file__).resolve().parents[2]
CELLS = {
    "network alone": [[1.9301, 1.9272, 1.9330]],
    "counting, order 8": [[1.9382]],
    "a": [[0.1, -0.1, 0.3], [0.2, 0.1, 0.3]],
    "b": [[-0.4, -0.5, -0.3], None],
}
ROWS = [{"name": name, "cells": cells} for name, cells in CELLS.items()]
TABLES: list[dict[str, Any]] = [
    {"title": "Bits per base", "note": "All windows.", "columns": ["bits"], "rows": ROWS[:2]},
    {"title": "Laws", "note": "", "law": True, "columns": ["alone", "relatives"], "rows": ROWS[2:]},
]


@pytest.fixture
def told(tmp_path):
    folder = tmp_path / "models" / "tiny"
    genodiff.export_checkpoint(write_run(tmp_path), out=folder, format="safetensors", half=True)
    made_by = {"commands": ["genodiff train toy"], "seconds": 61, "device": "x86_64", "threads": 1}
    facts = {"about": "A toy.", "licence": "Apache-2.0", "tables": TABLES, "limits": ["All."]}
    (folder / "facts.json").write_text(json.dumps(facts | {"made_by": made_by}))
    return describe_model("tiny", folder)


def test_the_card_has_every_figure_of_the_facts(told):
    card = format_facts(told)
    assert "| network alone | 1.930 [1.927, 1.933] |" in card
    assert "| counting, order 8 | 1.938 |" in card
    assert "| a | 0.100 [-0.100, 0.300] | **0.200 [0.100, 0.300]** |" in card
    assert "| passed | 0 of 2 | 1 of 1 |" in card
    assert "- seconds of training: 61" in card
    assert told["folder"] not in card
    weights = genodiff.load(told["folder"]).trained.backbone.parameters()
    assert f"{sum(p.numel() for p in weights):,}" in card
    assert "no facts.json" in format_facts(told | {"facts": {}})


def test_models_show_prints_the_card(told, monkeypatch, capsys):
    monkeypatch.setenv("GENODIFF_MODELS", str(Path(told["folder"]).parent))
    out = succeed(capsys, "models", "show", "tiny")
    assert out == format_facts(told)


@pytest.fixture(scope="module")
def make():
    for name in ("models", ""):
        sys.path.insert(0, str(ROOT / "benchmarks" / name))
    spec = importlib.util.spec_from_file_location("make", ROOT / "benchmarks/models/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_card_is_compared_with_what_is_measured_again(make):
    again = json.loads(json.dumps(TABLES))
    assert make.compare(TABLES, again) == []
    again[0]["rows"][0]["cells"][0] = [1.9329, 1.93, 1.94]  # within the interval
    again[0]["rows"][1]["cells"][0] = [1.9389]  # apart by more than rounding
    again[1]["rows"][1]["cells"][0] = [0.1, 0.0, 0.2]
    del again[1]["rows"][0]
    faults = make.compare(TABLES, again)
    assert [fault.split(":")[0] for fault in faults] == [
        "Bits per base, counting, order 8, bits",
        "Laws, a, alone",
        "Laws, a, relatives",
        "Laws, b, alone",
    ]


def test_every_packaged_model_has_the_card_of_its_facts():
    folders = [path.parent for path in (ROOT / "genodiff/models").glob("*/model.json")]
    for folder in folders:
        told = describe_model(folder.name, folder)
        assert told["facts"]["tables"], folder
        assert sum(path.stat().st_size for path in folder.iterdir()) < 2e6
        head = format_front(told["facts"]["licence"])
        assert (folder / "README.md").read_text() == f"{head}\n\n{format_facts(told)}"
