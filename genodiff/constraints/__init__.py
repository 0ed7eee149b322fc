"""Hard constraints on DNA as automata: an algebra of values, exact sampling, proofs of conflict.

    space          `constraint.py`: the symbols that each position may have
    constraint     `constraint.py`, `words.py`, `coding.py`: what is allowed
    automaton      `constraint.py`: states that read a sequence
    layers         `layers.py`: the product of all automata, minimised
    draw           `chain.py`: exact probabilities and samples

Read `constraint.py`, `words.py`, `layers.py`, `chain.py`.
"""
