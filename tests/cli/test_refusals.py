"""What a command line cannot mean, and what the shared corpus of bad inputs holds, is one line."""

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from genodiff.design.design_drawing import DesignDrawing
from tests.cli.refused_words import REFUSED
from tests.cli.test_score_cli import fake
from tests.commands import check_refused, command
from tests.tiny_run import write_run


@pytest.fixture(scope="module")
def uniform_run(tmp_path_factory):
    """An untrained network of uniform noise."""
    return write_run(tmp_path_factory.mktemp("uniform"), diffusion={"objective": "uniform"})


CASES = [(name, *row) for name, table in REFUSED.items() for row in table.list_rows()]


@pytest.mark.parametrize(
    ("name", "words", "code", "said"), CASES, ids=[" ".join(case[1])[:90] for case in CASES]
)
def test_what_cannot_be_meant_is_one_line_and_changes_nothing(
    name, words, code, said, run, text_run, uniform_run, here, monkeypatch, capsys
):
    monkeypatch.setattr(DesignDrawing, "draw", lambda *_, **__: pytest.fail("evaluated"))
    for file, text in REFUSED[name].files.items():
        path = here / file
        (path if file.endswith("/") else path.parent).mkdir(exist_ok=True)
        if not file.endswith("/"):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    places = {"RUN": run, "TEXT": text_run, "UNIFORM": uniform_run}
    check_refused(capsys, [places.get(word, word) for word in words], code, said)


CODES = {"accept": (0,), "reject": (3,), "either": (0, 3)}


@pytest.mark.parametrize(
    ("words", "prefix", "at_least"),
    [
        ("data check FILE --json", "F", 55),
        ("data check FILE --json --fasta ref.fa", "B", 20),
        ("data check FILE --json --fasta ref.fa", "V", 24),
        ("data check FILE --json --domain text --seq-len 128", "T", 13),
        ("finetune check FILE", "G", 9),
        ("score FILE --model RUN --fasta ref.fa -o o.vcf -q", "V", 24),
    ],
)
def test_every_case_is_judged_as_it_should_be(
    words, prefix, at_least, run, shared, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("genodiff.variants.score_job.open_scorer", fake)
    cases = [
        case
        for case in json.loads((shared / "badinput/cases.json").read_text())
        if case["id"][0] == prefix and case["kind"] != "script" and not case["as_user"]
        if case["command_class"].endswith("-in") and (shared / "badinput" / case["dir"]).exists()
        if case["slug"] != "many_contigs"  # which takes seconds
    ]
    assert len(cases) >= at_least
    for case in cases:
        if case["slug"] in ("no_chr_prefix", "mt_name"):  # since then such names are understood
            case["expected"] = "accept"
        folder, file = tmp_path / case["id"], Path(case["target"])
        shutil.copytree(shared / "badinput" / case["dir"], folder, symlinks=True)
        for one in (folder, *folder.rglob("*")):
            if not one.is_symlink():
                one.chmod(one.stat().st_mode | 0o200)
        monkeypatch.chdir(folder)
        if case["prepare"]:
            subprocess.run(["bash", "-c", case["prepare"]], check=True, stderr=subprocess.DEVNULL)
        before = set(os.listdir())
        given = [{"FILE": file, "RUN": run}.get(word, word) for word in words.split()]
        code, out, err = command(capsys, *given)
        about = f"{case['id']} {case['slug']}: exit {code}, {err}"
        assert code in CODES[case["expected"]], about
        assert set(os.listdir()) - before <= {"o.vcf", "o.vcf.json"}, about
        if code:
            assert (out, err.count("\n")) == ("", 1), about
            assert all(word in err for word in case["message_must_name"] or [str(file)]), about
            wanted = [case[key] for key in ("locus", "remedy") if case[key]]
            assert all(re.search(pattern, err, re.IGNORECASE) for pattern in wanted), about
        elif words.startswith("score"):
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            rows = [
                [line for line in text.splitlines() if line and not line.startswith(b"#")]
                for text in (data, Path("o.vcf").read_bytes())
            ]
            assert len(rows[0]) == len(rows[1]), about
        elif case["slug"] in ("leak", "conflict"):
            assert " 1 " in err, about
        elif case["truth"] is not None:
            keys = ("name", "length", "sha"), ("name", "length", "sha256_mapped")
            said = [[row[key] for key in keys[0]] for row in map(json.loads, out.splitlines())]
            assert said == [[row[key] for key in keys[1]] for row in case["truth"]], about
