"""Oracles: any callable that gives sequences of DNA numbers, asked in batches and not trusted.

An oracle takes N sequences of one length in one of three forms, and returns N finite numbers:

    strings   a list of N strings of A, C, G and T (N where a base is not known)
    ids       an int64 array (N, L) of 0, 1, 2, 3 for A, C, G, T, and 4 for N
    one-hot   a float32 torch tensor (N, 4, L), rows A, C, G, T: Ledidi's and tangermeme's form

A `torch.nn.Module` is given one-hot tensors, anything else strings, unless told otherwise. Whatever
goes wrong in it (an exception, another shape, NaN, no answer in time) is one line that says so.

What an oracle is, as a hash: an interrupted request goes on only with the same one.

Of a function it is the source of its module (named as MODULE:FUNCTION) or its own source (given in
Python); of a `torch.nn.Module` its weights too. What it imports or reads is not part of the hash.
"""

import functools
import hashlib
import importlib
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.generate.sampling import Form
from genodiff.kernels.defaults import users_defaults


def hash_callable(call: Any, module: ModuleType | None = None) -> str:
    """12 hex digits: of the source of `module` or of `call`, and of weights where there are any."""
    found = hashlib.sha256()
    while isinstance(call, functools.partial):
        found.update(_describe((call.args, sorted(call.keywords.items()))))
        call = call.func
    found.update(_read_source(call, module))
    if closure := inspect.isfunction(call) and inspect.getclosurevars(call).nonlocals:
        found.update(_describe(sorted(closure.items())))
    if isinstance(call, nn.Module):
        for name, tensor in call.state_dict().items():
            found.update(name.encode())
            found.update(
                tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
            )
    return found.hexdigest()[:12]


