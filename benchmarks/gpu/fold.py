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
| instructions alone | 272 cycles | 785 | 2 warps × 136 and 392, counted |
| B and C loaded where they are used | 1,784 | 2,060 | measured: .932 ms, and 2.007 ms a step |
| loaded one state ahead | 1,495 | 1,956 | measured: .781 ms, and 1.803 ms a step |
| and the next tile fetched, B and C tile by tile | 460 to 880 | 1,050 to 1,370 | estimate |

- One state ahead is 75 to 180 instructions, forward 33 for one state of four: 150 to 360 cycles
  with two warps, enough for an answer of the L2 cache (about 270), not of memory (800 and more).
  `ncu` saw B and C come from memory: the first pass over 128 rows read 154 MB, which is u, delta
  and B. Each state's B and C were in lines of their own, since time was contiguous over the whole
  row: 32 lines a tile, each waited for.
- Now a tile's B and C are 2 KB side by side (1 KB in bfloat16): 16 lines (8). Before it works
  through a tile, a warp asks the L2 cache for all of the next one, at least 4,350 cycles ahead: 4
  instructions forward, 5 backward, with u, delta, the outputs' gradients and the states that were
  kept. That costs no slot: 135.0 became 128.2 forward, 393.2 became 382.4 backward, since addresses
  are simpler. States kept in bfloat16 took back 2 and 10 of them; they are half of the traffic.
- Lower ends: every load waits for the L2 cache alone, and a tile's first ones in full; an eighth of
  the waiting is left forward, a fifth backward. Upper ends: 40 and 47 % of it.

The scan's forward pass, G steps/s. A pass took c cycles a state of a tile, of which 136 for each
resident warp of a scheduler (two at 1,024 warps in all, 3.75 where time is split) are instructions;
12 to 40 % of the rest is left. The last column is how much may be left for mamba-ssm's speed.

| shape | measured, 00386cd | c | estimate | mamba-ssm | ratio | may be left |
| --- | --- | --- | --- | --- | --- | --- |
| 128 × 1024 × 256 | 25.9 (36.0 not split) | 1,784 | 73 to 137 | 51.4 | 1.4 to 2.7 | 65 % |
| 128 × 1024 × 236 | 23.7 (33.1 not split) | 1,784 | 66 to 127 | 49.5 | 1.3 to 2.6 | 61 % |
| 16 × 8192 × 256 | 26.3 | 2,360 | 49 to 84 | 47.8 | 1.03 to 1.8 | 43 % |
| 1 × 131072 × 256 | 26.9 | 2,300 | 50 to 86 | 25.0 | 2.0 to 3.4 | 100 % |
| 16 × 8192 × 512 | 32.8 | 1,838 | 58 to 89 | 53.5 | 1.08 to 1.7 | 46 % |
| 1 × 131072 × 512 | 34.3 | 1,780 | 60 to 92 | 45.4 | 1.3 to 2.0 | 66 % |
| 2 × 131072 × 512 | 35.2 | 1,740 | 61 to 93 | 45.7 | 1.3 to 2.0 | 68 % |

The whole step, 131,072 tokens, milliseconds: from what was measured, as a CUDA graph where that was
measured. The scan's passes take 37 to 57 % (forward, and the passes over segments) and 53 to 68 %
(backward) of what `timeline` had at two shapes, scaled by channels × layers to the others;
`conv_slope` in one pass takes a fifth; nothing else changes. `scans`: forward + backward.

