"""The doctor: each check can fail, says how to mend it, and writes nothing."""

import json
from types import SimpleNamespace

import pytest
import torch

from genodiff.diagnosis import checks as doctor
from genodiff.diagnosis import selftest
from genodiff.diagnosis.checks import Check
from genodiff.kernels.dispatch import select_provider


@pytest.fixture(scope="module")
def machine():
    """The checks of this machine, made once: packages are imported in processes of their own."""
    return doctor.check_machine()


@pytest.mark.slow
def test_here_everything_that_is_needed_works(machine):
    checks, scan = selftest.check_torch()
    found = [*machine, *checks]
    assert [c for c in found if c.status == "fail"] == []
    assert scan.split("-")[0] == select_provider().name
    assert {"python", "packages", "cpu", "memory", "disk", "cache", "recipes", "torch", "gpu",
            "scan", "scan numbers", "bound", "strands"} <= {c.name for c in found}  # fmt: skip


def test_on_a_gpu_its_pace_is_forecast_from_the_bytes_that_it_copies(monkeypatch):
    """As benchmarks/gpu/QUEUE.md counts for an H200: 17.8 ps a channel and step for the scans."""
    assert selftest.check_forecast() == []
    scans = selftest.count_token_seconds(256, 528, 1.755e9, 1e30)
    assert scans / (2 * 256) == pytest.approx(17.8e-12, rel=0.01)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(selftest, "measure_bandwidth", lambda device: 4e12)
    h200 = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: h200)
    (found,) = selftest.check_forecast()
    assert found.status == "ok"
    assert "4.00 TB/s" in found.detail
    # 1 / (4 layers · 236 channels · (2 · 17.8 ps + 184 bytes / 4 TB/s)) = 13.0 million
    assert "13 of ph-470k" in found.detail
    assert "an H100 reached 0.33 to 0.51 of it" in found.detail

    def fail(device: str) -> float:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(selftest, "measure_bandwidth", fail)
    (found,) = selftest.check_forecast()
    assert (found.status, "out of memory" in found.detail) == ("warn", True)


def test_names_are_unique_and_every_fault_has_a_remedy(machine):
    assert len({c.name for c in machine}) == len(machine)
    assert all(c.fix for c in machine if c.status != "ok")


VALUES = (("a", "ok", "b", ""), ("c", "fail", "d", "e"))


def test_the_object_is_json_with_the_documented_keys():
    told = doctor.report([Check(*values) for values in VALUES], "torch")
    rows = [dict(zip(("name", "status", "detail", "fix"), x, strict=True)) for x in VALUES]
    assert json.loads(json.dumps(told)) == {"checks": rows, "scan": "torch"}


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10), "fail"), ((3, 11), "ok"), ((3, 14), "ok"), ((3, 15), "warn")]
)
def test_only_pythons_that_are_tested_are_ok(version, status):
    assert doctor.check_python(version).status == status


def test_a_package_that_is_missing_old_new_or_malicious_is_named(monkeypatch):
    here = {"numpy": "1.0", "polars": "9.0", "lightning": "2.6.3", "torch": "2.13.0+cpu"}

    def version(name: str) -> str:
        if name not in here:
            raise doctor.PackageNotFoundError(name)
        return here[name]

    monkeypatch.setattr(doctor, "version", version)
    lines = ["numpy>=1.26", "polars>=1.30,<3", "lightning>=2.6.6", "torch<2.14,>=2.6",
             "jinja2>=3.1"]  # fmt: skip
    found = {c.name: c for c in doctor.check_packages(lines)}
    assert found["packages"].detail.startswith("4 required packages")
    assert {n: c.status for n, c in found.items()} == {
        "packages": "ok", "numpy": "fail", "polars": "warn", "lightning": "fail", "jinja2": "fail",
    }  # fmt: skip
    assert "malicious" in found["lightning"].detail
    assert found["jinja2"].fix == "pip install 'jinja2>=3.1'"


def test_extras_are_not_required():
    names = " ".join(doctor._required())
    assert "torch" in names
    assert "mamba-ssm" not in names
    assert "pytest" not in names


def test_an_optional_package_that_cannot_be_imported_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "tokenizers.py").write_text("raise ImportError('undefined symbol: \\x1b[31m')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(
        doctor, "_OPTIONAL", {"tokenizers": "text models", "absent-package": "nothing"}
    )
    monkeypatch.setattr(doctor, "is_command_line", lambda: False)
    assert doctor.check_optional_packages()[0].status == "ok", "a script starts no process for it"
    monkeypatch.setattr(doctor, "is_command_line", lambda: True)
    broken, absent = doctor.check_optional_packages()
    assert (broken.status, absent.status) == ("warn", "ok")
    assert "undefined symbol" in broken.detail
    assert "\x1b" not in broken.detail
    assert broken.fix


def test_a_folder_that_cannot_hold_the_cache_fails(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "file" / "cache"))
    assert doctor.check_cache().status == "fail"
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "new" / "cache"))
    assert doctor.check_cache().status == "ok"
    assert not (tmp_path / "new").exists(), "the doctor writes nothing"


@pytest.mark.parametrize(
    ("free", "status"), [(10 << 30, "ok"), (500 << 20, "warn"), (1 << 20, "fail")]
)
def test_a_disk_that_is_nearly_full_is_named(tmp_path, monkeypatch, free, status):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("Usage", (), {"free": free})())
    assert doctor.check_disk(tmp_path).status == status


@pytest.mark.parametrize(("free", "status"), [(8 << 30, "ok"), (1 << 29, "warn")])
def test_little_free_memory_is_named(monkeypatch, free, status):
    monkeypatch.setattr(doctor, "read_memory", lambda: (16 << 30, free))
    assert doctor.check_memory().status == status


def test_missing_recipes_fail(monkeypatch):
    monkeypatch.setattr(doctor, "list_recipe_names", list)
    assert doctor.check_recipes().status == "fail"


def test_the_variable_that_kills_on_purpose_is_a_warning():
    assert doctor.check_environment({"GENODIFF_CRASH_AT": "3"}).status == "warn"
    assert doctor.check_environment({"PATH": "x"}).status == "ok"


def test_a_scan_that_gives_other_numbers_fails(monkeypatch):
    honest = selftest.selective_scan

    def wrong(*args: object, provider: str = "auto", **more: object) -> torch.Tensor:
        found = honest(*args, provider="torch", **more)
        assert isinstance(found, torch.Tensor)
        return found if provider == "naive" else found + 1e-3

    assert selftest.check_numbers("torch").status == "ok"
    monkeypatch.setattr(selftest, "selective_scan", wrong)
    assert selftest.check_numbers("torch").status == "fail"


def test_a_bound_that_shows_a_token_for_free_fails(monkeypatch):
    honest = selftest.exact_count_loss

    def leaky(*args: object) -> object:
        terms = honest(*args)
        return terms._replace(nats_unweighted=terms.nats_unweighted * 0.999)

    monkeypatch.setattr(selftest, "exact_count_loss", leaky)
    assert selftest.check_bound().status == "fail"


def test_a_scan_that_cannot_be_had_fails_with_a_remedy(monkeypatch):
    monkeypatch.setenv("GENODIFF_SCAN", "no-such-scan")
    checks, name = selftest.check_scans()
    assert name is None
    assert [c.status for c in checks] == ["fail"]
    assert checks[0].fix


def test_the_self_test_leaves_the_random_state_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    selftest.check_strands()
    assert torch.equal(before, torch.random.get_rng_state())
