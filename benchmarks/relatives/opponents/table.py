"""The tables of RESULTS.md, from what compare.py wrote.

python table.py JUDGED.json ...
"""

import json
import sys
from pathlib import Path

THREE = ("likelihood", "votes", "headcount")
BASELINES = ("phyloP LRT", "phyloP GERP", "phastCons", "LAST: counts + 1/2",
             "LAST: counts + exchange prior", "LAST: share with REF",
             "LAST: formula of one score", "LAST: formula of votes",
             "LAST: formula of headcount")  # fmt: skip
PRIOR = " + transition prior"


def show(one: dict, name: str) -> str:
    """The figure, and how much the one score is ahead; bold where Holm's p is below .05."""
    if name not in one:
        return ""
    found = one[name]
    gap, low, high = found["one score ahead by"]
    sure = "**" if found["p, Holm"] < 0.05 else ""
    return f"{found['value'][0]:.3f} {sure}{gap:+.3f}{sure} [{low:+.3f}, {high:+.3f}]"


def write(title: str, found: dict, names: tuple[str, ...], own: str) -> None:
    print(f"\n**{title}**\n\n| set | n, positive | {own} | " + " | ".join(names) + " |")
    print("|---" * (3 + len(names)) + "|")
    for name, one in found.items():
        if own in one:
            value, low, high = one[own]["value"]
            cells = [name, f"{one['n']}, {one['positive']}", f"{value:.3f} [{low:.3f}, {high:.3f}]"]
            print("| " + " | ".join([*cells, *(show(one, k) for k in names)]) + " |")


def main() -> None:
    found: dict = {}
    for path in sys.argv[1:]:
        found |= json.loads(Path(path).read_text())
    whole = {k: v for k, v in found.items() if not k.endswith("common sites")}
    write("Beside the other methods of ours", whole, THREE, "one score")
    write("Beside PHAST and counts", whole, BASELINES[:6], "one score")
    write("The same formulas on LAST's columns", whole, BASELINES[6:], "one score")
    primed = tuple(name + PRIOR for name in (*THREE, *BASELINES[:4]))
    write("Each with a transition prior fitted on the choosing half", whole, primed,
          f"one score{PRIOR}")  # fmt: skip
    common = {k: v for k, v in found.items() if k.endswith("common sites")}
    write("Positions that every score covers", common, BASELINES[:4], "one score")
    for name in (*THREE, *BASELINES):
        sets = [one[name] for one in whole.values()]
        sure = [one for one in sets if one["p, Holm"] < 0.05]
        ahead = sum(one["one score ahead by"][0] > 0 for one in sure)
        print(f"\n{name}: ahead on {ahead}, behind on {len(sure) - ahead} of {len(sets)} sets")


if __name__ == "__main__":
    main()
