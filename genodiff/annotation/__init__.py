"""Labels at each base of a genome: genes as paths of states, and chains of states.

    rows           `io/transcripts.py`: genes as a file has them
    labels         `base_labels.py`: one label a base, unknown where nothing is said
    states         `codon_states.py`: coding genes of both strands as a graph
    path           `state_chain.py`: sums, marginals and the best path
    genes          `codon_states.py`: a path as gene models

Read `base_labels.py`, `state_chain.py`, `codon_states.py`.
"""
