"""Guided sampling of DNA: which guidance, how strong, by which oracle, and within how many calls.

    Guiding(name, strength, oracle=..., conditional=..., options=..., max_calls=...)

`Guiding.fill` fills one window of each record. The oracle always sees the record whole, with what
stands outside the window.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.diffusion.guided import GUIDANCES, Aim, Guided, GuidedChain
from genodiff.diffusion.sampler import TILTED_AND_JOINT, Sampler
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.generate.oracle import Oracle, hash_callable, load_oracle
from genodiff.generate.sampling import GuideSettings, check_guide, is_unit
from genodiff.jobs.request import find_named
from genodiff.models.opening import open_language, open_model
from genodiff.registry import refuse_unknown
from genodiff.runs.trained_model import TrainedModel

LARGEST = 1e30  # of rewards in nats: the chances that they tilt are float32


@dataclass(frozen=True)
class Guiding:
    """How to guide. Raises `UsageError` for what cannot be meant.

    `oracle` is for guidances by a reward, `conditional` (a model) for `cfg`. `options` are the
    guidance's own settings. `max_calls` bounds the oracle's sequences for each record.
    """

    name: str
    strength: float
    oracle: Oracle | None = None
    conditional: TrainedModel | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    max_calls: int | None = None

    def __post_init__(self) -> None:
        one = GUIDANCES[self.name]
        if not math.isfinite(self.strength):
            raise UsageError(f"--strength {self.strength} is not finite", fix="give 1, say")
        if abs(self.strength) > LARGEST:
            what = f"--strength {self.strength:g} is larger than can be weighed"
            raise UsageError(what, fix="give 1, say")
        refuse_unknown(f"guidance '{self.name}'", self.options, one.settings)
        for name, value in self.options.items():
            if not math.isfinite(value):
                raise UsageError(f"{name} = {value} is not a finite number", fix="give 8, say")
        by_network = one.needs == "conditional"
        if by_network and self.oracle is not None:
            what = f"guidance '{self.name}' uses a network, not an oracle"
            raise UsageError(what, fix="leave --oracle out, or give --guidance smc")
        if by_network and self.conditional is None:
            what = f"guidance '{self.name}' uses a network"
            fix = "give --label CLASS of a run with labels, or --conditional RUN"
            raise UsageError(what, fix=fix)
        if not by_network and self.oracle is None:
            raise UsageError(f"guidance '{self.name}' uses an oracle", fix="give --oracle")
        if not by_network and self.conditional is not None:
            what = f"guidance '{self.name}' uses an oracle, not another network"
            raise UsageError(what, fix="leave --conditional out, or give --guidance cfg")
        if self.max_calls is not None and self.max_calls < 1:
            raise UsageError(f"--max-calls {self.max_calls}", fix="give 1 or more")
        one.calls(1, 1, 4, **self.options)  # raises for a setting that means nothing

    def describe(self) -> dict[str, Any]:
        """What decides the records, for a header, a sidecar and a request's digest."""
        conditional = None if self.conditional is None else self.conditional.digest
        return {
            "guidance": self.name,
            "strength": self.strength,
            "guidance_options": dict(GUIDANCES[self.name].settings) | dict(self.options),
            "oracle": None if self.oracle is None else self.oracle.name,
            "oracle_sha256": None if self.oracle is None else self.oracle.digest,
            "conditional": conditional,
        }

    @property
    def particles(self) -> int:
        """Sequences that are drawn side by side for each record."""
        return 1 if self.strength == 0 else GUIDANCES[self.name].particles(**self.options)

    def fill(
        self,
        chain: GuidedChain,
        xt: Tensor,
        records: Sequence["Seen"],
        alphabet: Alphabet,
        conditional: tuple[Callable[..., Tensor], Callable[..., Tensor]] | None,
    ) -> Guided:
        """The windows xt (B, L) of records, filled. Raises `UsageError`, `DataError`.

        `conditional` are the network of `self.conditional` and the same in double precision.
        """
        reward = None
        if self.oracle is not None:
            targets = chain.diffusion.targets
            reward = _OracleReward(self.oracle, self.strength, records, alphabet, targets)
        aim = Aim(self.strength, reward, *(conditional or (None, None)))
        return GUIDANCES[self.name].run(chain, xt, aim, **self.options)

    def check_record(
        self,
        windows: Sequence[int],
        sampler: Sampler,
        steps: int,
        letters: int,
        *,
        together: bool,
    ) -> None:
        """Raises `UsageError` where a record cannot be guided so, or may take too many calls.

        `windows` are the masks of each of its windows; `letters` may be drawn.
        """
        if together and GUIDANCES[self.name].tilts:
            what, remedy = TILTED_AND_JOINT
            raise UsageError(what, fix=remedy)
        most = 0
        for masks in windows if self.strength != 0 else ():
            reveals = min(masks, steps) if sampler.uses_steps else masks
            each = (masks * steps, steps) if sampler.remasks else (masks, reveals)
            most += GUIDANCES[self.name].calls(*each, letters, **self.options) if masks else 0
        if self.max_calls is not None and most > self.max_calls:
            what = f"guidance {self.name} may ask the oracle {most:,} times for a record, "
            fix = "give fewer --steps or particles, or a larger --max-calls"
            raise UsageError(f"{what}more than --max-calls {self.max_calls:,}", fix=fix)

    def check(self, model: TrainedModel, sampler: Sampler, name: str) -> None:
        """Raises `UsageError`, `CheckpointError` where model or sampler cannot be guided so."""
        if model.alphabet.domain != "dna":
            raise UsageError("guidance is for DNA, and this is a model of text", fix="leave it out")
        if not sampler.steers or model.objective.is_causal:
            fix = "use ancestral or first-hitting, say"
            if not any(one.steers for one in model.objective.samplers.values()):
                fix = "give a run of --objective mdlm"
            raise UsageError(f"sampler '{name}' cannot be guided", fix=fix)
        other = self.conditional
        if other is not None and (
            other.alphabet != model.alphabet or other.objective.kind != model.objective.kind
        ):
            what = "has other tokens or another kind of network than the model it is to guide"
            fix = "give a run of the same alphabet and objective"
            raise CheckpointError(what, file=other.run, fix=fix)


