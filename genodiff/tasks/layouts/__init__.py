"""How the files of a suite of tasks are laid out: one reader per layout, one file per reader."""
