"""What the GPU is measured against: mamba-ssm's kernels in the structure of Caduceus, two complete
Mamba calls a layer.

As published: forward(x) + flip(backward(flip(x))), the second call on its own convolution, x_proj,
dt_proj, A and D and on the first's in_proj and out_proj; RMSNorm fused with the residual's sum;
everything of mamba-ssm's fast path. Paired strands are the same network on twice the rows for both
sides of a comparison, so that single strands are compared.

    python benchmarks/gpu/peers.py --out FILE [--rehearse]

tries them: what imports, and one step of a small network, with the traceback of what fails.
"""

from typing import Any

import torch
import torch.nn.functional as F
from machine import DEVICE, describe_error, read_arguments, save
from torch import Tensor, nn


def selective_scan_peer() -> Any:
    """mamba-ssm's selective_scan_fn, or the reason why it is not there."""
    try:
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    except Exception as error:
        describe_error(error)
        return f"{type(error).__name__}: {error}"
    return selective_scan_fn


def mamba_class() -> Any:
    """mamba-ssm's Mamba and its fused norm, or the reason why they are not there."""
    try:
        from mamba_ssm.modules.mamba_simple import Mamba
        from mamba_ssm.ops.triton.layer_norm import rms_norm_fn
    except Exception as error:
        describe_error(error)
        return f"{type(error).__name__}: {error}"
    return Mamba, rms_norm_fn


class TwoCallBlock(nn.Module):
    """Fused add and norm, then both directions."""

    def __init__(self, d_model: int, Mamba: Any, rms_norm_fn: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.ahead, self.back = Mamba(d_model), Mamba(d_model)
        self.back.in_proj.weight, self.back.out_proj.weight = (
            self.ahead.in_proj.weight,
            self.ahead.out_proj.weight,
        )
        self.rms_norm_fn = rms_norm_fn

    def forward(self, hidden: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        hidden, residual = self.rms_norm_fn(
            hidden,
            self.weight,
            None,
            residual=residual,
            prenorm=True,
            residual_in_fp32=True,
            eps=1e-5,
        )
        return self.ahead(hidden) + self.back(hidden.flip(1)).flip(1), residual


class TwoCallCaduceus(nn.Module):
    """Logits of a single-strand Caduceus on mamba-ssm's layers."""

    def __init__(self, d_model: int, n_layer: int, vocab_size: int) -> None:
        super().__init__()
        found = mamba_class()
        assert not isinstance(found, str), found
        self.embedding = nn.Parameter(torch.randn(vocab_size, d_model) * 0.02)
        self.blocks = nn.ModuleList(TwoCallBlock(d_model, *found) for _ in range(n_layer))
        self.weight, self.rms_norm_fn = nn.Parameter(torch.ones(d_model)), found[1]

    def forward(self, xt: Tensor) -> Tensor:
        hidden, residual = F.embedding(xt, self.embedding), None
        for block in self.blocks:
            hidden, residual = block(hidden, residual)
        hidden = self.rms_norm_fn(
            hidden,
            self.weight,
            None,
            residual=residual,
            prenorm=False,
            residual_in_fp32=True,
            eps=1e-5,
        )
        return F.linear(hidden, self.embedding)


def main() -> None:
    arguments = read_arguments(__doc__)
    found: dict[str, Any] = {}
    for name, peer in (("scan", selective_scan_peer()), ("mamba", mamba_class())):
        found[name] = peer if isinstance(peer, str) else "imported"
        save(arguments.out, found)
    if found["mamba"] == "imported" and DEVICE == "cuda":
        try:
            network = TwoCallCaduceus(64, 2, 16).to(DEVICE)
            with torch.autocast(DEVICE, torch.bfloat16):
                loss = network(torch.randint(0, 16, (2, 96), device=DEVICE)).float().square().mean()
            loss.backward()
            found["step"] = float(loss)
        except Exception as error:
            found["step"] = describe_error(error)
        save(arguments.out, found)
    print(found)


if __name__ == "__main__":
    main()
