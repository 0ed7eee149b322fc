"""The modules of a published Caduceus: its names and shapes of weights, our forward pass.

A weight stands where published code has it, so scripts, optimisers and files find it by its name.
The network's own classes read the weights through properties; nothing is copied or permuted. Ids
are the published ones throughout.
"""

from collections.abc import Callable
from math import log, sqrt
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init

from genodiff.backbones.backbone import Norm, join_strands, take_last, vote
from genodiff.backbones.caduceus import Block, CaduceusSettings
from genodiff.backbones.caduceus import Caduceus as Network
from genodiff.backbones.mamba import Mamba
from genodiff.hf.adapted_weights import read_linear, read_table, read_taps
from genodiff.kernels.direction import DirectionWeights, compute_rates
from genodiff.kernels.linear import linear


def strands_as_rows(h: Tensor) -> Tensor:
    """The rows of both strands of (B, L, 2 D), where they stand side by side."""
    given, other = h.chunk(2, -1)
    return torch.cat([given, other.flip(1, 2)])


def drop_duplicates(state: dict[str, Any], prefix: str, *names: str) -> None:
    """Removes tied weights from a state dict: published code lists them twice, this once."""
    for name in [key for key in state if key.startswith(tuple(prefix + name for name in names))]:
        del state[name]


def alias(path: str, read: Callable[[Any], Any] | None = None) -> Any:
    """A property of a module: what stands at `path` below it, as `read` takes it."""
    find = attrgetter(path)

    def get(module: nn.Module) -> Any:
        return find(module) if read is None else read(find(module))

    return property(get)


class PublishedDirection(nn.Module):
    """One direction of a mixer. With tied directions the backward one has no projections."""

    def __init__(self, settings: CaduceusSettings, projections: bool) -> None:
        super().__init__()
        s = settings
        d, e = s.d_model, s.expand * s.d_model
        self.rank, self.n_layer = s.rank, s.n_layer
        self.A_log = nn.Parameter(torch.empty(e, s.d_state))
        self.D = nn.Parameter(torch.empty(e))
        self.conv1d = nn.Conv1d(e, e, s.d_conv, groups=e, padding=s.d_conv - 1, bias=s.conv_bias)
        self.x_proj = nn.Linear(e, s.rank + 2 * s.d_state, bias=False)
        self.dt_proj = nn.Linear(s.rank, e)
        if projections:
            self.in_proj = nn.Linear(d, 2 * e, bias=s.proj_bias)
            self.out_proj = nn.Linear(e, d, bias=s.proj_bias)

    def weights(self, A: Tensor | None = None) -> DirectionWeights:
        """The weights as the kernels take them; `A` where it is known."""
        if A is None:
            (A,) = compute_rates([self.A_log])
        x, dt = read_linear(self.x_proj), read_linear(self.dt_proj)
        assert dt.bias is not None
        return DirectionWeights(*read_taps(self.conv1d), x.weight, dt.weight, dt.bias, A, self.D)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        if not hasattr(self, "in_proj"):
            drop_duplicates(state_dict, prefix, "in_proj.", "out_proj.")
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def draw_weights(self, config: dict[str, Any]) -> None:
        """Published initial values; a weight that a file has given stays as it is."""
        states = torch.arange(1.0, self.A_log.shape[1] + 1)
        init.copy_(self.A_log, states.log().expand_as(self.A_log))
        init.ones_(self.D)
        init.kaiming_uniform_(self.conv1d.weight, a=sqrt(5))
        if self.conv1d.bias is not None:
            bound = self.conv1d.weight.shape[-1] ** -0.5
            init.uniform_(self.conv1d.bias, -bound, bound)
        init.kaiming_uniform_(self.x_proj.weight, a=sqrt(5))
        scale = config.get("dt_scale", 1.0) * self.rank**-0.5
        if config.get("dt_init", "random") == "constant":
            init.constant_(self.dt_proj.weight, scale)
        else:
            init.uniform_(self.dt_proj.weight, -scale, scale)
        low, high = log(config.get("dt_min", 1e-3)), log(config.get("dt_max", 0.1))
        dt = torch.exp(low + (high - low) * torch.rand(len(self.D)))
        dt = dt.clamp(min=config.get("dt_init_floor", 1e-4))
        # The inverse of softplus.
        init.copy_(self.dt_proj.bias, dt + torch.log(-torch.expm1(-dt)))
        if hasattr(self, "in_proj"):
            init.kaiming_uniform_(self.in_proj.weight, a=sqrt(5))
            bound = (self.out_proj.weight.shape[1] * self.n_layer) ** -0.5
            init.uniform_(self.out_proj.weight, -bound, bound)
            for projection in (self.in_proj, self.out_proj):
                if projection.bias is not None:
                    init.zeros_(projection.bias)


