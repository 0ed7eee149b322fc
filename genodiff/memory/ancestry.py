"""Which of two bases of a population is the ancestral one, and the constraint of its site.

At the root of the population, before either base arose, stood REF or ALT. Mutation is reversible
(`tree.py`), so either is as likely before anything is read, and

    log P(ALT is ancestral) / P(REF is ancestral) = log L(ALT) - log L(REF)

with L the factors of `columns.py`: the probability of the relatives' bases, given that of the
target, summed over the inner nodes of the tree and the rates that the bases around the site allow.

`rs`: rejected substitutions (`column_rates.py`) of the column that has the likelier of both bases
in the target's place, so that a derived REF does not make its own site look less constrained. Rate
1 is that of `guess_neutral`.
"""

from typing import NamedTuple

import numpy as np

from genodiff.memory.column_rates import ColumnTest, call_columns, guess_neutral
from genodiff.memory.columns import ColumnNumbers
from genodiff.memory.evidence import Floats


class Ancestral(NamedTuple):
    """Of REF and one ALT: `odds`, log P(ALT is ancestral) / P(REF is), in nats; and `rs`."""

    odds: float
    rs: float


class Ancestry:
    """Judges sites by the numbers of related genomes."""

    def __init__(self, numbers: ColumnNumbers) -> None:
        self._test = ColumnTest(numbers, guess_neutral(numbers), tells_p=False)

    def judge(self, factors: Floats, over: Floats, ref: int, alt: int) -> Ancestral | None:
        """Judge a site: `factors` (4,), and what each genome has over it, `over` (G, 4).

        None where no genome is present.
        """
        odds = float(np.log(factors[alt]) - np.log(factors[ref]))
        likelier = np.array([alt if odds > 0 else ref], np.uint8)
        rs = float(self._test.score(call_columns(over[:, None], likelier)).rs[0])
        return None if np.isnan(rs) else Ancestral(odds, rs)
