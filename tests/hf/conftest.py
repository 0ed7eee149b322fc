"""Published folders without a network: every test fails that opens a connection."""

import importlib.util
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest


class AbsentModule(pytest.Module):
    """A file of tests that is skipped whole."""

    def collect(self) -> Iterable[pytest.Item]:
        pytest.skip("transformers is not installed: pip install 'genodiff[hf]'")


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    """Skips the files of this room where transformers is absent."""
    try:
        there = importlib.util.find_spec("transformers") is not None
    except ValueError:  # it stands in sys.modules as absent
        there = False
    return None if there else AbsentModule.from_parent(parent, path=module_path)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*where: Any) -> None:
        raise AssertionError(f"a connection was opened: {where[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("builtins.input", refuse)  # the question whether to trust remote code
