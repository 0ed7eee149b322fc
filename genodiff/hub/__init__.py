"""Networks that others published, as runs of ours, and back.

    source         `source.py`: a folder in its own format
    names          `tensor_names.py`: tables of their names and ours, read both ways
    network        `published_network.py`: settings and tensors, judged
    run            `adopt.py`: a run folder made of it
    export         `export.py`: a folder that other programs read

Read `source.py`, `caduceus.py`, `adopt.py`.
"""
