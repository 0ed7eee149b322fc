"""Hard constraints on DNA as automata: an algebra of values, exact sampling, proofs of conflict."""
