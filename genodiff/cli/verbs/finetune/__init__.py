"""Fine-tune on benchmarks or your own labelled sequences; check and audit their data."""

from pathlib import Path

from cyclopts import App

from genodiff.api.labelled_data import describe_suites
from genodiff.cli.sweep import make_suite_verb
from genodiff.cli.verbs import add_verb, list_verbs

finetune = App(name="finetune")
for _name, _verb in list_verbs(Path(__file__).parent, __name__).items():
    add_verb(finetune, _name, _verb)
for _name, _description in describe_suites().items():
    finetune.command(make_suite_verb(_name), name=_name, help=_description)
