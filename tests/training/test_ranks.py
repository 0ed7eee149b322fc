"""Which GPU a rank computes on; the process group that a run began ends with it, and one that was
there before stays.
"""

import os
import subprocess
import sys
import time

import pytest
import torch

from genodiff.training.ranks import World, end_process_group
from genodiff.training.trainer import choose_devices


@pytest.mark.parametrize(
    ("device", "world", "chosen"),
    [
        ("cuda:1", World(0, 1, 1), [1]),
        ("cuda", World(0, 1, 1), 1),
        ("cpu", World(0, 1, 1), 1),
        ("cuda:0", World(1, 4, 2), 2),  # torchrun deals the GPUs
    ],
)
def test_a_numbered_gpu_is_the_one_that_is_used(device, world, chosen):
    assert choose_devices(device, world) == chosen


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


@pytest.mark.slow
@pytest.mark.parametrize(("begun", "stays"), [("before", "True"), ("within", "False")])
def test_a_process_group_ends_with_the_run_that_began_it(begun, stays):
    said = subprocess.run(
        [sys.executable, "-c", _CODE, begun], capture_output=True, text=True, env=dict(os.environ)
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == stays


_MEET = """
import os, torch
from genodiff.training.ranks import end_process_group, join_ranks, read_world
with end_process_group():
    join_ranks(read_world(), "cpu")
    total = torch.ones(1) * (read_world().rank + 1)
    torch.distributed.all_reduce(total)
    print(int(total), flush=True)
    if os.environ["DIES"] == os.environ["RANK"]:
        os.kill(os.getpid(), 9)
"""


def start_rank(rank: int, attempt: int, port: int, dies: int) -> subprocess.Popen[str]:
    """A rank as torchrun's agent starts it, beside the agent's own store."""
    env = os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "DIES": str(dies),
        "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": str(attempt),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", _MEET], text=True, env=env, stdout=subprocess.PIPE
    )


@pytest.mark.slow
def test_ranks_that_are_started_again_meet_one_another_and_not_the_dead():
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for attempt, dies in enumerate((0, -1)):
        late = start_rank(1, attempt, store.port, dies)
        if attempt:
            time.sleep(6)  # rank 1 asks for the address of rank 0 before that one has written it
        ranks = [start_rank(0, attempt, store.port, dies), late]
        said = [rank.communicate(timeout=100)[0] for rank in ranks]
        assert said == ["3\n", "3\n"], attempt
        assert (ranks[0].returncode == 0) == (dies != 0)


def test_without_a_group_nothing_happens():
    with end_process_group():
        pass
    assert not torch.distributed.is_initialized()
