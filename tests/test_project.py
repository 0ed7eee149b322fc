"""The project's own files agree with one another: how genodiff is got, packaged and cited."""

import lzma
import re
import subprocess
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_plugins import PAGE, PIECES

from genodiff.backbones.backbone import PRESETS
from genodiff.conservation.request import ConstraintRequest
from genodiff.jobs.request import list_fields
from genodiff.jobs.verbs import list_verbs
from genodiff.registry import GROUP
from genodiff.variants.request import ScoreRequest
from genodiff.version import __version__
from tests.folders import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def test_kernels_that_need_cuda_are_an_extra_and_never_a_dependency():
    needed, extra = (
        {re.split(r"[<>=!~ ]", line)[0] for line in lines}
        for lines in (PROJECT["dependencies"], PROJECT["optional-dependencies"]["cuda"])
    )
    assert extra == {"mamba-ssm", "causal-conv1d"}
    assert not {*extra, "triton"} & needed


def test_the_version_is_one():
    assert PROJECT["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_changes_of_a_version_are_at_most_sixty_lines():
    """A merge once brought back what had been cut."""
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert all(part.count("\n- ") <= 60 for part in versions)


def test_every_room_is_packaged():
    listed = PYPROJECT["tool"]["setuptools"]["packages"]
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


CONDA = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # names that differ there
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def split_requirement(line: str) -> tuple[str, str]:
    """Name and versions, as in "torch>=2.6,<2.14"."""
    name, versions = re.fullmatch(r"([A-Za-z0-9_.-]+?)\s*([<>=!~].*)?", line.strip()).groups()  # type: ignore[union-attr]
    return name, (versions or "").replace(" ", "")


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def wanted_by_conda() -> dict[str, str]:
    wanted = dict(split_requirement(line) for line in PROJECT["dependencies"])
    return {CONDA.get(name, name): versions for name, versions in wanted.items()}


def test_the_conda_environment_asks_for_what_the_package_asks_for():
    lines = [x for x in read_yaml("environment.yml")["dependencies"] if isinstance(x, str)]
    listed = dict(split_requirement(line) for line in lines)
    assert listed.pop("pip") == ""
    assert listed.pop("python") == f"{PROJECT['requires-python']},<3.15"
    assert listed == wanted_by_conda()


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = read_yaml(".conda/recipe.yaml")
    assert recipe["context"]["version"] == PROJECT["version"]
    listed = dict(split_requirement(line) for line in recipe["requirements"]["run"])
    assert listed.pop("python") == f"{PROJECT['requires-python']},<3.15"
    assert listed == wanted_by_conda()
    built_with = [line for line in recipe["requirements"]["host"] if line.startswith("setuptools")]
    assert [line.replace(" ", "") for line in built_with] == PYPROJECT["build-system"]["requires"]
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["license"] == PROJECT["license"]
    cuda = (line.split(";")[0] for line in PROJECT["optional-dependencies"]["cuda"])
    extra = dict(map(split_requirement, cuda))
    asked = dict(split_requirement(x) for x in recipe["requirements"]["run_constraints"])
    assert asked == extra


def test_the_citation_is_of_this_version_and_invents_nobody():
    citation = read_yaml("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
    assert citation["abstract"] == PROJECT["description"]
    assert citation["authors"] == PROJECT["authors"]
    assert not {"doi", "identifiers", "preferred-citation"} & set(citation)


def test_the_same_pythons_stand_everywhere():
    prefix = "Programming Language :: Python :: 3."
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert tuple(named) == PYTHONS
    builds = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert builds == [f"cp{python.replace('.', '')}-*" for python in PYTHONS]
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert "(3, 11) <= v < (3, 15)" in (ROOT / "Makefile").read_text()
    python = re.search(r"^ARG PYTHON=(.*)$", (ROOT / "Containerfile").read_text(), flags=re.M)
    assert python
    assert python[1] in PYTHONS


def test_the_cpu_build_of_torch_comes_from_one_place_and_the_containers_extras_exist():
    makefile = re.search(r"^CPU\s*:= (\S+)$", (ROOT / "Makefile").read_text(), flags=re.M)
    args = dict(re.findall(r"^ARG (\w+)=(\S+)$", (ROOT / "Containerfile").read_text(), re.M))
    assert makefile
    tried_with = PYPROJECT["tool"]["cibuildwheel"]["test-environment"]["PIP_EXTRA_INDEX_URL"]
    assert makefile[1] == args["TORCH_INDEX"] == tried_with
    assert set(args["EXTRAS"].split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_release_is_pinned_holds_no_secret_and_publishes_tags_alone():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    uses = re.findall(r"uses: (\S+)(.*)", text)
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    for tool in re.findall(r"pipx run (\S+)", text):
        assert re.fullmatch(r"[\w-]+==[\d.]+", tool), tool
    assert "secrets." not in text
    assert "://" not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/')"
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    rights = {name: set(job["permissions"].items()) for name, job in jobs.items()}
    assert rights.pop("publish") == {("id-token", "write")}
    assert all(given == {("contents", "read")} for given in rights.values())
    tried = PYPROJECT["tool"]["cibuildwheel"]["test-command"].partition("{project}/")[2]
    assert (ROOT / tried).is_file()


def test_wrappers_name_this_version_and_flags_that_exist():
    commands = {}
    for verb, request in (("constraint", ConstraintRequest), ("score", ScoreRequest)):
        tool = (ROOT / f"examples/galaxy/genodiff_{verb}.xml").read_text()
        assert f'<token name="@TOOL_VERSION@">{PROJECT["version"]}</token>' in tool
        commands[request] = tool.split(f"genodiff {verb} ")[1].split("</command>")[0]
    module = ROOT / "examples/nextflow/modules/local/genodiff/constraint"
    needed = read_yaml(str(module / "environment.yml"))["dependencies"]
    assert f"bioconda::genodiff={PROJECT['version']}" in needed
    process = (module / "main.nf").read_text()
    named = re.findall(r"emit: (\w+)", process)
    assert list(read_yaml(str(module / "meta.yml"))["output"]) == named
    commands[ConstraintRequest] += process.split("genodiff constraint")[1].split("stub:")[0]
    for request, text in commands.items():
        known = {f"--{one.name}" for one in list_fields(request)} | {"--format", "--threads"}
        assert set(re.findall(r"--[a-z]+", text)) <= known
