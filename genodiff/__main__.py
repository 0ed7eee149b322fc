"""`python -m genodiff` is `genodiff`."""

from genodiff.cli import main

if __name__ == "__main__":
    main()
