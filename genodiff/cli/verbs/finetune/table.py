"""Fine-tune on your own labelled sequences."""

from genodiff.api.sweep import OwnData
from genodiff.cli.sweep import make_sweep_verb

table = make_sweep_verb(OwnData)
