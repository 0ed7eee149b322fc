"""The logits of a masked sequence.

    settings       `settings.py`, `kinds/`: sizes by name, without torch
    tokens         `caduceus.py`: xt (B, L) and sigma (B,)
    strands        `backbone.py`: a batch [x; rc x], summed at the head
    mixer          `mamba.py`: a layer that reads along the sequence
    logits         `caduceus.py`: (B, L, V)

Read `caduceus.py` (its docstring has the forward pass in five lines), `mamba.py`, `backbone.py`.
"""
