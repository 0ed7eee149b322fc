"""The networks that a run may be made of: the union of their settings, and of the networks
themselves.

Every network is called `(xt, sigma, lengths, rows=...) -> logits` and has `features`,
`hidden_states` and `d_out`; its settings have `kind`, `build`, `n_parameters`, `paired` (both
strands are read), `causal` and `time_conditioned` (sigma matters). With `rows`, a mask over
positions, the head runs on those alone (`selects_rows`).
"""

from typing import Annotated, get_args

from pydantic import Field

from genodiff.backbones.caduceus import Caduceus, CaduceusSettings
from genodiff.backbones.dimamba import DiMamba, DiMambaSettings
from genodiff.backbones.dit import DiT, DiTSettings

Backbone = Caduceus | DiT | DiMamba

BackboneSettings = Annotated[
    CaduceusSettings | DiTSettings | DiMambaSettings, Field(discriminator="kind")
]

KINDS: dict[str, type[CaduceusSettings] | type[DiTSettings] | type[DiMambaSettings]] = {
    settings.model_fields["kind"].default: settings
    for settings in get_args(get_args(BackboneSettings)[0])
}
"""The settings of each kind of network."""
