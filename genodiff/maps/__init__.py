"""The model's predictions along a region: tracks, mutations, dependencies.

    region         `map_regions.py`: intervals of a genome or sequences
    piece          `track_reader.py`: a stretch that is read at once
    probabilities  `track_reader.py`: four for each base
    track          `track_values.py`: information, entropy, surprisal
    file           `track_formats/`, `map_regions.py`: for browsers and programs

Read `ism.py`, `tracks.py`, `track_reader.py`.
"""
