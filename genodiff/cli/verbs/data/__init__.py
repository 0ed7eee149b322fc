"""Check, get, build and list data."""

from pathlib import Path

from cyclopts import App

from genodiff.cli.verbs import add_verb, list_verbs

data = App(name="data")
for _name, _verb in list_verbs(Path(__file__).parent, __name__).items():
    add_verb(data, _name, _verb)
