"""Tasks with labels: sequences, splits, audits and metrics. No network.

    suite          `suite.py`: tasks of a benchmark
    task           `task.py`: train, dev and test parts
    example        `examples.py`: a sequence and its label
    audit          `audit.py`: what a test part shares with the train part
    metric         `metrics.py`: a score with its interval

Read `suite.py`, `task.py`, `metrics.py`.
"""
