"""Labels at each base of a genome: genes as paths of states, and chains of states."""
