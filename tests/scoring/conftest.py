"""A run of an untrained network on a small genome, one for each module of tests."""

from pathlib import Path

import pytest
from tiny_run import write_run

from genodiff.runs.model import TrainedModel, load_model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def model(run: Path) -> TrainedModel:
    return load_model(run)
