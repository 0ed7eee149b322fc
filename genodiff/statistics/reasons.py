"""Why a figure has no interval, as it is written in its place; this module imports no scipy."""

TOO_FEW = "too few"
"""What stands in the place of an interval of fewer units than it takes."""
ONE_SEED = "one seed"
ONE_UNIT = f"{TOO_FEW} test units"
NO_VARIATION = "no variation"
UNDEFINED = "undefined"
