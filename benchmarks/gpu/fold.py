"""Folds measurements into results.jsonl and writes RESULTS.md from it.

    python benchmarks/gpu/sass.py --json > sass.jsonl
    python benchmarks/gpu/fold.py --sass sass.jsonl    counts of one Triton, from any machine
    python benchmarks/gpu/fold.py call-1.tar.gz ...    measurements: what run.sh brought back

Archives and folders are folded in their order, and a call that was cut off with what it has. Of a
stage that stands in two of them, the later one counts.

A count replaces those of its Triton, a measurement that of its device.
"""

import argparse
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from genodiff.io.atomic import write_text

HERE = Path(__file__).resolve().parent
NAMES = "probe machine parity scan step own_step choices timeline peers resume genome".split()
SHOWN = 8  # kernels of a step
MEASURED = "3.6.0"  # the Triton of the GPU machine (torch 2.11), whose counts stand in full
HEAD = """# GPU

The Triton kernels of the selective scan, the convolution and the mixer
(`genodiff/kernels/triton/`). Counts come from machine code, compiled for sm_90 and taken apart on a
machine without a GPU; measurements from `benchmarks/gpu/run.sh`, in calls on the GPU. All figures:
`results.jsonl`. Written by `benchmarks/gpu/fold.py`.
"""
QUEUE = """
## Not measured yet

No GPU was at hand. Every output and gradient agrees with the naive scan under Triton's interpreter
and as compiled sm_90 PTX in an emulated warp (`tests/kernels/test_triton*.py`). QUEUE.md says what
waits.
"""


def lines(path: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        if path.exists()
        else []
    )


def commit() -> str:
    """HEAD, marked where the tree differs from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=HERE, capture_output=True, text=True, check=True
        ).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../../genodiff/kernels")
    return git("rev-parse", "HEAD") + ("+" if changed else "")


def table(head: list[str], rows: list[list[Any]]) -> str:
    def cell(x: Any) -> str:
        if isinstance(x, float):
            return f"{x:.3g}" if abs(x) < 10 else f"{x:.1f}"
        return "" if x is None else str(x)

    return (
        "\n".join(
            ["| " + " | ".join(map(cell, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
        )
        + "\n"
    )


ESTIMATE = """
### What waiting costs, and what is left of it: an estimate

Not measured. At 128 × 1024 × 256 a scheduler has two warps, each with 64 tiles of 16 states. At the
H100's 1.96 GHz one state of one tile took them

| form | forward | backward | where |
| --- | --- | --- | --- |
| instructions alone | 272 cycles | 764 | 2 warps × 136 and 382, counted |
| B and C loaded where they are used | 1,784 | 2,060 | measured: .932 ms, and 2.007 ms a step |
| loaded one state ahead | 1,495 | 1,956 | measured: .781 ms, and 1.803 ms a step |
| and the next tile fetched, B and C tile by tile | 460 to 880 | 1,050 to 1,370 | estimate |

- One state ahead is 60 to 130 instructions, 120 to 260 cycles with two warps: enough for an answer
  of the L2 cache (about 270), not of memory (800 and more). `ncu` saw B and C come from memory: the
  first pass over 128 rows read 154 MB, which is u, delta and B. Each state's B and C were in lines
  of their own, since time was contiguous over the whole row: 32 lines a tile, each waited for.
- Now a tile's B and C are 2 KB side by side (1 KB in bfloat16): 16 lines (8). Before it works
  through a tile, a warp asks the L2 cache for all of the next one, at least 4,350 cycles ahead: 4
  instructions forward, 6 backward, with u, delta, the outputs' gradients and the states that were
  kept. That costs no register that counts and no slot: 135.0 became 128.2 forward, 393.2 became
  382.4 backward, since addresses are simpler.
- Lower ends: every load waits for the L2 cache alone, and a tile's first ones in full. Upper ends:
  half of the waiting is left. Forward that is 71 to 137 G steps/s; mamba-ssm's 51.4 needs a fifth
  of the waiting to go.
- A whole step of ph-470k at 128 × 1024, from 30.2 ms: one state ahead and not splitting takes 3.6
  ms off the scans, `conv_slope` in one pass 3.7 of its 4.7, the fetched tiles 3.0 to 5.4: 17.5 to
  19.9 ms, 6.6 to 7.5 M tokens/s, 1.9 to 2.2 × mamba-ssm. ph-7.7m at 16 × 8192, from 239 ms: 32 for
  `conv_slope`, 42 for half of the waiting of the passes over segments: 165 ms, .79 M, 1.7 ×.
