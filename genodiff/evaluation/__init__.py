"""How many bits a base takes, beside which baselines.

    split          `eval_data.py`: windows that are scored
    bound          `bound.py`: an upper bound in nats, window by window
    baseline       `markov.py`, `adaptive.py`: what counting gives
    comparison     `dna_evaluation.py`: differences with intervals
    file           `evaluation_file.py`: RUN/eval.json

Read `bound.py`, `evaluate.py`, `markov.py`.
"""
