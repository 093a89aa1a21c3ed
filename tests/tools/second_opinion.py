#!/usr/bin/env python3
"""The kernels that work row by row beside PyTorch's own functions in float64, and autograd's gradients of these. Prints TAP.

The suites compare with a reference of ours; whoever wrote that wrote the kernels, too. Run by tests/torch_test.sh where
PyTorch is; on a GPU if there is one. Instances and what a kernel's tensors are called come from the benchmark.
"""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))

from compare import build, wait
from compare_rows import KERNELS, Instance, import_torch

import_torch()
import torch

# What PyTorch's functions return, and the gradients of what is differentiated; None: that of the residual, which is d_x's.
FORWARD = {"layernorm_residual": ["y", "sum"], "rmsnorm_residual": ["y", "sum"], "cross_entropy": ["loss"]}
BACKWARD = {
    "softmax": ["d_x"],
    "layernorm": ["d_x", "d_gamma", "d_beta"],
    "layernorm_residual": ["d_x", None, "d_gamma", "d_beta"],
    "rmsnorm": ["d_x", "d_gamma"],
    "rmsnorm_residual": ["d_x", None, "d_gamma"],
    "cross_entropy": ["d_logits"],
    "swiglu": ["d_gate", "d_up"],
    "rope": ["d"],
}
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}
SHAPES = [(37, 256), (512, 1024), (5, 7936)]  # of tokens of whole heads, which rope has


def opinions(cell, kernel):
    """Name -> what it should be, of both directions."""
    given = [cell.t[n].double().requires_grad_() for n in cell.differentiated]
    results = cell.torch_forward(*given, *(cell.for_torch(n) for n in cell.constant))
    results = results if isinstance(results, tuple) else (results,)
    gradients = torch.autograd.grad(results, given, [cell.t[n].double() for n in cell.gradients])
    forward = dict(zip(FORWARD.get(kernel, ["y"]), (r.detach() for r in results)))
    return forward, {n: g for n, g in zip(BACKWARD[kernel], gradients) if n}


def main():
    device = "cuda" if torch.cuda.is_available() and os.environ.get("NVCC", "nvcc") else "cpu"
    stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else None
    paths, code = build([f"{t}_{k}" for k in KERNELS for t in ("fp32", "bf16")], "rows-gpu" if device == "cuda" else "rows-cpu", os.cpu_count())
    print(f"{'ok' if code == 0 else 'not ok'} 1 - instances are built for the {device}")
    number = 1
    for instance in map(Instance, paths):
        for rows, cols in SHAPES:
            cell = KERNELS[instance.kernel](instance.dtype, rows, cols, device)
            for backward, wanted in enumerate(opinions(cell, instance.kernel)):
                for name in wanted:
                    cell.poison(name)
                instance.call(backward, cell, stream)()
                wait(device)
                worst = 0.0
                for name, exact in wanted.items():
                    got = cell.t[name]
                    # What a gradient is made of was rounded, too; and sums are as exact as their largest terms.
                    allowed = ROUNDING[got.dtype if backward == 0 else cell.kind] * (exact.abs() + exact.abs().max()) + 2e-6 * exact.abs().max()
                    error = ((got.double() - exact).abs() / allowed).max().item()
                    worst = max(worst, error if error < math.inf else math.inf)  # NaN is no less
                number += 1
                what = f"{instance.dtype} {instance.kernel} {('forward', 'backward')[backward]}, {rows} x {cols}"
                print(f"{'ok' if worst <= 1 else 'not ok'} {number} - {what}: as PyTorch has it ({worst:.2f} of what is allowed)")
    print(f"1..{number}")
    return code


if __name__ == "__main__":
    sys.exit(main())
