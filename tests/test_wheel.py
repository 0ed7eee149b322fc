"""The sdist holds the tree, the wheel the package alone, and what is installed from it works."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from test_project import tracked_files

from genodiff.version import __version__

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
COMMIT = "genodiff/commit.txt"  # what is built has it; the tree has git
NOT_IN_SDIST = {".dockerignore", ".gitattributes", ".gitignore"}
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
OFFLINE = ["--no-deps", "--no-build-isolation", "--no-index"]


def run_command(*command: str | Path, cwd: Path) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what git knows, without what was built here."""
    copy = tmp_path_factory.mktemp("tree") / "genodiff"
    for path in tracked_files():
        if path.is_file():
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (copy / COMMIT).write_text("f" * 40)
    return copy


@pytest.fixture(scope="module")
def sdist(tree, tmp_path_factory):
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    run_command(sys.executable, "-c", SDIST, folder, cwd=tree)
    (packed,) = folder.iterdir()
    assert packed.name == f"genodiff-{__version__}.tar.gz"
    with tarfile.open(packed) as archive:
        archive.extractall(folder)  # our own; Python 3.11.2 has no filter
    return folder / f"genodiff-{__version__}"


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run_command(*PIP, "wheel", *OFFLINE, "--wheel-dir", folder, sdist, cwd=folder)
    (built,) = folder.iterdir()
    return built


def test_the_sdist_holds_the_tree(sdist):
    known = {str(path.relative_to(ROOT)) for path in tracked_files() if path.is_file()}
    held = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    made = {name for name in held if name.startswith("genodiff.egg-info/")}
    assert known - held == NOT_IN_SDIST
    assert held - known - made == {"PKG-INFO", "setup.cfg", COMMIT}


def test_the_wheel_is_of_any_python_and_holds_the_package_alone(wheel):
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version, python, abi) == ("genodiff", __version__, "py3", "none")
    assert platform.startswith(("linux", "macosx"))
    known = [path.relative_to(ROOT).as_posix() for path in tracked_files()]
    package = {f"genodiff/{x}" if x.startswith("data_recipes/") else x for x in known}
    package = {x for x in package if x.startswith("genodiff/") and not x.endswith((".c", ".h"))}
    info = f"genodiff-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        held = {x for x in archive.namelist() if not x.startswith(info)}
        about = {x.removeprefix(f"{info}/") for x in archive.namelist()} - held
        metadata = archive.read(f"{info}/METADATA").decode()
    compiled = {x for x in held if x.endswith(".so")}
    assert held - compiled == package | {COMMIT}
    assert wheel.stat().st_size < 12e6
    assert compiled <= {f"genodiff/kernels/_native_{x}.so" for x in ("base", "avx2", "avx512")}
    assert {"licenses/LICENSE", "entry_points.txt"} <= about
    assert "License-Expression: Apache-2.0" in metadata


def test_what_the_wheel_installs_works_away_from_the_tree(wheel, tree, tmp_path, monkeypatch):
    with zipfile.ZipFile(wheel) as archive:
        has_c = any(name.endswith("_native_base.so") for name in archive.namelist())
    run_command(*PIP, "install", *OFFLINE, "--target", tmp_path / "site", wheel, cwd=tmp_path)
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setitem(ENVIRONMENT, "GENODIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delitem(ENVIRONMENT, "GENODIFF_SCAN", raising=False)
    tried = tree / ".github/try_wheel.py"
    text = run_command(
        sys.executable, "-P", tried, *([] if has_c else ["--without-c"]), cwd=tmp_path
    )
    assert text.startswith(f"genodiff {__version__}: ")
    told = run_command(sys.executable, "-P", "-m", "genodiff", "--version", cwd=tmp_path)
    assert told.splitlines()[:2] == [__version__, f"commit: {'f' * 40}"]


def test_the_container_copies_all_that_the_build_needs(tree, tmp_path, monkeypatch):
    lines = (tree / "Containerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    source = tmp_path / "source"
    source.mkdir()
    for name in (name for names in copied for name in names):
        if (tree / name).is_dir():
            shutil.copytree(tree / name, source / name)
        else:
            shutil.copy(tree / name, source)
    monkeypatch.setitem(ENVIRONMENT, "CC", "/nonexistent")  # what is compiled is tried above
    run_command(*PIP, "wheel", *OFFLINE, "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (built,) = tmp_path.glob("*.whl")
    assert built.name.startswith(f"genodiff-{__version__}-py3-none-")
