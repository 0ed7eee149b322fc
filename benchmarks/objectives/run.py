"""The tables of objectives at equal tokens: every comparison of this folder, and RESULTS.md.

    python benchmarks/objectives/run.py --fasta sacCer3.fa.gz --text tinyshakespeare.txt.gz [--only
    NAME] [--threads 1]

Each comparison goes on where it stopped. --only-write makes RESULTS.md again from what is there;
FINDINGS.md is its end.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import cpu, genodiff, last_session, plain  # noqa: E402

SPECS = {
    "yeast-470k": "--fasta",
    "yeast-ablation": "--fasta",
    "shakespeare-470k": "--text",
    "shakespeare-ablation": "--text",
    "shakespeare-long": "--text",
}
"""The specs of this folder, and the flag that their data come by."""


def section(name: str, out: Path, words: list[object]) -> list[str]:
    """A comparison's tables, and what they were made with; its page beside them."""
    lines = (out / "table.md").read_text(encoding="utf-8").splitlines()
    runs = json.loads((out / "results.json").read_text(encoding="utf-8"))["rows"]
    sessions = [last_session(out / "runs" / run) for row in runs for run in row["runs"]]
    commits = ", ".join(dict.fromkeys(str(session["git"])[:12] for session in sessions))
    threads = ", ".join(dict.fromkeys(str(session["threads"]) for session in sessions))
    shutil.copy(out / "compare.html", HERE / f"{name}.html")
    made = (
        f"`{plain(*words)}`; trained at {commits} on {cpu()}, {threads} thread; with curves: "
        f"[{name}.html]({name}.html)."
    )
    return [f"#{line}" if line.startswith("#") else line for line in lines] + ["", made, ""]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fasta", type=Path, help="yeast, sacCer3")
    parser.add_argument("--text", type=Path, help="tinyshakespeare")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/objectives"), help="where everything is kept"
    )
    parser.add_argument("--only", choices=sorted(SPECS), help="one comparison")
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--only-write", action="store_true", help="make RESULTS.md again from what is there"
    )
    asked = parser.parse_args()
    text = [
        "# Objectives at equal tokens",
        "",
        "Several objectives and networks on one store: equal tokens, equal parameters, the "
        "same windows.",
        "Written by `benchmarks/objectives/run.py`; what each objective's figure bounds stands "
        "in the README.",
        "",
    ]
    for name, flag in SPECS.items():
        data = asked.fasta if flag == "--fasta" else asked.text
        words: list[object] = [
            "compare",
            HERE / f"{name}.yaml",
            *([flag, data] if data else []),
            "--out",
            asked.out / name,
        ]
        if not asked.only_write and asked.only in (None, name):
            genodiff(*words, *(["--threads", asked.threads] if asked.threads else []), capture=True)
        if (asked.out / name / "table.md").exists():
            text += section(name, asked.out / name, words[:-2])
    findings = HERE / "FINDINGS.md"
    text += [findings.read_text(encoding="utf-8")] if findings.exists() else []
    (HERE / "RESULTS.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
