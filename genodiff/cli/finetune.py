"""`genodiff finetune`: tasks that say how good a model's sequences are understood. Data here, fitting in `finetune_fit`."""

from cyclopts import App

from genodiff.cli import finetune_fit

app = App(name="finetune", help="Fine-tune on benchmarks or on your own labelled sequences; check and audit their data.")
finetune_fit.register(app)
