"""Triton's interpreter on a CPU: imported before the kernels, it decides that they are interpreted.
`MISSING` says why it cannot be.
"""

import os
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

MISSING = ""
if not find_spec("triton"):
    MISSING = "triton is not installed (pip install triton: Linux, 190 MB)"
elif "triton" in sys.modules and not torch.cuda.is_available():  # lightning imports it
    MISSING = "triton was loaded before its interpreter was chosen: run tests/kernels alone"
if not MISSING and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.language as tl
    import triton.runtime.interpreter as interpreter  # type: ignore[import-not-found,unused-ignore]

    _patched = interpreter._patch_lang_tensor

    def _patch(tensor: Any, *scope: Any) -> None:
        """numpy 2.4 turns only arrays without dimensions into numbers; the interpreter's scalars
        have one. Triton 3.4 has no scope.
        """
        _patched(tensor, *scope)
        set_attr = scope[0].set_attr if scope else setattr
        set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = _patch

    _convert = interpreter._convert_float

    def _round(data: Any, source: Any, to: Any, mode: Any) -> Any:
        """float32 is rounded to the nearest bfloat16, as on a GPU; the interpreter would cut it."""
        if (source, to) != (tl.float32, tl.bfloat16):
            return _convert(data, source, to, mode)
        values = np.ascontiguousarray(data, np.float32)
        return torch.from_numpy(values).bfloat16().view(torch.int16).numpy().view(np.uint16)

    interpreter._convert_float = _round

on_cpu = pytest.mark.skipif(
    bool(MISSING) or torch.cuda.is_available(),
    reason=MISSING or "the interpreter is for machines without a GPU",
)