class Seen(NamedTuple):
    """A record, as ids: its window `span` is filled, and an oracle sees its `view`."""

    ids: NDArray[np.uint8]
    span: slice
    view: slice


class _OracleReward:
    """An oracle as a reward of windows: it sees each record, or a part of it, whole."""

    def __init__(
        self,
        oracle: Oracle,
        strength: float,
        records: Sequence[Seen],
        alphabet: Alphabet,
        targets: tuple[int, ...],
    ) -> None:
        self.oracle, self.strength, self.records = oracle, strength, records
        self.code_of = np.full(256, 4, np.int64)
        for code, letter in enumerate("ACGT"):
            self.code_of[int(alphabet.encode(letter)[0])] = code
        self.columns = [int(self.code_of[target]) for target in targets]

    def _show(self, record: int, x: Tensor) -> NDArray[np.int64]:
        """What the oracle sees of the record with each of `x` in its window."""
        ids, span, view = self.records[record]
        whole = np.repeat(ids[None], len(x), 0)
        whole[:, span] = x[:, : span.stop - span.start].cpu().numpy()
        shown: NDArray[np.int64] = self.code_of[whole[:, view]]
        return shown

    def __call__(self, record: int, x: Tensor) -> Tensor:
        return torch.from_numpy(self._check(self.oracle(self._show(record, x))))

    def _check(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raises `DataError` where a value, times the strength, is too large to be weighed."""
        most = float(np.abs(values).max(initial=0))
        if most * abs(self.strength) > LARGEST:
            what = f"the oracle {self.oracle.name} gave {most:g}, which --strength "
            fix = "scale the oracle's values, or give a smaller --strength"
            raise DataError(f"{what}{self.strength:g} makes larger than can be weighed", fix=fix)
        return values

    def gradient(self, record: int, x: Tensor) -> tuple[Tensor, Tensor]:
        values, seen = self.oracle.gradient(self._show(record, x))
        self._check(values)
        ids, span, view = self.records[record]
        slope = np.zeros((len(x), len(ids), 4))
        slope[:, view] = seen
        own = np.zeros((*x.shape, 5))
        own[:, : span.stop - span.start, :4] = slope[:, span]
        return torch.from_numpy(values), torch.from_numpy(own[..., self.columns])


def open_guided(
    model: TrainedModel, guide: Mapping[str, Any] | None, device: str, label: str | None = None
) -> tuple[TrainedModel, Guiding | None]:
    """The model that draws, and its guidance with oracle and network opened; None without `guide`.

    A `label` makes the model that of a class. With cfg it stays that of all, and the class is what
    it is guided to: of `conditional`, or else of the model itself. Raises `UsageError`,
    `CheckpointError`.
    """
    if guide is None:
        return (model if label is None else model.of_class(label)), None
    check_guide(guide)
    settings = GuideSettings(**guide)
    given = settings.conditional
    conditional = None if given is None else open_language(given, device)
    if GUIDANCES[settings.guidance].needs == "conditional" and label is not None:
        conditional = (conditional or model).of_class(label)
    elif label is not None:
        model = model.of_class(label)
    name, strength, oracle = settings.guidance, settings.strength, open_oracle(settings, device)
    more = settings.options, settings.max_calls
    return model, Guiding(name, float(strength), oracle, conditional, *more)


def open_oracle(settings: GuideSettings, device: str) -> Oracle | None:
    """The oracle of the settings; None where they have none. Raises `UsageError`."""
    given, form = settings.oracle, settings.form
    if given is None:
        return None
    if settings.label is not None and not is_unit(given):
        what = f"a label ({settings.label}) is of a fine-tuned oracle, and --oracle is a function"
        raise UsageError(what, fix="leave --oracle-label out")
    if not isinstance(given, str | Path):
        name = getattr(given, "__qualname__", type(given).__name__)
        digest = hash_callable(given)
        return Oracle(given, name, form, settings.timeout, digest)  # type: ignore[arg-type]
    if not is_unit(given):
        return load_oracle(str(given), form, settings.timeout)  # type: ignore[arg-type]
    model = open_model(given, device)
    if isinstance(model, TrainedModel):
        what = f"--oracle {given} is a language model, and an oracle is fine-tuned"
        raise UsageError(what, fix="give a fine-tuned unit's folder, or MODULE:FUNCTION")
    fitted = find_named("genodiff.finetuning.fitted_model:FittedOracle")(model, settings.label)

    def ask(sequences: list[str]) -> Any:
        return fitted([one.encode("ascii") for one in sequences])

    return Oracle(ask, f"{Path(given).name}@{model.digest}", "strings", settings.timeout)
