"""How sure a comparison is: seeds and test units together, Holm's correction, equivalence."""
