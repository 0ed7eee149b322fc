"""What samplers share: the registry, the state of sequences on their way, how much a step reveals.

A sampler turns masks into tokens. It is a function of a denoiser and of two uniforms per position,
in a file of `genodiff.diffusion.samplers` or of a plug-in:

    @sampler("ancestral", fits=("masked", "score"), evaluations=count_revealing_steps)
    def ancestral(diffusion, denoiser, xt, options) -> Sampled: ...

A sequence's result depends on its own masks and uniforms, never on its companions. In single
precision a denoiser's logits differ in the last digits with batch size and thread count, and a draw
close to a boundary could flip. Where `refine`, the same denoiser in double precision, is given,
every draw that an error of `tolerance` in any logit could change is decided by it. On a CPU it
takes each such sequence alone. On other devices, where a call costs more than a row, it takes some
at a time: their logits then depend on one another in the last digits of double precision.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import LARGE, Decoder, Denoiser, MaskedDiffusion
from genodiff.diffusion.mixed_noise import Noising
from genodiff.diffusion.registries import SAMPLERS as SAMPLERS
from genodiff.diffusion.schedule import Schedule
from genodiff.errors import UsageError

Kind = Literal["masked", "score", "causal", "block", "uniform"]
"""A network's logits: of x_theta at the masks, ratios of score entropy, of the next token, of
x_theta at the masks of a block that knows nothing to its right, or of x_theta at every position,
whose token may be noise (`mixed_noise`)."""

Order = Literal["fixed", "read"]
"""When a position is revealed: by its `u_order` and its place alone; or by the distributions at the
masks, of which `u_order` settles ties. Neither looks at a token that is still to come."""

TILTED = "constraints need joint draws of bases, and this guidance tilts each independently"
TILTED_AND_JOINT = TILTED, "use smc, beam, best-of-n or cfg"

_TOGETHER = 1 << 27
"""Most double-precision logits of a call that decides draws of several sequences."""


class Sampled(NamedTuple):
    """What a sampler returns."""

    x0: Int[Tensor, "B L"]  # no masks left; what was visible is unchanged
    nfe: Int[Tensor, " B"]  # evaluations of the denoiser for each sequence; `refine` is not counted


@runtime_checkable
class JointDraw(Protocol):
    """Draws all tokens that a step reveals in a sequence together, where they constrain another.

    The arguments are the sequence's row, its tokens (L,), which positions are due (L,), the
    logarithms of the targets' weights (L, K), double precision, the uniforms (L,), and by how much
    each logarithm may be off. It gives the columns at the due positions, and whether such errors
    could change one.
    """

    def __call__(
        self,
        row: int,
        x: Int[Tensor, " L"],
        due: Bool[Tensor, " L"],
        logw: Float[Tensor, "L K"],
        u: Float[Tensor, " L"],
        error: float,
    ) -> tuple[Int[Tensor, " n"], bool]: ...


@runtime_checkable
class Steer(Protocol):
    """What guides a sampler: it moves logits before a draw, and sequences after it."""

    tilts: bool
    """Whether it moves logits; what is drawn together, by `joint`, takes none that are moved."""

    def tilt(
        self,
        filling: "Filling",
        rows: Int[Tensor, " A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "A L V"],
        sigma: Float[Tensor, " A"],
    ) -> Float[Tensor, "n K"] | None:
        """What is added to the logits of the targets at each due position, in `nonzero`'s order."""

    def move(
        self,
        filling: "Filling",
        rows: Int[Tensor, " A"],
        logits: Float[Tensor, "A L V"],
        sigma: Float[Tensor, " A"],
    ) -> None:
        """Change `filling.x` after tokens were drawn: rows may become copies of others."""


@dataclass(frozen=True)
class SamplerOptions:
    """How to draw: the uniforms in [0, 1) that decide everything, and the settings."""

    u_order: Float[Tensor, "B L"]  # when a position is revealed
    u_token: Float[Tensor, "B L"]  # which token it then takes
    steps: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    refine: Denoiser | None = None  # the denoiser in double precision
    tolerance: float = 1e-4  # errors of the denoiser's logits that `refine` makes harmless
    decoder: Decoder | None = None  # the denoiser with a memory, where it is causal
    joint: JointDraw | None = None  # draws what a step reveals, in place of one position by itself
    steer: Steer | None = None  # guidance; for samplers that say so (`Sampler.steers`)
    causal: bool = False  # the denoiser's logits are of the next token
    noising: Noising | None = None  # for networks of letters as noise; None is its defaults


