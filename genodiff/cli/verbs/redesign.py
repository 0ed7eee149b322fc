"""Design regions of DNA anew, under constraints that every design satisfies.

What cannot be met is said before the network runs, with a minimal conflict. With --guidance smc,
beam, best-of-n or cfg designs are guided too. The same command goes on where an interrupted one
was.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.redesign import redesign as write_designs
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def _say(told: Mapping[str, Any]) -> str:
    def count(key: str) -> int:
        return sum(record[key] for record in told["records"])

    counts = {"design": len(told["records"]), "base": count("length")}
    counts |= {"filled base": filled} if (filled := count("filled")) else {}
    counts |= {"edit": count("edits"), "evaluation": told["evaluations"]}
    return ", ".join(format_count(n, noun) for noun, n in counts.items())


redesign = make_verb(write_designs, _say)
