"""What is at this path, opened.

    path           `runs/run_paths.py`: located
    run            `runs/model.py`: a trained model
    published      `hub/adopt.py`: a network of others
    fitted         `finetuning/fitted_model.py`: a fine-tuned model
    model          `opening.py`: any of these, ready

Read `opening.py`. The folders here are pretrained models.
"""