@dataclass(frozen=True)
class Sampler:
    """A registered sampler with what must be known of it before it runs."""

    draw: Callable[..., Sampled]  # (diffusion, denoiser, xt (B, L), options, its own settings)
    fits: tuple[Kind, ...]  # the networks that it can use
    evaluations: Callable[..., float]
    """Expected evaluations of the network for n masks, given `revealed_share` after each step and
    those of the sampler's own settings that it names (`count_with`)."""
    uses_steps: bool  # else it takes as many steps as there are evaluations
    remasks: bool = False  # may evaluate more often than there are masks, at most `steps` times
    steers: bool = False  # obeys `SamplerOptions.steer`: it remembers nothing but the sequences
    judges_tokens: bool = False  # its order looks at drawn tokens: not the denoiser's law
    order: Order | None = None  # where its law has an exact likelihood (`order_likelihood.py`)

    def __post_init__(self) -> None:
        own, counted = self.settings, _list_settings(self.evaluations, 2)
        if not counted.items() <= own.items():
            what = f"`evaluations` counts with {counted}, and `draw` has the settings {own}"
            raise UsageError(what, fix="give both the same names and defaults")

    @property
    def settings(self) -> dict[str, float]:
        """The names of its own settings, with their defaults."""
        return _list_settings(self.draw, 4)

    def count_with(self, options: Mapping[str, float]) -> Callable[..., float]:
        """`evaluations`, of n masks and a share, under the sampler's own settings `options`."""
        own = _list_settings(self.evaluations, 2).keys() & options.keys()
        return partial(self.evaluations, **{name: options[name] for name in own})


def _list_settings(call: Callable[..., Any], first: int) -> dict[str, float]:
    return {one.name: one.default for one in [*signature(call).parameters.values()][first:]}


def list_samplers(kind: Kind, first: tuple[str, ...]) -> dict[str, Sampler]:
    """The samplers for such a network, those named `first` before the others."""
    fitting = {name: one for name, one in SAMPLERS.items() if kind in one.fits}
    return {name: fitting[name] for name in first} | fitting


Draws = TypeVar("Draws", bound=Callable[..., Sampled])


def sampler(
    name: str,
    *,
    fits: tuple[Kind, ...],
    evaluations: Callable[..., float],
    uses_steps: bool = True,
    remasks: bool = False,
    judges_tokens: bool = False,
    steers: bool = False,
    order: Order | None = None,
) -> Callable[[Draws], Draws]:
    """A decorator that registers a function as the sampler `name`; see `Sampler` for the rest.

    Its arguments after `options` are its own settings: numbers, each with a default. `evaluations`
    takes those that it depends on. Raises `UsageError` where they differ from those of the sampler.
    """

    def register(draw: Draws) -> Draws:
        made = Sampler(draw, fits, evaluations, uses_steps, remasks, steers, judges_tokens, order)
        SAMPLERS.add(name, made)
        return draw

    return register


def one_per_mask(n: int, share: Float[Tensor, " S"]) -> float:
    """The evaluations of a sampler that reveals one position with each."""
    return float(n)


def count_revealing_steps(n: int, share: Float[Tensor, " S"]) -> float:
    """The expected number of steps that reveal any of n masks, each at a step drawn by itself."""
    each = np.diff(share.numpy(), prepend=0.0)
    return float((1 - (1 - each) ** n).sum())


def of_rows(denoiser: Denoiser, rows: Int[Tensor, " A"]) -> Denoiser:
    """`denoiser` for these rows of its batch, where it must be told which they are (`of_rows`)."""
    chosen: Denoiser = denoiser.of_rows(rows) if hasattr(denoiser, "of_rows") else denoiser
    return chosen


