"""Published folders without a network: every test fails that opens a connection."""

import socket
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: genodiff[hf]")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*where: Any) -> None:
        raise AssertionError(f"a connection was opened: {where[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("builtins.input", refuse)  # the question whether to trust remote code
