"""What the network makes of windows.

    region         `request.py`: sequences or intervals
    window         `embed.py`: with context on both sides
    features       `embed.py`: averaged over both strands
    pool           `embed.py`: one vector a region, or one a position
    file           `embedding_files.py`: npz, npy or parquet

Read `embed.py`, `embed_job.py`.
"""