def revealed_share(schedule: Schedule, steps: int) -> Float[Tensor, " S"]:
    """The share of masks that are revealed after j = 1 .. S steps.

    (alpha(1 - j/S) - alpha(1)) / (1 - alpha(1)), and 1 for j = S: the last step reveals whatever is
    left, also where alpha(0) < 1.
    """
    if steps < 1:
        raise UsageError(f"{steps} sampling steps", fix="use 1 or more")
    grid = torch.arange(steps, -1, -1, dtype=torch.float64) / steps
    masked = schedule.masked(grid)
    share = 1 - masked[1:] / masked[0]
    share[-1] = 1.0
    return share


class Filling:
    """Sequences on their way from masks to tokens, with each one's count of evaluations."""

    def __init__(
        self,
        diffusion: MaskedDiffusion,
        denoiser: Denoiser,
        xt: Int[Tensor, "B L"],
        options: SamplerOptions,
    ) -> None:
        self.diffusion, self.denoiser, self.refine = diffusion, denoiser, options.refine
        self.x, self.u_token, self.steer = xt.clone(), options.u_token, options.steer
        self.draw, self.joint = Draw(options.temperature, options.top_p), options.joint
        # Without `refine` nobody could decide a close draw, so none is called close.
        self.tolerance = 0.0 if options.refine is None else options.tolerance
        self.targets = torch.tensor(diffusion.targets, device=xt.device, dtype=xt.dtype)
        self.masked = xt == diffusion.mask_id
        self.nfe = torch.zeros(len(xt), dtype=torch.int64, device=xt.device)
        self.exact: dict[int, Tensor] = {}  # double-precision logits by row, until the next call

    @property
    def batches_refinement(self) -> bool:
        """Whether `refine` takes several sequences at a time."""
        # Logits of a batch depend on its size in their last digits: on a CPU, no byte does.
        return self.x.device.type != "cpu"

    def is_masked(self, rows: Int[Tensor, " A"]) -> Bool[Tensor, "A L"]:
        """Where these sequences have masks now; `masked` says where they had them at first."""
        return self.x[rows] == self.diffusion.mask_id

    def evaluate(
        self,
        rows: Int[Tensor, " A"],
        t: Float[Tensor, " A"],
        due: Bool[Tensor, "A L"] | None = None,
    ) -> tuple[Float[Tensor, "*positions V"], Float[Tensor, " A"]]:
        """The logits of these sequences at their times, and the sigma that the denoiser saw.

        Where it is known which positions are `due`, a denoiser with a large vocabulary gives theirs
        alone, (n, V).
        """
        self.nfe[rows] += 1
        self.exact.clear()  # sequences have changed since
        sigma = self.diffusion.sigma(t)
        if (
            due is not None
            and len(self.diffusion.targets) >= LARGE
            and getattr(self.denoiser, "selects_rows", False)
        ):
            return self.denoiser(self.x[rows], sigma, rows=due), sigma
        return of_rows(self.denoiser, rows)(self.x[rows], sigma), sigma

    def refined(self, row: Int[Tensor, "1"], sigma: Float[Tensor, "1"]) -> Float[Tensor, "1 L V"]:
        """The double-precision logits of one sequence alone, computed once between two reveals."""
        assert self.refine is not None
        if row.item() not in self.exact:
            self.exact[int(row)] = of_rows(self.refine, row)(self.x[row], sigma)
        return self.exact[int(row)]

    def _refine_together(self, rows: Int[Tensor, " A"], sigma: Float[Tensor, " A"]) -> None:
        """Compute `refined` of these sequences, some at a time."""
        assert self.refine is not None
        new = [i for i, row in enumerate(rows.tolist()) if row not in self.exact]
        most = max(1, _TOGETHER // (self.x.shape[1] * len(self.diffusion.targets)))
        for start in range(0, len(new), most):
            part = torch.tensor(new[start : start + most], device=rows.device)
            found = of_rows(self.refine, rows[part])(self.x[rows[part]], sigma[part])
            self.exact |= zip(rows[part].tolist(), found.split(1), strict=True)

    def reveal(
        self,
        rows: Int[Tensor, " A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "*positions V"],
        sigma: Float[Tensor, " A"],
    ) -> None:
        """Draw a token at the `due` positions, from logits of all positions or of these."""
        if self.joint is not None:
            if self.steer is not None and self.steer.tilts:
                what, remedy = TILTED_AND_JOINT
                raise UsageError(what, fix=remedy)
            self._reveal_jointly(rows, due, logits, sigma)
        else:
            at, position = due.nonzero(as_tuple=True)
            steer = self.steer
            tilt = None if steer is None else steer.tilt(self, rows, due, logits, sigma)
            u = self.u_token[rows[at], position]
            self.x[rows[at], position] = self.choose(rows, due, logits, sigma, u, tilt)
        if self.steer is not None:
            self.steer.move(self, rows, logits, sigma)

    def choose(
        self,
        rows: Int[Tensor, " A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "*positions V"],
        sigma: Float[Tensor, " A"],
        u: Float[Tensor, " n"],
        tilt: Float[Tensor, "n K"] | None = None,
    ) -> Int[Tensor, " n"]:
        """A token for each of the n due positions, in the order of `nonzero`, from its `u`.

        `tilt` is added to the logits of the targets. Sequences stay as they are.
        """
        at, position = due.nonzero(as_tuple=True)
        # Two dimensions: the denoiser gave the due positions alone, in the order of `nonzero`.
        logits = logits if logits.ndim == 2 else logits[at, position]
        wanted = self.diffusion.target_logits(logits)
        wanted = wanted if tilt is None else wanted.double() + tilt
        column, close = self.draw_columns(wanted, u, self.tolerance, slice(None))
        if self.refine is not None:
            doubtful = at[close].unique()
            if self.batches_refinement:
                self._refine_together(rows[doubtful], sigma[doubtful])
            for i in doubtful.tolist():
                mine = close & (at == i)
                found = self.refined(rows[i : i + 1], sigma[i : i + 1])[0, position[mine]]
                exact = self.diffusion.target_logits(found)
                exact = exact if tilt is None else exact + tilt[mine]
                column[mine], _ = self.draw_columns(exact, u[mine], 0.0, mine)
        return self.targets[column]

    def draw_columns(
        self,
        logits: Float[Tensor, "n K"],
        u: Float[Tensor, " n"],
        tolerance: float,
        which: slice | Bool[Tensor, " N"],
    ) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
        """As `Draw`, for those of the due positions that are named by `which`."""
        return self.draw(logits, u, tolerance)

    def complete_jointly(
        self,
        rows: Int[Tensor, " A"],
        logits: Float[Tensor, "A L V"],
        sigma: Float[Tensor, " A"],
        u: Float[Tensor, "A L"],
    ) -> Int[Tensor, "A L"]:
        """These sequences with all their masks drawn together; they themselves stay as they are."""
        other = copy(self)
        other.x, other.u_token = self.x.clone(), self.u_token.clone().double()
        other.u_token[rows] = u.double()
        other._reveal_jointly(rows, self.is_masked(rows), logits, sigma)
        return other.x[rows]

    def _reveal_jointly(
        self,
        rows: Int[Tensor, " A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "A L V"],
        sigma: Float[Tensor, " A"],
    ) -> None:
        """As `reveal`, sequence by sequence, by `joint`."""
        assert self.joint is not None
        scale = 1 / self.draw.temperature
        logw = self.diffusion.target_logits(logits).double() * scale
        x, u, error = self.x[rows], self.u_token[rows], self.tolerance * scale
        columns = []
        for i in due.any(-1).nonzero()[:, 0].tolist():
            number = int(rows[i])
            column, close = self.joint(number, x[i], due[i], logw[i], u[i], error)
            if self.refine is not None and close:
                exact = self.refined(rows[i : i + 1], sigma[i : i + 1])[0]
                better = self.diffusion.target_logits(exact).double() * scale
                column, _ = self.joint(number, x[i], due[i], better, u[i], 0.0)
            columns.append(column)
        if columns:
            at, position = due.nonzero(as_tuple=True)
            self.x[rows[at], position] = self.targets[torch.cat(columns)]

    def done(self) -> Sampled:
        """The sequences as they are."""
        return Sampled(self.x, self.nfe)
