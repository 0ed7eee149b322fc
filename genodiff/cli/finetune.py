"""`genodiff finetune`: tasks that say how good a model's sequences are understood. Data here, fitting in `finetune_fit`."""

from cyclopts import App

from genodiff.cli.finetune_data import register

app = App(name="finetune", help="Fine-tune on benchmarks or on your own labelled sequences; check and audit their data.")
register(app)
