"""Adapters: few weights that change many, W ↦ f(W), while the network's own stay as they are.

`--adapter lora:r=8,on=in_proj+out_proj` names one, with its options. A file that is put here is
found.

An adapter is a parametrisation of a weight: whoever reads `module.weight` reads f(W), the fused
kernels too, for they are handed weights and no modules. So no forward pass knows of adapters, and
gradients reach them through every kernel. A fit ends with f(W) in the place of W: what is kept and
exported is a network like any other.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils import parametrize

from genodiff.backbones.backbone import InitialValues
from genodiff.errors import UsageError, did_you_mean
from genodiff.registry import Registry
from genodiff.settings import Settings

_DRAWS = 0xADA9  # an adapter's place among the draws of a seed
_OWN_NAMES = {"dt_weight": "dt_proj", "conv_weight": "conv"}  # of parameters that are no modules
_NOT_USUAL = ("conv", "modulation", "embedding", "head", "classes", "recalled", "A_log")


class AdapterOptions(Settings):
    """The options that every adapter has."""

    on: Annotated[tuple[str, ...], Field(description="the weights; empty: every projection")] = ()


class Adapter(nn.Module):
    """f: a weight (out, in) to the weight that is used. At first f(W) is W."""

    options: ClassVar[type[AdapterOptions]] = AdapterOptions

    def __init__(self, weight: Tensor, draws: InitialValues, options: Any) -> None:
        super().__init__()

    def forward(self, weight: Float[Tensor, "out inp"]) -> Float[Tensor, "out inp"]:
        """The weight that is used."""
        raise NotImplementedError


ADAPTERS: Registry[type[Adapter]] = Registry("adapter", package=__name__)
"""The adapters by name."""


def parse_adapter(word: str) -> tuple[type[Adapter], AdapterOptions]:
    """`NAME` or `NAME:KEY=VALUE,…`, where a value of several words has + between them.

    Returns the adapter and its options. Raises `UsageError`.

    >>> parse_adapter("lora:r=4,on=in_proj+out_proj")[1].on
    ('in_proj', 'out_proj')
    """
    name, _, rest = word.partition(":")
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key in values:
            fix = "write for example lora:r=8,on=in_proj+out_proj"
            raise UsageError(f"--adapter {word}: '{part}' is no KEY=VALUE of its own", fix=fix)
        values[key] = tuple(value.split("+")) if key == "on" else value
    known = None
    try:
        adapter = ADAPTERS[name]
        fields = adapter.options.model_fields
        known = ", ".join(f"{k} ({f.description})" for k, f in fields.items())
        return adapter, adapter.options.parse(values)
    except UsageError as fault:
        advice = None if known is None else f"its options are {known}"
        raise UsageError(f"--adapter {word}: {fault.what}", fix=advice) from None


@contextmanager
def adapted_weights(backbone: nn.Module, word: str | None, seed: int) -> Iterator[None]:
    """Within it the network's weights are read through adapters, and these alone are trained.

    Afterwards each weight is what its adapter made of it, and is a plain parameter again. Without a
    word nothing is done. Raises `UsageError` for weights that the network does not have.
    """
    if word is None:
        yield
        return
    adapter, options = parse_adapter(word)
    places, draws = find_weights(backbone, options.on), InitialValues(seed ^ _DRAWS)
    backbone.requires_grad_(False)
    for module, attribute in places:
        weight = getattr(module, attribute)
        made = adapter(weight.detach(), draws, options).to(weight)
        parametrize.register_parametrization(module, attribute, made)
    try:
        yield
    finally:
        for module, attribute in places:
            parametrize.remove_parametrizations(module, attribute, leave_parametrized=True)
        backbone.requires_grad_(True)


def find_weights(backbone: nn.Module, on: Sequence[str]) -> list[tuple[nn.Module, str]]:
    """(module, attribute) of each matrix meant, in their order; none named, all projections.

    Raises `UsageError` for a name that no matrix has.
    """
    matrices = [
        (name, (backbone.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]))
        for name, parameter in backbone.named_parameters()
        if parameter.ndim == 2
    ]
    parts = {name: _name_parts(name) for name, _ in matrices}
    known = sorted({part for name in parts for part in parts[name]} - {"A_log"})
    for wanted in on:
        if wanted not in known:
            what = f"--adapter: no weight '{wanted}' in this network; {did_you_mean(wanted, known)}"
            raise UsageError(what)
    if on:
        return [place for name, place in matrices if parts[name] & set(on)]
    return [place for name, place in matrices if not parts[name] & set(_NOT_USUAL)]


def _name_parts(name: str) -> set[str]:
    """The words by which a parameter is called: those of its place but numbers and `weight`."""
    words = {_OWN_NAMES.get(part, part) for part in name.removesuffix(".weight").split(".")}
    return {w.removesuffix("_back") for w in words if not w.isdigit()} - {"blocks", "mixer"}
