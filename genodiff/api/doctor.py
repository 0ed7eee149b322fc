"""What works on this machine, and which genodiff it has: `genodiff.doctor` and `--version`."""

import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import genodiff
from genodiff.errors import MachineError, printable
from genodiff.jobs.machine import choose_device
from genodiff.jobs.options import Device, Offline
from genodiff.jobs.request import Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import list_ready_models
from genodiff.version import __version__, name_revision

_COLOUR = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@verb(
    "doctor",
    help="""
Check which components work on this machine.

The exit code is 5 if a required component does not work.
""",
)
@dataclass(frozen=True, kw_only=True)
class DoctorRequest(Request[dict[str, Any]]):
    """Check this machine: `{"checks": [{"name", "status", "detail", "fix"}], "scan"}`.

    `status` is ok, warn or fail, and `fix` is the remedy. `scan` is the selective scan in use, None
    if torch does not run. With `offline` the network is not tested. Nothing is written or
    downloaded.
    """

    json_help: ClassVar[str] = "Print one JSON object on stdout."
    json_indent: ClassVar[int | None] = 1

    device: Device = "auto"
    offline: Offline = False

    def answer(self, *given: Any) -> dict[str, Any]:
        from genodiff.diagnosis.checks import Check, check_machine, report

        checks, scan = check_machine(offline=self.offline), None
        try:
            choose_device(self.device)
            from genodiff.diagnosis import selftest

            more, scan = selftest.check_torch()
            checks += more
        except ImportError as fault:
            what = f"cannot be imported: {printable(fault, 160)}"
            fix = "install genodiff again in a new environment"
            checks.append(Check("torch", "fail", what, fix))
        except MachineError as fault:
            checks.append(Check("device", "fail", fault.what, fault.fix or ""))
        return report(checks, scan)

    def show(self, answer: Any) -> None:
        """Print a table on a terminal, plain lines in a pipe; no text is read as rich markup."""
        checks = answer["checks"]
        if not sys.stdout.isatty():
            for c in checks:
                print(f"{c['status']:4}  {c['name']:14}  {c['detail']}")
                if c["fix"]:
                    print(f"      -> {c['fix']}")
            return
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        short = Column(no_wrap=True)
        table = Table.grid(short, short.copy(), Column(overflow="fold"), padding=(0, 2))
        for c in checks:
            status = Text(c["status"], style=_COLOUR[c["status"]])
            table.add_row(status, Text(c["name"]), Text(c["detail"]))
            if c["fix"]:
                table.add_row("", "", Text(f"-> {c['fix']}"))
        Console(highlight=False).print(table)

    def conclude(self, answer: Any) -> str:
        """Raises `MachineError` where something that is needed does not work."""
        failed = [check["name"] for check in answer["checks"] if check["status"] == "fail"]
        if failed:
            fix = "do what `genodiff doctor` says after each ->"
            raise MachineError(f"genodiff cannot run well here: {', '.join(failed)}", fix=fix)
        return ""


def describe_version() -> str:
    """The version, alone on the first line; then commit, Python, torch, kernels, ready models.

    >>> describe_version().splitlines()[0]  # doctest: +SKIP
    '0.1.0'
    """
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = "missing"
    kernels = Path(genodiff.__file__).parent.glob("kernels/_native_*.so")
    compiled = sorted(path.stem.removeprefix("_native_") for path in kernels)
    machine = f"{platform.system()} {platform.machine()}"
    return "\n".join(
        [
            __version__,
            f"commit: {name_revision() or 'not known'}",
            f"Python {platform.python_version()}, torch {torch}, {machine}",
            f"kernels in C: {', '.join(compiled) or 'none'}",
            f"ready models: {', '.join(list_ready_models()) or 'none'}",
        ]
    )
