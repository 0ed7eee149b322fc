import os

import pytest
import torch

from genodiff.io.limits import count_default_threads, count_usable_cores
from genodiff.jobs.machine import choose_device, prepare_machine


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


@pytest.mark.parametrize(("said", "threads"), [("1", 1), ("3,2", 3), ("", 2), ("0", 2), ("x", 2)])
def test_threads_are_what_openmp_is_told_else_one_a_core(
    said: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert count_default_threads() == threads


def test_a_verb_computes_with_the_threads_that_openmp_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    prepare_machine()
    choose_device("cpu")
    assert torch.get_num_threads() == 1
    prepare_machine(threads=2)
    choose_device("cpu")
    assert torch.get_num_threads() == 2
