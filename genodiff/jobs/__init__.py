"""How a verb is answered, and resumed without loss.

    request        `request.py`: one field for each option
    options        `options.py`: types that several verbs share
    job            `job.py`: opens, plans, computes entries, writes
    journal        `journal.py`: the entries so far, in OUT.partial
    sidecar        `job.py`: the options, and the files read

Read `request.py`, `job.py`, `journal.py`, then `maps/ism.py` as an example of a verb.
"""
