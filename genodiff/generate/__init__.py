"""What comes next: sampled and filled sequences.

    request        `request.py`: how many, how long, which sampler
    template       `infill.py`: known bases and gaps
    filling        `filler.py`: pieces filled window by window
    sample         `filler.py`: ids, evaluations, a record
    file           `output_file.py`: FASTA and its sidecar

Read `diffusion/sampler.py`, `sample.py`, `filler.py`, `sample_job.py`.
"""
