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
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from typing import Any, Literal, NamedTuple, TypeVar

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


JointDraw = Callable[[int, Tensor, Tensor, Tensor, Tensor, float], tuple[Tensor, bool]]
"""Draws all tokens that a step reveals in a sequence together, where they constrain another.

(the sequence's row, its tokens (L,), which positions are due (L,), the logarithms of the targets'
weights (L, K) in double precision, uniforms (L,), by how much each logarithm may be off) -> the
columns at the due positions (n,), and whether such errors could change one.
"""


@dataclass(frozen=True, eq=False)
class Reveal:
    """Positions of some sequences that a step reveals, and what the network says of them."""

    rows: Int[Tensor, " A"]  # the sequences
    due: Bool[Tensor, "A L"]
    logits: Float[Tensor, "*positions V"]  # at all positions, or (n, V) at the due ones
    sigma: Float[Tensor, " A"]  # as the denoiser was told

    @cached_property
    def places(self) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"]]:
        """Row of `rows` and position of each due token; the order of all that is (n, ...)."""
        at, position = self.due.nonzero(as_tuple=True)
        return at, position

    @property
    def due_logits(self) -> Float[Tensor, "n V"]:
        """The logits at the due positions."""
        return self.logits if self.logits.ndim == 2 else self.logits[self.places]


class Steer:
    """What guides a sampler: it moves logits before a draw, and sequences after it."""

    tilts = False
    """Whether it moves logits; what is drawn together, by `joint`, takes none that are moved."""

    def tilt(self, filling: "Filling", step: Reveal) -> Float[Tensor, "n K"] | None:
        """What is added to the logits of the targets at each due position."""
        return None

    def move(self, filling: "Filling", step: Reveal) -> None:
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
    uses_steps: bool = True  # else it takes as many steps as there are evaluations
    remasks: bool = False  # may evaluate more often than there are masks, at most `steps` times
    steers: bool = False  # obeys `SamplerOptions.steer`: it remembers nothing but the sequences
    judges_tokens: bool = False  # its order looks at drawn tokens: not the denoiser's law
    order: Order | None = None  # where its law has an exact likelihood (`order_likelihood.py`)

    def __post_init__(self) -> None:
        own, counted = self.settings, list_settings(self.evaluations, 2)
        if not counted.items() <= own.items():
            what = f"`evaluations` counts with {counted}, and `draw` has the settings {own}"
            raise UsageError(what, fix="give both the same names and defaults")

    @property
    def settings(self) -> dict[str, float]:
        """The names of its own settings, with their defaults."""
        return list_settings(self.draw, 4)

    def count_with(self, options: Mapping[str, float]) -> Callable[..., float]:
        """`evaluations`, of n masks and a share, under the sampler's own settings `options`."""
        own = list_settings(self.evaluations, 2).keys() & options.keys()
        return partial(self.evaluations, **{name: options[name] for name in own})


def list_settings(call: Callable[..., Any], first: int) -> dict[str, float]:
    """The arguments of a function from number `first` on, with their defaults."""
    return {one.name: one.default for one in [*signature(call).parameters.values()][first:]}


def list_samplers(kind: Kind, first: tuple[str, ...]) -> dict[str, Sampler]:
    """The samplers for such a network, those named `first` before the others."""
    fitting = {name: one for name, one in SAMPLERS.items() if kind in one.fits}
    return {name: fitting[name] for name in first} | fitting


Draws = TypeVar("Draws", bound=Callable[..., Sampled])


def sampler(name: str, **facts: Any) -> Callable[[Draws], Draws]:
    """A decorator that registers a function as the sampler `name`; `facts` are those of `Sampler`.

    Its arguments after `options` are its own settings: numbers, each with a default. `evaluations`
    takes those that it depends on. It runs without gradients. Raises `UsageError` where the
    settings of the two differ.
    """

    def register(draw: Draws) -> Draws:
        quiet: Draws = torch.no_grad()(draw)
        SAMPLERS.add(name, Sampler(quiet, **facts))
        return quiet

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


def rank(score: Float[Tensor, "A L"], u: Float[Tensor, "A L"]) -> Int[Tensor, "A L"]:
    """The positions of each row, the largest score first; ties go by the smaller uniform."""
    by_u = u.argsort(dim=-1, stable=True)
    # The stable sort by score leaves ties in the order of the uniforms.
    return by_u.gather(1, score.gather(1, by_u).argsort(dim=-1, stable=True, descending=True))


def take_best(
    score: Float[Tensor, "A L"], u: Float[Tensor, "A L"], n: Int[Tensor, " A"]
) -> tuple[Bool[Tensor, "A L"], Float[Tensor, " A"], Float[Tensor, " A"]]:
    """The first n of `rank` in each row, the least score among them, and the best of the others."""
    first_n = torch.arange(score.shape[1]).to(n) < n[:, None]
    taken = torch.zeros_like(score, dtype=torch.bool).scatter(1, rank(score, u), first_n)
    least = score.masked_fill(~taken, torch.inf).amin(-1)
    return taken, least, score.masked_fill(taken, -torch.inf).amax(-1)


