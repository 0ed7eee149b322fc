"""Random variants of the kinds that a genome has few of, such as insertions into long homopolymers.

Among so many random variants there may be none of a rare kind. Its members are then looked for
among further draws of its class, and those alone are scored. They have the law of all random
variants, given their kind. So the percentile of a variant among them is what it is among the
members of a common kind.

At most `MOST_DRAWS` draws are looked through. What is rarer than that has no percentile.
"""

from collections.abc import Callable, Mapping, Sequence

from genodiff.io.variants import Allele
from genodiff.variants.background_draws import VariantDraws
from genodiff.variants.background_strata import list_strata

MOST_DRAWS = 1 << 16

FindGroup = Callable[[Sequence[str]], str | None]
"""The group of a variant, by its strata."""


class RareSearch:
    """Looks for members of several groups at once, the first time that one of them is asked for.

    `wanted` says how many of each; `first` is the number of the first draw. What is found of one
    group does not depend on which others are wanted. `tick` is told how many draws were looked at.
    """

    def __init__(
        self,
        draws: VariantDraws,
        find_group: FindGroup,
        wanted: Mapping[str, int],
        first: int,
        tick: Callable[[int, int], None] | None = None,
    ) -> None:
        self._draws, self._find_group, self._first = draws, find_group, first
        self._wanted, self._tick = dict(wanted), tick
        self._found: dict[str, list[Allele]] | None = None

    def find(self, group: str) -> list[Allele]:
        """The members of a group, in the order of their draws; fewer than wanted if it is rare."""
        if self._found is None:
            self._found = self._look()
        return self._found[group]

    def _look(self) -> dict[str, list[Allele]]:
        found: dict[str, list[Allele]] = {group: [] for group in self._wanted}
        lacking = {group for group, n in self._wanted.items() if n > 0}
        size, genome = self._draws.size, self._draws.genome
        for number in range(MOST_DRAWS):
            if not lacking:
                break
            for one in self._draws.draw(self._first + number):
                group = self._find_group(list_strata(one, size, genome))
                if group is None or group not in lacking:
                    continue
                found[group].append(one)
                if len(found[group]) == self._wanted[group]:
                    lacking.remove(group)
            if self._tick is not None and not number % 512:
                self._tick(number, MOST_DRAWS)
        return found
