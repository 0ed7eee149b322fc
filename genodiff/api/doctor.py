"""What works on this machine: `genodiff.doctor`."""

from __future__ import annotations

from typing import Any

from genodiff.errors import MachineError, printable
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults


@own_defaults()
def doctor(*, device: str = "auto", offline: bool = False) -> dict[str, Any]:
    """The checks of this machine: `{"checks": [{"name", "status", "detail", "fix"}], "scan"}`.

    `status` is ok, warn or fail, and `fix` says how to repair it. `scan` is the selective scan in
    use, None where torch does not run. With `offline` the network is not tried. Nothing is written
    or downloaded.
    """
    from genodiff.diagnosis.checks import Check, check_machine, report

    checks, scan = check_machine(offline=offline), None
    try:
        choose_device(device)
        from genodiff.diagnosis import selftest

        more, scan = selftest.check_torch()
        checks += more
    except ImportError as fault:
        what = f"cannot be imported: {printable(fault, 160)}"
        checks.append(Check("torch", "fail", what, "install genodiff again in a new environment"))
    except MachineError as fault:
        checks.append(Check("device", "fail", fault.what, fault.fix or ""))
    return report(checks, scan)
