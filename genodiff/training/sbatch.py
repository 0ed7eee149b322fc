"""The script of a SLURM job that trains, is pre-empted, and goes on: `train --print-sbatch`."""

import shlex
from collections.abc import Sequence
from datetime import timedelta

from genodiff.runs.config import RunConfig

_WARNING = 120  # seconds before the end of its time at which a job is told
_DAY = 24 * 60.0  # minutes, where the run has no limit of its own
_MARGIN = 1.1  # on a run's own limit: validation and checkpoints are not counted in it

_SCRIPT = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
{gpus}#SBATCH --time={time}
#SBATCH --signal=USR1@{warning}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={name}-%j.log

# {cores}
# {warning} s before its end the job gets SIGUSR1: genodiff saves and ends with code 138 (128 + 10).
# The job then queues again, and the same command goes on from the checkpoint, with the same bits.
SRUN_CPUS_PER_TASK=${{SLURM_CPUS_PER_TASK:-1}} srun {command}
code=$?
if [ $code -eq 138 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
"""


def write_sbatch(
    words: Sequence[str], config: RunConfig, *, name: str, devices: int, device: str, threads: int
) -> str:
    """The job's script for the command line `words` (of `genodiff`, without its name).

    A GPU for each of the `devices`, unless `device` is "cpu"; then `threads` cores in all.
    """
    minutes = _DAY if config.train.max_minutes is None else config.train.max_minutes * _MARGIN + 10
    whole = timedelta(minutes=round(minutes))  # as SLURM takes it: days-hours:minutes:seconds
    hours, rest = divmod(whole.seconds, 3600)
    on_gpu = device != "cpu"
    workers = 4 if config.train.workers == "auto" else max(1, config.train.workers)
    cpus = devices * (1 + workers) if on_gpu else threads
    each = f"(1 that trains + {workers} that prepare windows, train.workers), a core each"
    reason = f"{devices} x {each}" if on_gpu else "--threads, or without it 2 for each process"
    return _SCRIPT.format(
        name=name,
        cpus=cpus,
        cores=f"Cores: {cpus} = {reason}. Change it to what your nodes have.",
        gpus=f"#SBATCH --gpus-per-node={devices}\n" if on_gpu else "",
        time=f"{whole.days}-{hours:02d}:{rest // 60:02d}:00",
        warning=_WARNING,
        command=shlex.join(["genodiff", *words]),
    )
