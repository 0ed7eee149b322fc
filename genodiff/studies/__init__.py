"""Several runs or sweeps compared.

    request        `compare_request.py`, `sweep_request.py`: what is compared
    run            `runs/model.py`: each of them
    difference     `run_comparison.py`: with intervals
    table          `comparison_page.py`: rows and figures
    demo           `demo.py`: all of it on a small genome

Read `run_comparison.py`, `sweeping.py`, `demo.py`.
"""
