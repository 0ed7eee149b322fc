"""The project's own files agree with one another."""

import lzma
import re
import subprocess
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_plugins import PAGE, PIECES

from genodiff.backbones.backbone import PRESETS
from genodiff.jobs.verbs import list_verbs
from genodiff.registry import GROUP
from genodiff.version import __version__

ROOT = Path(__file__).resolve().parent.parent


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_kernels_that_need_cuda_are_an_extra_and_never_a_dependency():
    project = PROJECT["project"]
    needed, extra = (
        {re.split(r"[<>=!~ ]", line)[0] for line in lines}
        for lines in (project["dependencies"], project["optional-dependencies"]["cuda"])
    )
    assert extra == {"mamba-ssm", "causal-conv1d"}
    assert not {*extra, "triton"} & needed


def test_the_version_is_one():
    assert PROJECT["project"]["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_changes_of_a_version_are_at_most_sixty_lines():
    """A merge once brought back what had been cut."""
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert all(part.count("\n- ") <= 60 for part in versions)


def test_every_room_is_packaged():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    folders = [path.parent for path in (ROOT / "genodiff").rglob("__init__.py")]
    rooms = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert set(listed) == rooms | {"genodiff.data_recipes"}


def tracked_files() -> list[Path]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in done.stdout.splitlines()]


def test_no_file_names_a_machine_path_or_a_package_registry():
    forbidden = re.compile(
        r"(?<![\w.])/" + r"work/\w|/ro" + "ot/|pypi" + r"\.org|files\.pythonhosted|/opt/" + "pypi"
    )
    for path in tracked_files():
        if path.suffix in {".png", ".gz", ".safetensors"} or not path.is_file():
            continue
        for name, text in read_texts(path):
            found = forbidden.search(text)
            assert not found, f"{name} names {found[0]}"


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """What a file says, or each JSON file in an archive of a sweep, by name."""
    name = str(path.relative_to(ROOT))
    if path.suffixes[-2:] != [".tar", ".xz"]:
        raw = path.read_bytes()
        packed = path.suffix == ".xz"
        yield name, (lzma.decompress(raw) if packed else raw).decode(errors="replace")
        return
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.name.endswith((".json", ".jsonl")):
                content = archive.extractfile(member)
                yield f"{name}: {member.name}", content.read().decode()


def test_the_readme_names_only_verbs_and_presets_that_exist():
    """The commands of its blocks are parsed by tests/test_docs.py."""
    text = (ROOT / "README.md").read_text()
    verbs = set(re.findall(r"genodiff ([a-z]+)", text)) - {"is"}
    assert verbs <= {name.split()[0] for name in list_verbs()}
    assert set(re.findall(r"--preset (\S+)", text)) <= set(PRESETS)


def test_each_piece_on_the_page_of_plug_ins_is_installed_by_the_plug_in_test():
    headings = re.findall(r"^## (An? .*)$", PAGE, flags=re.M)
    assert sorted(headings) == sorted(piece.heading for piece in PIECES.values())
    blocks = re.findall(r"^```(\w+)$(.*?)^```$", PAGE, flags=re.M | re.S)
    of_pieces = [x for x, block in blocks if x != "toml" and "from genodiff.laws" not in block]
    assert len(of_pieces) == len(PIECES) + 1, "the suite has a YAML file, too"
    (package,) = (tomllib.loads(block) for language, block in blocks if language == "toml")
    ((group, points),) = package["project"]["entry-points"].items()
    assert group == GROUP
    assert set(points.values()) == set(package["tool"]["setuptools"]["py-modules"])
    assert "docs/how-to/plug-ins.md" in (ROOT / "CONTRIBUTING.md").read_text()


def test_every_room_of_tests_stands_alone():
    """A test imports from its own folder and from tests/: each folder collects and runs alone."""
    helpers: dict[str, set[Path]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        helpers.setdefault(path.stem, set()).add(path.parent)
    for path in (ROOT / "tests").rglob("*.py"):
        imported = re.findall(r"^(?:from|import) (\w+)", path.read_text(), flags=re.M)
        for name in set(imported) & set(helpers):
            assert helpers[name] & {path.parent, ROOT / "tests"}, f"{path} imports {name}"


def test_the_quick_tests_have_files_of_every_room():
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"(\w+)/test_\w+\.py", makefile))
    rooms = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert rooms == named - {"tests"}
    for name in re.findall(r"\b\w+/test_\w+\.py", makefile):
        assert (ROOT / "tests" / name).is_file() or (ROOT / name).is_file(), name


def test_no_two_files_of_tests_have_one_name():
    """Their folders are no packages, so that pytest would take one for the other."""
    names = Counter(p.name for p in (ROOT / "tests").rglob("*.py") if p.name != "conftest.py")
    assert [name for name, n in names.items() if n > 1] == []
