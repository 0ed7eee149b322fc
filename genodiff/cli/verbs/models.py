"""Ready models, which `--model NAME` takes: list them, and see what is known of each.

They come with genodiff, or stand in a folder that GENODIFF_MODELS names, one folder for each, as
`genodiff checkpoint export RUN --format safetensors` writes it.
"""

import json as json_module
from typing import Annotated

from cyclopts import App, Parameter

from genodiff.api.models import find_model, list_models, show_model
from genodiff.api.ready_card import list_facts
from genodiff.cli.common import Common, Json
from genodiff.cli.verbs.checkpoint import export

models = App(name="models")
Name = Annotated[str, Parameter(help="A name that `genodiff models list` prints.")]


@models.default
@models.command(name="list")
def list_(*, json: Json = False, common: Common = Common()) -> None:
    """Names, weights, size, and what each was trained on."""
    common.prepare()
    listed = list_models()
    if json:
        print(json_module.dumps(listed, indent=2))
        return
    if not listed:
        print("no ready model is here; GENODIFF_MODELS names a folder of your own")
    for one in listed:
        size = f"{one['parameters']:>11,} weights {one['bytes'] / 1e6:>6.1f} MB"
        print(f"{one['name']:<16}{size}  {one['facts'].get('about', one['preset'] or '')}")


@models.command
def show(name: Name, /, *, json: Json = False, common: Common = Common()) -> None:
    """Data, licence, figures beside those of opponents, and limits of one model."""
    common.prepare()
    told = show_model(name)
    if json:
        print(json_module.dumps(told, indent=2))
        return
    print("\n".join(list_facts(told)))


@models.command
def path(name: Name, /, *, common: Common = Common()) -> None:
    """The folder of a model: for `AutoModelForMaskedLM.from_pretrained`, after `import
    genodiff.hf`, or to copy.
    """
    common.prepare()
    print(find_model(name))


models.command(export, name="export")