class PublishedMixer(Mamba):
    """A mixer of one direction or two, under published names."""

    def __init__(self, settings: CaduceusSettings) -> None:
        nn.Module.__init__(self)
        s = settings
        self.strategy, self.bidirectional = s.bidirectional_strategy, s.bidirectional
        self.tied, self.recompute = s.tie_directions or not s.bidirectional, s.recompute_states
        self.mamba_fwd = PublishedDirection(s, projections=True)
        self.mamba_rev = PublishedDirection(s, not self.tied) if s.bidirectional else None

    ahead = alias("mamba_fwd")
    back = alias("mamba_rev")
    in_proj = alias("mamba_fwd.in_proj", read_linear)
    out_proj = alias("mamba_fwd.out_proj", read_linear)
    in_proj_back = alias("mamba_rev.in_proj", read_linear)
    out_proj_back = alias("mamba_rev.out_proj", read_linear)


class Submodule(nn.Module):
    """Puts `submodule.` before the names of a module's weights, as published files have it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.submodule = module

    def forward(self, *given: Any) -> Any:
        return self.submodule(*given)

    def add(self, *given: Any) -> Any:
        """Of a norm: `Norm.add`."""
        assert isinstance(self.submodule, Norm)
        return self.submodule.add(*given)


class PublishedBlock(Block):
    """A norm and a mixer. Without fusion, the norm of a paired network is wrapped too."""

    def __init__(self, settings: CaduceusSettings, wrapped_norm: bool) -> None:
        nn.Module.__init__(self)
        norm = Norm(settings.norm, settings.d_model, settings.norm_eps)
        mixer = PublishedMixer(settings)
        self.norm = Submodule(norm) if wrapped_norm else norm  # type: ignore[assignment]
        self.mixer = Submodule(mixer) if settings.paired else mixer  # type: ignore[assignment]


class StrandEmbedding(nn.Module):
    """Embeddings (B, L, 2 D) of both strands, side by side."""

    complement_map: Tensor

    def __init__(self, rows: int, width: int, complement: list[int]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, width)
        self.register_buffer("complement_map", torch.tensor(complement))

    @property
    def weight(self) -> Tensor:
        """The table of one strand, (V, D)."""
        return read_table(self.embedding)

    def forward(self, input_ids: Tensor) -> Tensor:
        other = self.embedding(self.complement_map[input_ids].flip(1))
        return torch.cat([self.embedding(input_ids), other.flip(1, 2)], -1)


class StrandHead(nn.Module):
    """Logits of each base from what both strands say about it. The weights are the embedding's."""

    complement_map: Tensor

    def __init__(self, complement: list[int]) -> None:
        super().__init__()
        self.register_buffer("complement_map", torch.tensor(complement))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        drop_duplicates(state_dict, prefix, "lm_head.")
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return vote(linear(strands_as_rows(hidden), weight), self.complement_map)


class PublishedHead(nn.Linear):
    """Logits of one strand: W h."""

    def __init__(self, width: int, rows: int) -> None:
        super().__init__(width, rows, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.weight)


class PublishedBackbone(Network):
    """A Caduceus whose weights have published names; `complement` is empty with one strand."""

    def __init__(
        self, settings: CaduceusSettings, rows: int, complement: list[int], residual_in_fp32: bool
    ) -> None:
        nn.Module.__init__(self)
        self.settings, self.residual_in_fp32 = settings, residual_in_fp32
        wrapped = settings.paired and not settings.alternate_strands
        words: nn.Module = nn.Embedding(rows, settings.d_model)
        if settings.paired:
            words = StrandEmbedding(rows, settings.d_model, complement)
        self.embeddings = nn.ModuleDict({"word_embeddings": words})
        blocks = (PublishedBlock(settings, wrapped) for _ in range(settings.n_layer))
        self.layers = nn.ModuleList(blocks)
        norm = Norm(settings.norm, settings.d_model, settings.norm_eps)
        self.norm_f = Submodule(norm) if wrapped else norm

    head = None  # logits are the models' affair
    paired = alias("settings.paired")
    blocks = alias("layers")
    final_norm = alias("norm_f")
    vocab_size = alias("embedding", len)

    @property
    def embedding(self) -> Tensor:  # type: ignore[override]
        return read_table(self.embeddings["word_embeddings"])

    @property
    def complement(self) -> Tensor | None:  # type: ignore[override]
        return getattr(self.embeddings["word_embeddings"], "complement_map", None)

    @property
    def residual_dtype(self) -> torch.dtype | None:  # type: ignore[override]
        half = self.embedding.dtype in (torch.float16, torch.bfloat16)
        return torch.float32 if self.residual_in_fp32 and half else None

    @property
    def gradient_checkpointing(self) -> bool:
        """Whether blocks are recomputed in the backward pass."""
        return self.settings.checkpointing

    @gradient_checkpointing.setter
    def gradient_checkpointing(self, wanted: bool) -> None:
        self.settings = self.settings.model_copy(update={"checkpointing": wanted})

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, *, every: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """The output of the last norm, and with `every` what published code keeps on the way.

        `input_ids` may be embeddings. Published code without fusion leaves out the last state.
        """
        if not every:
            rows = take_last(self._read(input_ids, None))
            return join_strands(rows) if self.paired else rows, []
        return (states := self.hidden_states(input_ids))[-1], states

    def embed(
        self,
        xt: Tensor,
        labels: Tensor | None = None,
        lengths: Tensor | None = None,
        recalled: Tensor | None = None,
    ) -> Tensor:
        h = xt if xt.is_floating_point() else self.embeddings["word_embeddings"](xt)
        return strands_as_rows(h) if self.paired else h
