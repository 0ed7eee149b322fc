"""What is in a run folder, and what was it trained on.

    path           `run_paths.py`: `locate(path)`, the folder of a run, a checkpoint or a pretrained
                   model
    configuration  `config.py`: every setting, typed
    checkpoint     `checkpoint.py`: weights and state, sealed by hashes
    model          `trained_model.py`: network, process, objective, alphabet; `model.py` reads one
    relatives      `related_model.py`: a model that reads related genomes

Read `run_paths.py`, `trained_model.py`, `model.py`, `checkpoint.py`, `config.py`.
"""
