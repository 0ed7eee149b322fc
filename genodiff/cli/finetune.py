"""`genodiff finetune`: tasks that say how good a model's sequences are understood. Data and fitting
stand in files of their own.
"""

from cyclopts import App

from genodiff.cli import finetune_data, finetune_fit

app = App(
    name="finetune",
    help="Fine-tune on benchmarks or on your own labelled sequences; check and audit their data.",
)
finetune_data.register(app)
finetune_fit.register(app)
