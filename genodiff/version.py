"""The version of the package, below every floor: who writes a file names it."""

__version__ = "0.1.0"