Choice = Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]]
"""(rows, their logits, an error of these) -> what is chosen for each row, and whether such errors
could change it."""


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
        t: float | Float[Tensor, " A"],
        due: Bool[Tensor, "A L"] | None = None,
    ) -> tuple[Float[Tensor, "*positions V"], Float[Tensor, " A"]]:
        """The logits of these sequences at their times, and the sigma that the denoiser saw.

        Where it is known which positions are `due`, a denoiser with a large vocabulary gives theirs
        alone, (n, V).
        """
        times = t if isinstance(t, Tensor) else torch.full_like(self.u_token[rows, 0], t)
        return self.ask(rows, self.diffusion.sigma(times), due)

    def ask(
        self, rows: Int[Tensor, " A"], sigma: Float[Tensor, " A"], due: Tensor | None = None
    ) -> tuple[Float[Tensor, "*positions V"], Float[Tensor, " A"]]:
        """`evaluate` at a given sigma."""
        self.nfe[rows] += 1
        self.exact.clear()  # sequences have changed since
        if (
            due is not None
            and len(self.diffusion.targets) >= LARGE
            and getattr(self.denoiser, "selects_rows", False)
        ):
            return self.denoiser(self.x[rows], sigma, rows=due), sigma
        return of_rows(self.denoiser, rows)(self.x[rows], sigma), sigma

    def _refine(self, rows: Int[Tensor, " A"], sigma: Float[Tensor, " A"]) -> None:
        """Fill `exact` for these sequences: each alone, or some at a time."""
        assert self.refine is not None
        new = [i for i, row in enumerate(rows.tolist()) if row not in self.exact]
        most = max(1, _TOGETHER // (self.x.shape[1] * len(self.diffusion.targets)))
        most = most if self.batches_refinement else 1
        for start in range(0, len(new), most):
            part = torch.tensor(new[start : start + most], device=rows.device)
            found = of_rows(self.refine, rows[part])(self.x[rows[part]], sigma[part])
            self.exact |= zip(rows[part].tolist(), found.split(1), strict=True)

    def decide(
        self, rows: Int[Tensor, " A"], logits: Tensor, sigma: Float[Tensor, " A"], choose: Choice
    ) -> Tensor:
        """What `choose` gives for these rows; close choices are made again, by `refine`."""
        found, close = choose(rows, logits, self.tolerance)
        if self.refine is not None:
            for i in close.nonzero()[:, 0].tolist():
                self._refine(rows[i : i + 1], sigma[i : i + 1])
                found[i] = choose(rows[i : i + 1], self.exact[int(rows[i])], 0.0)[0][0]
        return found

    def reveal(
        self,
        rows: Int[Tensor, " A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "*positions V"],
        sigma: Float[Tensor, " A"],
    ) -> None:
        """Draw a token at the `due` positions, from logits of all positions or of these."""
        step, steer = Reveal(rows, due, logits, sigma), self.steer
        if steer is not None and steer.tilts and self.joint is not None:
            raise UsageError(TILTED_AND_JOINT[0], fix=TILTED_AND_JOINT[1])
        tilt = None if steer is None else steer.tilt(self, step)
        tokens = self.choose(step, self.u_token[rows], tilt)
        at, position = step.places
        self.x[rows[at], position] = tokens
        if steer is not None:
            steer.move(self, step)

    def choose(
        self, step: Reveal, u: Float[Tensor, "A L"], tilt: Float[Tensor, "n K"] | None = None
    ) -> Int[Tensor, " n"]:
        """A token for each of the n due positions, from its `u`; sequences stay as they are.

        `tilt` is added to the logits of the targets.
        """
        if self.joint is not None:
            return self._choose_jointly(step, u)
        at, position = step.places
        wanted, u = self.diffusion.target_logits(step.due_logits), u[at, position]
        wanted = wanted if tilt is None else wanted.double() + tilt
        column, close = self.draw_columns(wanted, u, self.tolerance, slice(None))
        if self.refine is not None:
            doubtful = at[close].unique()
            self._refine(step.rows[doubtful], step.sigma[doubtful])
            for i, row in zip(doubtful.tolist(), step.rows[doubtful].tolist(), strict=True):
                mine = close & (at == i)
                exact = self.diffusion.target_logits(self.exact[row][0, position[mine]])
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

    def _choose_jointly(self, step: Reveal, u: Float[Tensor, "A L"]) -> Int[Tensor, " n"]:
        """`choose`, sequence by sequence, by `joint`."""
        assert self.joint is not None
        scale = 1 / self.draw.temperature
        logw = self.diffusion.target_logits(step.logits).double() * scale
        x, error = self.x[step.rows], self.tolerance * scale
        columns = [torch.zeros(0, dtype=torch.int64, device=x.device)]
        for i in step.due.any(-1).nonzero()[:, 0].tolist():
            row, given = int(step.rows[i]), (x[i], step.due[i])
            column, close = self.joint(row, *given, logw[i], u[i], error)
            if self.refine is not None and close:
                self._refine(step.rows[i : i + 1], step.sigma[i : i + 1])
                better = self.diffusion.target_logits(self.exact[row][0]).double() * scale
                column, _ = self.joint(row, *given, better, u[i], 0.0)
            columns.append(column)
        return self.targets[torch.cat(columns)]

    def done(self) -> Sampled:
        """The sequences as they are."""
        return Sampled(self.x, self.nfe)
