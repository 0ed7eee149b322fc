"""Whether this machine can train, and how fast.

    check          `checks.py`: disk, memory, cores, libraries
    self-test      `selftest.py`: kernels compared with their definition
    speed          `selftest.py`: seconds of a step
    forecast       `selftest.py`: how long a run would take
    report         `checks.py`: a line each, with its repair

Read `checks.py`, `selftest.py`.
"""