def _describe(values: Any) -> bytes:
    """Their `repr`, without the addresses of objects, which are others in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(values)).encode()


def _read_source(call: Any, module: ModuleType | None) -> bytes:
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        return Path(file).read_bytes()
    target = call if inspect.isroutine(call) else type(call)
    try:
        return inspect.getsource(target).encode()
    except (OSError, TypeError):  # written at a prompt, or not in Python
        code = getattr(target, "__code__", None)
        return b"" if code is None else code.co_code + repr(code.co_consts).encode()


_FORMS = {
    "strings": "a list of strings", "ids": "an int64 array (N, L)",
    "one-hot": "a float32 tensor (N, 4, L)",
}  # fmt: skip
_LETTERS = np.frombuffer(b"ACGTN", np.uint8)


class Oracle:
    """A callable with its form and its limits; `name` stands in messages and sidecars."""

    def __init__(
        self,
        call: Callable[..., Any],
        name: str,
        form: Form | None = None,
        timeout: float | None = None,
        digest: str | None = None,
    ) -> None:
        """`timeout` is in seconds for each batch; None waits for ever. Raises `UsageError`.

        `digest` tells one code of an oracle from another, as `hash_callable` makes it.
        """
        if not callable(call):
            raise UsageError(f"the oracle {name} cannot be called", fix="name a function")
        if timeout is not None and not 0 < timeout <= threading.TIMEOUT_MAX:
            fix = "give seconds above 0, or none to wait for ever"
            raise UsageError(f"--oracle-timeout {timeout:g} is no limit", fix=fix)
        self.call, self.name, self.timeout, self.digest = call, name, timeout, digest
        self.form: Form = form or ("one-hot" if isinstance(call, nn.Module) else "strings")

    def __call__(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N,) for codes (N, L), 0 to 3 for A, C, G, T and 4 for N. Raises `DataError`."""
        given: Any = codes.copy()
        if self.form == "one-hot":
            given = encode_one_hot(codes)
        elif self.form == "strings":
            given = [row.tobytes().decode("ascii") for row in _LETTERS[codes]]
        return self._read(self._ask(given, torch.no_grad()), len(codes))

    def gradient(self, codes: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values (N,) and their slopes (N, L, 4) along the letters' one-hot rows.

        Raises `UsageError` for an oracle without them, and `DataError`.
        """
        if self.form != "one-hot":
            what = f"first-order guidance needs gradients, and {self.name} takes {self.form}"
            raise UsageError(what, fix="give an oracle of one-hot tensors, or --guidance exact")
        with torch.inference_mode(False), torch.enable_grad():
            x = encode_one_hot(codes).requires_grad_()
            found = self._ask(x, torch.enable_grad())
            values, slope = None, None
            if isinstance(found, Tensor) and found.requires_grad:
                values = self._read(found, len(codes))
                (slope,) = torch.autograd.grad(found.sum(), x, allow_unused=True)
            if values is None or slope is None:
                what = f"the oracle {self.name} has no gradient"
                fix = "return a torch tensor that depends on its input, or use --guidance exact"
                raise UsageError(what, fix=fix)
        if not slope.isfinite().all():
            raise DataError(f"the oracle {self.name} has a gradient that is not finite")
        return values, slope.permute(0, 2, 1).double().cpu().numpy()

    def _ask(self, given: Any, grad: Any) -> Any:
        """What the oracle says, from a thread of its own where there is a limit of time."""
        answer: list[Any] = []

        def ask() -> None:
            try:
                with torch.inference_mode(False), grad, users_defaults():
                    answer.append(self.call(given))
            except BaseException as fault:  # foreign code: anything may come out of it
                answer.append(fault)

        if self.timeout is None:
            ask()
        else:
            thread = threading.Thread(target=ask, daemon=True)
            thread.start()
            thread.join(self.timeout)
            if not answer:
                what = f"the oracle {self.name} gave no answer in {self.timeout:g} s"
                fix = "give a longer --oracle-timeout, or fewer --guidance-option particles=N"
                raise DataError(what, fix=fix)
        if isinstance(answer[0], KeyboardInterrupt | GenodiffError):
            raise answer[0]
        if isinstance(answer[0], BaseException):
            said = " ".join(str(answer[0]).split())[:200]
            what = f"the oracle {self.name} failed ({type(answer[0]).__name__}: {said})"
            raise DataError(what, fix=f"repair it; it was given {_FORMS[self.form]}")
        return answer[0]

    def _read(self, found: Any, n: int) -> NDArray[np.float64]:
        if isinstance(found, Tensor):
            found = found.detach().double().cpu().numpy()
        try:
            if np.iscomplexobj(found):
                raise TypeError
            values = np.asarray(found, np.float64)
        except (TypeError, ValueError):
            what = f"the oracle {self.name} gave no real numbers but {type(found).__name__}"
            raise DataError(what, fix=f"return {n} numbers for {n} sequences") from None
        if values.shape == (n, 1):
            values = values[:, 0]
        if values.shape != (n,):
            what = f"the oracle {self.name} gave shape {values.shape} for {n} sequences"
            raise DataError(what, fix=f"return ({n},)")
        if not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            what = f"the oracle {self.name} gave {values[bad]} for sequence {bad + 1} of {n}"
            raise DataError(what, fix="return finite numbers")
        return values


def load_oracle(spec: str, form: Form | None = None, timeout: float | None = None) -> Oracle:
    """The oracle `module:function`, of a module that can be imported or lies in this folder.

    Raises `UsageError`.
    """
    module, _, name = spec.partition(":")
    if not module or not name:
        what = f"--oracle {spec} is neither MODULE:FUNCTION nor a fine-tuned run"
        raise UsageError(what, fix="write it as scores:rate, for the function rate of scores.py")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        there = importlib.import_module(module)
    except ModuleNotFoundError as fault:
        what = f"--oracle {spec}: no module '{fault.name}'"
        raise UsageError(what, fix="start in the folder of the file, or install it") from None
    except Exception as fault:  # foreign code: anything may come out of it
        said = " ".join(str(fault).split())[:200]
        what = f"--oracle {spec}: {module} cannot be imported ({type(fault).__name__}: {said})"
        raise UsageError(what, fix="repair it") from None
    try:
        found = attrgetter(name)(there)
    except AttributeError:
        fix = "check the name"
        raise UsageError(f"--oracle {spec}: no '{name}' in {module}", fix=fix) from None
    return Oracle(found, spec, form, timeout, hash_callable(found, there))


def encode_one_hot(codes: NDArray[np.int64]) -> Tensor:
    """(N, 4, L) float32: a column of zeros where a base is not known."""
    with torch.inference_mode(False):  # an oracle may take gradients through it
        x = torch.from_numpy(codes)
        return torch.nn.functional.one_hot(x, 5)[..., :4].permute(0, 2, 1).float().contiguous()