- Left out by the counts. Passes over segments are 109 and 127 of the 746 slots of a split scan,
  forward and backward. Splitting the states between warps instead does a tile's work outside the
  loop over states (26 and 47 slots) in each of them, and writes parts of y, ∂u and ∂delta: 583
  slots in two warps, which fill the machine from 512 on, 729 in four, which do from 256 on. Rows
  of 118 numbers, 236 bytes, give products 1.7 of 28 ms in kernels of an older kind: padding them
  to 240 costs four copies a layer, .33 ms, for .7 ms at best, unless the norm writes them so.
- `scan.py --choices` (call 4) measures it: `AHEAD` "" (no fetching), "L2" (chosen), "L1".

### Memory of a step, counted

ph-470k at 131,072 tokens on a faked GPU (`tests/fake_gpu.py`), in bytes a token: 17,809 are kept
after the forward pass, of which 7,680 are states; the peak, in the backward pass of the last layer,
was 26,925 (3.53 GB; 3.64 measured) and is 24,045 (3.15 GB). ∂u and ∂delta take the memory of ∂y and
delta, and two gradients of the gate are let go before the scans. mamba-ssm's structure measured
2.9 GB; what is left above it are the states of every 16th time, in float32, and the 2,048 bytes of
slabs in which blocks of channels leave their share of ∂B and ∂C. Recomputed states
(`--backbone.recompute-states`) take 5,850 bytes off (2.38 GB), for another pass over the scans.
"""


def sass(counts: list[dict[str, Any]]) -> str:
    releases = sorted(
        {row["triton"] for row in counts},
        key=lambda version: [int(part) for part in version.split(".")],
    )
    pinned = MEASURED if MEASURED in releases else releases[-1]
    rows = [row for row in counts if row["triton"] == pinned]
    text = f"""
## Counts: sm_90 machine code

Commit {rows[0]["commit"]}; `python benchmarks/gpu/sass.py`, Triton {rows[0]["triton"]} and its
ptxas; tiles of 16 steps, 16 states, a warp per program.

A step is one time of one channel; a warp does 32 at once. `slots` are the instructions that a
scheduler issues for them; MUFU (2^x) and SHFL are cycles for which their units are busy; the
largest of the three bounds the kernel. `bound` is that for 528 schedulers at 1.755 GHz, in G
steps/s, without memory.{"" if any(row["spills"] for row in rows) else " No kernel spills."}

"""
    keys = ["kernel", "dtype", "d_inner", "registers", "spills", "slots_per_step",
        "mufu_cycles_per_step", "shuffle_cycles_per_step",
            "mufu_fraction", "bound_gsteps_per_s"]  # fmt: skip
    head = [
        "kernel",
        "dtype",
        "d_inner",
        "registers",
        "spills",
        "slots",
        "MUFU",
        "SHFL",
        "MUFU / bound",
        "bound",
    ]
    text += table(
        head,
        [[f"`{row['kernel']}`" if k == "kernel" else row.get(k) for k in keys] for row in rows],
    )
    inner = next(
        row["inner_by_opcode"]
        for row in rows
        if row["kernel"] == "scan_backward" and row["dtype"] == "bf16"
    )
    instructions = ", ".join(f"{v} {k}" for k, v in list(inner.items())[:8])
    text += f"""
What the counts of commit afb835a said, which chose the kernels' form:

- Forward in bfloat16 is bound by its expensive functions, as aimed at: 16 2^x of the decays and one
  of the softplus, 136 cycles a step. At d_inner 256 the bound is 0.85 G tokens/s per direction and
  layer.
- Backward is bound by issue. Its inner loop, 16 steps of one state: {instructions}.
- Sums of ∂B and ∂C over lanes by the matrix unit (8 HMMA and 7 SHFL for 32 sums) instead of
  Triton's own (`SUMS=plain`: 160 SHFL) double the bound. In bfloat16 they take the products with 10
  bits of fraction; in float32 in two parts, with 21.
- float32 takes 2^x by a polynomial, exact at 0 (decays near 1 compound), on the FMA pipes: no MUFU
  at all, 2.4 times the slots.
- Registers allow 18 warps a multiprocessor in forward, 8 in backward; a cap of 168 (12 warps)
  spills 40 words. Which is faster only a GPU can tell.
- The convolution is not fused into the scan: its output has to be written for x_proj anyway, so
  that the scan would read x instead of c, byte for byte the same, and compute the convolution
  again. It is recomputed in the backward pass instead of kept.
