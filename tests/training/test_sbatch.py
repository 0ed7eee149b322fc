"""The printed SLURM job, run by a shell with stand-ins for srun and scontrol."""

import os
import stat
import subprocess

import pytest
from tiny_training import tiny

from genodiff.training.sbatch import write_sbatch
from tests.commands import exit_code


def printed(device: str = "cuda", **changes: object) -> str:
    words = ["train", "my genome.fa", "--out", "runs/a b", "--devices", "4"]
    return write_sbatch(
        words, tiny(**changes), name="genodiff-x", devices=4, device=device, threads=8
    )


@pytest.mark.parametrize(("ends", "requeued"), [(138, True), (0, False), (1, False), (143, False)])
def test_the_job_queues_again_where_the_run_was_told_to_save(tmp_path, ends, requeued):
    for name, text in {
        "srun": f'printf "%s|" "$@" $SRUN_CPUS_PER_TASK > {tmp_path}/words; exit {ends}',
        "scontrol": f'echo "$@" > {tmp_path}/asked',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    job = {"SLURM_JOB_ID": "77", "SLURM_CPUS_PER_TASK": "12"}
    environment = os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"} | job
    done = subprocess.run(["bash", "-c", printed()], env=environment, check=False)
    assert done.returncode == ends
    words = (tmp_path / "words").read_text().split("|")
    assert words[:5] == ["genodiff", "train", "my genome.fa", "--out", "runs/a b"]
    assert words[-2] == "12"
    assert (tmp_path / "asked").exists() == requeued
    if requeued:
        assert (tmp_path / "asked").read_text() == "requeue 77\n"


def test_what_is_asked_of_the_cluster_follows_from_the_run():
    assert "#SBATCH --gpus-per-node=4\n#SBATCH --time=1-00:00:00" in printed(workers=2)
    assert "#SBATCH --cpus-per-task=12" in printed(workers=2)
    because = "4 x (1 that trains + 2 that prepare windows, train.workers), a core each"
    assert f"# Cores: 12 = {because}. Change it" in printed(workers=2)
    assert "gpus" not in printed("cpu")
    assert "#SBATCH --cpus-per-task=8" in printed("cpu")
    assert "#SBATCH --time=0-05:40:00" in printed(max_minutes=300, steps=None)


def test_the_verb_prints_it_and_leaves_its_own_flag_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["train", "toy", "--max-steps", "5", "--print-sbatch", "--devices", "2"]
    monkeypatch.setattr("sys.argv", ["genodiff", *words])
    assert exit_code(*words) == 0
    said = capsys.readouterr().out
    assert "srun genodiff train toy --max-steps 5 --devices 2\n" in said
    assert not list(tmp_path.iterdir())