| network | length | measured | scans | `conv_slope` | estimate | M tokens/s | × peer | goal |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| ph-470k | 1,024 | 28.4 | 3.9 + 8.3 | 4.7 | 18.3 to 20.3 | 6.4 to 7.2 | 1.9 to 2.1 | 1.8 |
| ph-470k | 8,192 | 34.4 | 7.0 + 7.9 | 4.7 | 22.5 to 25.1 | 5.2 to 5.8 | 1.6 to 1.8 | 1.5 |
| ph-470k | 131,072 | 33.9 | 7.0 + 7.9 | 4.7 | 21.9 to 24.5 | 5.3 to 6.0 | 2.1 to 2.4 | 1.5 |
| ph-1.9m | 1,024 | 51.8 | 8.5 + 18.0 | 10.2 | 29.9 to 34.2 | 3.8 to 4.4 | 2.0 to 2.3 | 1.8 |
| ph-1.9m | 8,192 | 60.4 | 15.2 + 17.2 | 10.2 | 34.5 to 40.2 | 3.3 to 3.8 | 1.8 to 2.1 | 1.5 |
| ph-1.9m | 131,072 | 60.1 | 15.2 + 17.2 | 10.2 | 34.3 to 39.9 | 3.3 to 3.8 | 2.4 to 2.8 | 1.5 |
| ph-7.7m | 1,024 | 202.3 | 33.8 + 72.0 | 40.8 | 115 to 132 | .99 to 1.15 | 2.0 to 2.3 | 1.8 |
| ph-7.7m | 8,192 | 241.4 | 61.0 + 69.0 | 40.8 | 138 to 161 | .82 to .95 | 1.8 to 2.1 | 1.5 |
| ph-7.7m | 131,072 | 239.2 | 61.0 + 69.0 | 40.8 | 136 to 158 | .83 to .97 | 2.3 to 2.7 | 1.5 |

- **Without a graph the host is the bound**: a step of four layers took it 27.7 ms, so 470k at 1,024
  would stop at 4.7 M tokens/s, 1.4 × mamba-ssm. Training records a graph there by itself; the table
  of call 3 has the step both ways.
- ph-470k at the default batch of 16 × 1,024: 2.93 M tokens/s as a graph, measured, are the goal of
  2.9. Of its 5.7 ms the scans took 2.8 and `conv_slope` .6; as above, 3.5 to 4.0 ms, 4.1 to 4.7 M.
- Slimmest: the scan alone at 16 × 8,192, where time is split and both passes read all inputs.
- Left out by the counts. Passes over segments are 109 and 127 of the 746 slots of a split scan,
  forward and backward. Splitting the states between warps instead does a tile's work outside the
  loop over states (26 and 47 slots) in each of them, and writes parts of y, ∂u and ∂delta: 583
  slots in two warps, which fill the machine from 512 on, 729 in four, which do from 256 on. Rows
  of 118 numbers, 236 bytes, give products 1.7 of 28 ms in kernels of an older kind: padding them
  to 240 costs four copies a layer, .33 ms, for .7 ms at best, unless the norm writes them so.
- `scan.py --choices` (call 4) measures it: `AHEAD` "" (no fetching), "L2" (chosen), "L1".

### Memory of a step, counted

131,072 tokens on a faked GPU (`tests/fake_gpu.py`), bytes a token; the peak is in the backward pass
of the last layer.

| network | kept after forward | of them states | peak | peak GB | mamba-ssm, measured |
| --- | --- | --- | --- | --- | --- |
| ph-470k | 13,849 | 3,840 | 20,085 | 2.63 | 2.9 |
| ph-1.9m | 29,021 | 8,192 | 41,857 | 5.49 | 6.0 |
| ph-7.7m | 111,344 | 32,768 | 124,179 | 16.3 | 19.6 |

ph-470k was 26,925 (3.53 GB; 3.64 measured, 3 % more). ∂u and ∂delta take the memory of ∂y and
delta, two gradients of the gate are let go before the scans, and the state before each 16th time is
kept in bfloat16 where the inputs are. That rounds no output: the scan goes on in float32. In the
emulated PTX of a small bfloat16 scan it took the error of ∂C from 2.5e-3 to 2.8e-3, of ∂A from
1.3e-3 to 2.0e-3, and no other by more than 3e-4. What is left: 2,048 bytes of slabs in which blocks
of channels leave their share of ∂B and ∂C, and [x, z], 960 a layer. Recomputed states
(`--backbone.recompute-states`) take 2,880 bytes off (2.25 GB), for another pass over the scans.
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
            ["preset", "batch", "length", "ours, M tokens/s", "as a graph", "mamba-ssm", "ratio",
            "as a graph", "fraction of the roofline", "peak GB", "mamba-ssm"],
            [[r["preset"], r["batch"], r["length"], *(r.get("mtok_per_s",
            {}).get(k) for k in ("ours", "captured", "mamba_ssm")), r.get("ratio"),
              r.get("captured_ratio"), r.get("fraction"),
              *(r["peak_bytes"].get(k, 0) / 1e9 for k in ("ours", "mamba_ssm"))] for r in steps],
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