"""
    return text + (compared(counts, releases) if len(releases) > 1 else "") + ESTIMATE


def compared(counts: list[dict[str, Any]], releases: list[str]) -> str:
    """Every Triton's counts side by side."""
    found = {(row["triton"], row["kernel"], row["dtype"], row["d_inner"]): row for row in counts}
    commits = sorted({row["commit"] for row in counts})
    kernels = [key[1:] for key in found if key[0] == releases[0]]
    through = {row["kernel"] for row in counts if row["shared"]}

    def cell(row: dict[str, Any] | None) -> str:
        return (
            "" if row is None else f"{row.get('slots_per_step', '')} ({row['registers']})".strip()
        )

    rows = [
        [f"`{kernel[0]}`", *kernel[1:], *(cell(found.get((r, *kernel))) for r in releases)]
        for kernel in kernels
    ]
    return f"""
### The same with other releases of Triton

Commit {", ".join(commits)}; `python benchmarks/gpu/sass.py --d-inner 256` under each. Slots a step,
registers in brackets. Spills in all of them: {sum(row["spills"] for row in counts)}; through shared
memory: {", ".join(f"`{name}`" for name in sorted(through)) or "none"}.

{table(["kernel", "dtype", "d_inner", *releases], rows)}
- Of two axes equally contiguous Triton 3.7 and later lay the other one over the lanes. The kernels
  used to call channels no more contiguous than times: there time went over the lanes, with 1216
  shuffles and 13 barriers in `scan_forward` (bf16), and the inline PTX met tiles of another shape
  than it is written for. Now channels lie side by side, at multiples of one element, which is
  unambiguous.
"""


def measured(found: dict[str, Any]) -> str:
    machine = found.get("machine", {})
    copies, products = (
        machine.get("copy_bytes_per_s", 0) / 1e12,
        machine.get("bf16_flops_per_s", 0) / 1e12,
    )
    text = f"""
## Measured: {machine.get("device", "a GPU")}

Commit {found["commit"]}; `bash benchmarks/gpu/run.sh N`; torch {machine.get("torch")}, Triton
{machine.get("triton")}, driver and clocks {machine.get("driver")}; copies {copies:.2f} TB/s,
bfloat16 products {products:.0f} TFLOP/s.
"""
    steps = found.get("step", {}).get("rows", [])
    if steps:
        text += f"\nWhole training steps, bfloat16; peer: {found['step']['peer']}.\n\n" + table(
            ["preset", "batch", "length", "ours, M tokens/s", "mamba-ssm", "ratio",
            "fraction of the roofline", "peak GB", "mamba-ssm"],
            [[r["preset"], r["batch"], r["length"], *(r.get("mtok_per_s",
            {}).get(k) for k in ("ours", "mamba_ssm")), r.get("ratio"),
              r.get("fraction"), *(r["peak_bytes"].get(k, 0) / 1e9 for k in ("ours",
              "mamba_ssm"))] for r in steps],
        )  # fmt: skip
    own = [r for r in found.get("own_step", {}).get("rows", []) if "mtok_per_s" in r]
    if own:
        text += "\nOur step alone, and as one CUDA graph, M tokens/s.\n\n" + table(
            ["preset", "batch", "length", "eager", "as a graph"],
            [
                [r["preset"], r["batch"], r["length"]]
                + [r["mtok_per_s"].get(k) for k in ("ours", "captured")]
                for r in own
            ],
        )
    for r in found.get("timeline", {}).get("rows", []):
        kernels = ", ".join(f"{k['name'][:40]} {k['ms']:.2g}" for k in r.get("kernels", []))
        text += (
            f"\nA step of {r['preset']} at {r['batch']} × {r['length']}: {r.get('ms', 0):.4g} ms, "
            f"{r.get('gpu_ms', 0):.4g} on the GPU, {r.get('launches', 0):.0f} launches. ms of "
            f"kernels: {kernels}.\n"
        )
    scans = found.get("scan", {}).get("rows", [])
    if scans:
        names = ["ours forward", "mamba_ssm forward", "ours step", "mamba_ssm step"]
        text += "\nThe scan alone, bfloat16, G steps/s.\n\n" + table(
            ["batch", "length", "channels", *names],
            [
                [r["batch"], r["length"], r["channels"], *(r["gsteps_per_s"].get(n) for n in names)]
                for r in scans
            ],
        )
    choices = found.get("choices", {})
    if choices:
        text += "\nOther choices of the scan, ms: " + "; ".join(
            f"{k} {v.get('ms', 'failed'):.4g}" for k, v in choices["choices"].items()
        )
        for r in choices["splits"]:
            steps = "; ".join(f"{k} {v.get('ms', 0):.4g}" for k, v in r["step"].items())
            text += f". At {r['batch']} × {r['length']} × {r['channels']}, a step: {steps}"
        text += ".\n"
    rows = [r for r in found.get("parity", {}).get("rows", []) if "bfloat16 repeats" in r]
    if rows:
        text += "\nErrors against float64, the largest over outputs and gradients"
        shapes = ["kind", "batch", "length", "channels", "decay", "reverse", "segments"]
        errors = ["float32", "float32, fast exp", "float32, unsplit", "bfloat16"]
        text += ".\n\n" + table(
            [*shapes, *(name.removeprefix("float32, ") for name in errors), "same bits"],
            [
                [r[k] for k in shapes]
                + [f"{max(r[k].values()):.1e}" if k in r else "" for k in errors]
                + [r["float32 repeats"] and r["bfloat16 repeats"]]
                for r in rows
            ],
        )
    lost = [r for r in found.get("parity", {}).get("rows", []) if "error" in r]
    lost += [r for r in found.get("stages", []) if r.get("code")]
    text += "".join(f"\nFailed: {json.dumps(r)[:300]}\n" for r in lost)
    if "resume" in found:
        t = found["resume"]
        same = [
            f"{name}: {'yes' if r['same_bits'] else 'no'}"
            + "".join(f", {k} differ at {r[k]['step']}" for k in ("loss", "tensors") if r.get(k))
            for name, r in t["same"].items()
        ]
        text += f"\nThe same bits as the first run of `{t['command']}`: {'; '.join(same)}.\n"
    if "genome" in found:
        t = found["genome"]
        bits = next((r["valid_bits"] for r in t.get("metrics", [])[::-1] if r["valid_bits"]), None)
        text += (
            f"\nTrained: `{t['command']}`: {t.get('tokens', 0):,} tokens, "
            f"{t.get('tokens_per_s', 0):,.0f} a second; validation: {bits} bits per base.\n"
        )
    return text


