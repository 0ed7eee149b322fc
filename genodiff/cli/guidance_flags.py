"""The flags of guidance, of the verbs that sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.api.guiding import list_guidances
from genodiff.cli.common import convert_whole_number
from genodiff.errors import UsageError

Label = Annotated[
    str | None,
    Parameter(help="Draw from this class of a run with labels; with cfg, guide to it."),
]


def read_settings(given: Sequence[str]) -> dict[str, float]:
    """Settings NAME=NUMBER by name. Raises `UsageError` for what is none."""
    found = {}
    for one in given:
        name, _, value = one.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            what = f"the setting {one!r} is not NAME=NUMBER"
            raise UsageError(what, fix="write it as eta=0.1") from None
    return found


@Parameter(name="*")
@dataclass(frozen=True)
class GuidanceFlags:
    """Guidance by an oracle or a network."""

    guidance: Annotated[
        str | None,
        Parameter(help=f"Guide by an oracle or a network: {', '.join(list_guidances())}."),
    ] = None
    oracle: Annotated[
        str | None,
        Parameter(help="What is to be large: MODULE:FUNCTION, or a fine-tuned unit's folder."),
    ] = None
    oracle_input: Annotated[
        Literal["strings", "ids", "one-hot"] | None,
        Parameter(help="What the function takes [one-hot for a torch module, else strings]."),
    ] = None
    oracle_label: Annotated[
        str | None, Parameter(help="The class of a fine-tuned model whose log-odds count.")
    ] = None
    oracle_timeout: Annotated[
        float | None, Parameter(help="Seconds that the oracle may take for a batch.")
    ] = None
    strength: Annotated[
        float | None,
        Parameter(help="How strongly (default 1); 0 is the sampler without guidance, bit for bit."),
    ] = None
    conditional: Annotated[
        str | None, Parameter(help="For cfg: the run whose law is wanted, or give --label.")
    ] = None
    guidance_option: Annotated[
        list[str] | None,
        Parameter(
            name=["--guidance-option"],
            help="A setting of the guidance, as particles=32; may be given several times.",
            negative="",
        ),
    ] = None
    max_calls: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Refuse what may ask the oracle for more sequences for a record.",
        ),
    ] = None

    def read(self) -> dict[str, Any] | None:
        """The arguments of `GuideSettings`; None without guidance.

        Raises `UsageError` for settings of a guidance that is not there.
        """
        told = {
            "oracle": self.oracle,
            "form": self.oracle_input,
            "label": self.oracle_label,
            "conditional": self.conditional,
            "max_calls": self.max_calls,
            "timeout": self.oracle_timeout,
        }
        if self.guidance is not None:
            options = read_settings(self.guidance_option or ())
            strength = 1.0 if self.strength is None else self.strength
            return {"guidance": self.guidance, "strength": strength, "options": options, **told}
        beyond = (*told.values(), self.strength, self.guidance_option)
        if any(one is not None for one in beyond):
            raise UsageError(
                "an oracle or a setting of guidance, and no guidance",
                fix="give --guidance smc, say",
            )
        return None
