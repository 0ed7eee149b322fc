"""What an oracle is, as a hash: an interrupted request goes on only with the same one.

Of a function it is the source of its module (named as MODULE:FUNCTION) or its own source (given in
Python); of a `torch.nn.Module` its weights too. What it imports or reads is not part of the hash.
"""

import functools
import hashlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn


def hash_callable(call: Any, module: ModuleType | None = None) -> str:
    """12 hex digits: of the source of `module` or of `call`, and of weights where there are any."""
    found = hashlib.sha256()
    while isinstance(call, functools.partial):
        found.update(repr((call.args, sorted(call.keywords.items()))).encode())
        call = call.func
    found.update(_read_source(call, module))
    if isinstance(call, nn.Module):
        for name, tensor in call.state_dict().items():
            found.update(name.encode())
            found.update(tensor.detach().cpu().contiguous().flatten().numpy().tobytes())
    return found.hexdigest()[:12]


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
