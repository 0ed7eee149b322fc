"""What an evaluation is asked for: data in the place of the run's own, windows, masks, limits."""

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from genodiff.data.recipe import ALL, SPLITS
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.errors import UsageError

_OF_DNA = {"domain": DNA.name}
_OF_TEXT = {"domain": TEXT.name}
_MOST_STEPS = 100_000


@dataclass(frozen=True)
class EvalOptions:
    """What is scored, and how. Options that mean something in one domain only are marked so."""

    split: str = "test"
    """Of a file that the run was not trained on too: its train part then fits the Markov lines, so
    that neither they nor the model have seen what is scored. "all": every base of the file.
    """
    repeats: int = 1
    """Masks for each window."""
    batch_size: int = 32
    """Changes the speed, not the figures."""
    seed: int = 1
    max_windows: int | None = None
    """At most so many windows, evenly spread over the split."""
    max_minutes: float | None = None
    """As many windows, evenly spread, as fit into about this time."""
    t_steps: tuple[int, ...] | None = None
    """Sampling steps whose bounds are measured with masks of their own, once more for each repeat;
    None: those that the masks of the bound itself can tell, at no cost."""
    baselines: bool = True
    """Markov lines or n-grams of the train split, and repeats."""
    offline: bool = False
    fasta: str | None = field(default=None, metadata=_OF_DNA)
    bed: str | None = field(default=None, metadata=_OF_DNA)
    soft_masked: bool = field(default=True, metadata=_OF_DNA)
    """False: soft-masked bases are masked and seen, but not counted."""
    mixture: bool | None = field(default=None, metadata=_OF_DNA)
    """The mixture of context orders; None: where it takes little time."""
    context: Literal["window", "contig"] = field(default="window", metadata=_OF_DNA)
    memory: Literal["on", "off", "exhaustive"] | None = field(default=None, metadata=_OF_DNA)
    """Mix in what the training genome holds (`window_memory.py`): where its index finds it, or
    anywhere; None: "on" where the run was trained with a memory."""
    text: str | None = field(default=None, metadata=_OF_TEXT)
    recipe: str | None = field(default=None, metadata=_OF_TEXT)
    """Another recipe in the place of the run's (zero-shot)."""

    def check(self, domain: str) -> None:
        """Raises `UsageError` for impossible numbers and for options of the other domain."""
        for option in fields(self):
            other = option.metadata.get("domain", domain)
            if other != domain and getattr(self, option.name) != option.default:
                here = DOMAINS[domain]
                raise UsageError(
                    f"--{option.name.replace('_', '-')} is for {DOMAINS[other].title}, and this "
                    f"is a {here.title} run",
                    fix=f"leave it out; {here.title} is given with {here.input_flag}",
                )
        if self.split not in (*SPLITS, ALL):
            raise UsageError(f"no split '{self.split}'", fix=f"choose {', '.join((*SPLITS, ALL))}")
        if self.split == ALL and domain != DNA.name:
            raise UsageError(
                f"--split {ALL} is for DNA, and this is a {DOMAINS[domain].title} run",
                fix=f"choose {', '.join(SPLITS)}",
            )
        for name in ("repeats", "batch_size", "max_windows"):
            value = getattr(self, name)
            if value is not None and value < 1:
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} {value} is below 1", fix="give 1 or more")
        for steps in self.t_steps or ():
            if not 1 <= steps <= _MOST_STEPS:
                raise UsageError(
                    f"--t-steps {steps} is not between 1 and {_MOST_STEPS:,}",
                    fix="give numbers of sampling steps, such as 10",
                )
        self.check_memory(self.memory not in (None, "off"))
        if self.max_minutes is not None and not 0 < self.max_minutes < math.inf:
            raise UsageError(
                f"--max-minutes {self.max_minutes} is not above 0", fix="give a time in minutes"
            )

    def check_memory(self, mixed: bool) -> None:
        """Raises `UsageError` for options that a memory, where one is mixed in, cannot have."""
        if mixed:
            for flag, given in (
                ("--context contig", self.context != "window"),
                ("--t-steps", self.t_steps is not None),
            ):
                if given:
                    what = f"--memory {self.memory or 'on'} and {flag} exclude each other"
                    raise UsageError(what, fix="leave one of them out, or give --memory off")

    @property
    def passes(self) -> int:
        """How often each window goes through the network, at most."""
        return self.repeats * (1 if self.t_steps is None else 2)

    def inputs(self) -> dict[str, Any]:
        """Settings of the run that these options replace."""
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("fasta", "bed", "recipe")
            if getattr(self, name) is not None
        }
        if self.text is not None or self.recipe is not None:
            given["text"] = None if self.text is None else str(Path(self.text).absolute())
        return given
