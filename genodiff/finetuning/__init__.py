"""What a labelled task gains from a pretrained network.

    words          `model_words.py`: a network or a baseline by name
    unit           `unit.py`: one (task, model, setting, seed)
    head           `head.py`: from features to a prediction
    fit            `fit_loop.py`: the loop that trains it
    predictor      `predictor_files.py`: a fit that is stored and predicts

Read `unit.py`, `fit_loop.py`, `sweep.py`; labels at each base: `base_job.py`.
"""
