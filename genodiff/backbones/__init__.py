"""The logits of a masked sequence.

    settings       `settings.py`, `kinds/`: sizes by name, without torch
    tokens         `caduceus.py`: xt (B, L) and sigma (B,)
    strands        `backbone.py`: a batch [x; rc x], and a vote at the head
    mixer          `mamba.py`: a layer that reads along the sequence
    logits         `caduceus.py`: (B, L, V)

Read `caduceus.py` (its first lines have the forward pass in five), `mamba.py`, `backbone.py`.
"""
