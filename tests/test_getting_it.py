"""How genodiff is got: conda, citation, container and the release agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from genodiff.conservation.request import ConstraintRequest
from genodiff.jobs.request import list_fields
from genodiff.variants.request import ScoreRequest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
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