def gather(paths: list[Path]) -> dict[str, Any]:
    """What the stages of some calls found. Exits where a call was a rehearsal."""
    found: dict[str, Any] = {"kind": "gpu", "commit": "unknown", "stages": []}
    for path in paths:
        with tempfile.TemporaryDirectory() as scratch:
            folder = path
            if path.is_file():
                with tarfile.open(path) as archive:
                    archive.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.4 on
                    archive.extractall(scratch)
                folder = next(Path(scratch).iterdir())
            for name in NAMES:
                file = folder / f"{name}.json"
                found |= {name: json.loads(file.read_text())} if file.exists() else {}
            for row in found.get("timeline", {}).get("rows", []):
                row["kernels"] = row.get("kernels", [])[:SHOWN]
            for line in lines(folder / "steps.jsonl"):
                if line.get("rehearsal"):
                    raise SystemExit(f"{path}: a rehearsal measures nothing: not folded")
                if "commit" in line:
                    found["commit"] = line["commit"]
                else:
                    found["stages"].append(line)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("found", type=Path, nargs="*")
    parser.add_argument("--sass", type=Path)
    parser.add_argument(
        "--to", type=Path, default=HERE, help="where results.jsonl and RESULTS.md are"
    )
    arguments = parser.parse_args()
    results = lines(arguments.to / "results.jsonl")
    if arguments.sass:
        counts = [{"kind": "sass", "commit": commit()} | row for row in lines(arguments.sass)]
        counted = {row["triton"] for row in counts}
        results = counts + [r for r in results if r["kind"] != "sass" or r["triton"] not in counted]
    if arguments.found:
        found = gather(arguments.found)
        device = found.get("machine", {}).get("device")
        results = [
            r for r in results if r["kind"] != "gpu" or r.get("machine", {}).get("device") != device
        ] + [found]
    write_text(arguments.to / "results.jsonl", "".join(json.dumps(r) + "\n" for r in results))
    text, gpu = HEAD, [r for r in results if r["kind"] == "gpu"]
    counts = [r for r in results if r["kind"] == "sass"]
    text += (sass(counts) if counts else "") + "".join(map(measured, gpu)) + ("" if gpu else QUEUE)
    write_text(arguments.to / "RESULTS.md", text)


if __name__ == "__main__":
    main()
