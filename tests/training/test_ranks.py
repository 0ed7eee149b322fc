"""The process group that a run began ends with it; one that was there before stays."""

import os
import subprocess
import sys

import pytest
import torch

from genodiff.training.ranks import end_process_group

_CODE = """
import sys, torch
from genodiff.training.ranks import end_process_group
def begin():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
before = sys.argv[1] == "before"
if before:
    begin()
with end_process_group():
    if not before:
        begin()
    assert torch.distributed.is_initialized()
print(torch.distributed.is_initialized())
"""


@pytest.mark.parametrize(("begun", "stays"), [("before", "True"), ("within", "False")])
def test_a_process_group_ends_with_the_run_that_began_it(begun: str, stays: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", _CODE, begun], capture_output=True, text=True, env=dict(os.environ)
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == stays


def test_without_a_group_nothing_happens() -> None:
    with end_process_group():
        pass
    assert not torch.distributed.is_initialized()
