import os

import pytest

from genodiff.io.cores import count_usable_cores


def test_the_cores_of_the_process_count_and_not_those_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert count_usable_cores() == 2


def test_without_a_set_of_cores_all_of_the_machine_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert count_usable_cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_usable_cores() == 1
