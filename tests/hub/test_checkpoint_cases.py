"""The shared corpus of bad checkpoints (prefix K): every wrong one is refused with its file, the
reason and a remedy, and runs nothing.

Its good ones are of a layout that stands for any tool's own, so they are not ours to accept; what
they test is tested on runs of ours.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from folders import SHARED

from tests.commands import exit_code

CORPUS = SHARED / "badinput"
VERBS = {
    "ckpt-load": "checkpoint import {file} --out imported --threads 1",
    "resume": "train --resume {file} --threads 1",
    "sample": "sample --checkpoint {file} --fasta out.fa --n 1 --length 64 --threads 1",
    "train-config": "config check {file}",
}


def cases() -> list[dict[str, Any]]:
    if not (CORPUS / "cases.json").is_file():
        return []
    found = json.loads((CORPUS / "cases.json").read_text())
    wrong = [c for c in found if c["group"] == "ckpt" and c["expected"] != "accept" and c["dir"]]
    return [c for c in wrong if (CORPUS / c["dir"]).is_dir()]


@pytest.mark.parametrize("case", cases() or [None], ids=lambda c: c and f"{c['id']}_{c['slug']}")
def test_a_wrong_checkpoint_is_refused_by_name(case, tmp_path, monkeypatch, capsys):
    if case is None:
        pytest.skip("no shared folder here (set GENODIFF_SHARED)")
    folder = tmp_path / "case"
    shutil.copytree(CORPUS / case["dir"], folder, symlinks=True)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    if case["prepare"]:
        subprocess.run(["bash", "-c", case["prepare"]], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    before = sorted(str(p) for p in folder.rglob("*"))
    code = exit_code(*VERBS[case["command_class"]].format(file=case["target"]).split())
    said = capsys.readouterr().err
    assert 2 <= code <= 5
    assert "Traceback" not in said
    assert sorted(str(p) for p in folder.rglob("*")) == before
    if case["expected"] == "reject":
        names = case["message_must_name"] or [Path(case["target"]).name]
        assert all(name.lower() in said.lower() for name in names)
        assert re.search(case["locus"] or "", said, re.IGNORECASE)
        assert re.search(case["remedy"] or "", said, re.IGNORECASE)
        assert said.count("genodiff: error: ") == 1
        assert "; " in said.splitlines()[-1]
