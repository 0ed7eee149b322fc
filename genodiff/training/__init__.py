"""The next step of a run.

    batch          `data/loader.py`: windows and their uniforms
    loss           `module.py`: nats of the bound per base of a full batch
    rate           `optimizer.py`, `horizon.py`: the learning rate of this step
    weights        `module.py`, `optimizer.py`: AdamW, and their average
    row            `callbacks.py`: a line of metrics.csv, a checkpoint

Read `examples/train_in_one_file.py`, `module.py`, `callbacks.py`, `run.py`.
"""
