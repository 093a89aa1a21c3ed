#!/usr/bin/env python3
"""Times the kernels that work row by row beside PyTorch's, eager and compiled, in the same run, interleaved.

Instances are built by make as shared libraries (bench.mk, rows_instance.cu) and called through ctypes. Every cell is
checked against float64 before it is timed; how a time is taken, compare.py says. Useful bytes count each matrix that a
direction must read or write once. The last cell of the default is a small one, 4,096 rows of 1,024. Some runs:

    python3 tests/bench/compare_rows.py                                  every kernel, bf16, both directions
    python3 tests/bench/compare_rows.py --kernels softmax --columns 8192,131072
    python3 tests/bench/compare_rows.py --kernels softmax --no-torch     ours and a copy
    python3 tests/bench/compare_rows.py --device cpu --dtype fp32,bf16

PyTorch's backward is what autograd runs for the forward beside it: of torch.compile the compiled one. Its inputs are the
same tensors. It allocates its results, from its pool; ours are given.
"""

import argparse
import ctypes
import json
import math
import os
import sys
import time

import compare
from compare import DTYPES, Timer, build, compilation, fa_version, geometric_mean, kind_of, print_compilations, state, wait, whole, wholes


def import_torch():
    """As compare.import_torch(): makes PyTorch's names this module's, too."""
    global torch, F
    compare.import_torch()
    import torch
    import torch._dynamo
    import torch._functorch.config
    import torch.nn.functional as F


class Instance:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".so")]
        words = self.name.split("_")
        self.dtype = words[0]
        self.kernel = "_".join(w for w in words[1:] if not w.startswith("x"))
        self.config = "_".join(w for w in words[1:] if w.startswith("x")) or "default"
        self.library = ctypes.CDLL(path)
        self.library.bench_tensor.restype = self.library.bench_last_error.restype = ctypes.c_char_p
        self.library.bench_refusal.restype = ctypes.c_char_p
        self.library.bench_workspace.argtypes = self.library.bench_refusal.argtypes = [ctypes.c_int64, ctypes.c_int64]
        self.library.bench_workspace.restype = ctypes.c_size_t
        self.library.bench_run.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        self.library.bench_run.argtypes += [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.names = []
        while self.library.bench_tensor(len(self.names)):
            self.names.append(self.library.bench_tensor(len(self.names)).decode())
        self.compile = compilation(path)

    def refusal(self, rows, cols):
        """Why it has no problem of this shape, or None: it has."""
        why = self.library.bench_refusal(rows, cols)
        return why.decode() if why else None

    def call(self, backward, cell, stream):
        """A function that runs a direction on the cell's tensors."""
        pointers = (ctypes.c_void_p * len(self.names))(*[cell.t[n].data_ptr() if n in cell.t else None for n in self.names])
        size = self.library.bench_workspace(cell.rows, cell.cols)
        workspace = torch.empty(max(size, 1), dtype=torch.uint8, device=cell.device)

        def run():
            if self.library.bench_run(
                backward, ctypes.addressof(pointers), cell.rows, cell.cols, workspace.data_ptr(), size, stream
            ):
                raise RuntimeError(self.library.bench_last_error().decode())

        return run


# ------------------------------------------------------------------ the kernels


ROW_VALUES = ("mean", "rstd", "loss", "lse")  # results with a float for each row
COLUMN_VALUES = ("d_gamma", "d_beta")  # and for each column


class Cell:
    """Tensors of one shape, by name; subclasses say what a kernel does.

    useful: matrices that forward and backward move. written: the results of each. inputs(): makes the tensors that are given.
    torch_forward(): PyTorch's, whose arguments are `differentiated`, which autograd differentiates, and then `constant`;
    `gradients` are those of its results. exact(backward, rows): name -> (values at some rows or columns, what they are
    in float64, the slack of fp32 arithmetic).
    """

    constant, gradients, columns = [], ["d_y"], [1024, 4096, 8192, 16384]

    def __init__(self, dtype, rows, cols, device):
        self.dtype, self.rows, self.cols, self.device = dtype, rows, cols, device
        self.kind, self.t = kind_of(dtype), {}
        torch.manual_seed(1)
        self.inputs()
        for name in self.written[0] + self.written[1]:
            length = rows if name in ROW_VALUES else cols if name in COLUMN_VALUES else 0
            self.t[name] = torch.empty(length, device=device) if length else self.normal(1)

    def normal(self, deviation):
        return torch.empty(self.rows, self.cols, dtype=self.kind, device=self.device).normal_(0, deviation)

    def vector(self, length):
        return torch.randn(length, device=self.device)

    def poison(self, name):
        self.t[name].fill_(math.nan)

    def check(self, backward, run):
        """Runs ours into poisoned results. Returns the largest error as a share of what is allowed, and what is wrong."""
        for name in self.written[backward]:
            self.poison(name)
        run()
        wait(self.device)
        for name in self.written[backward]:
            # in parts: isnan() of all at once takes as much memory again
            if any(torch.isnan(part).any().item() for part in self.t[name].flatten().split(1 << 26)):
                return math.nan, f"{name} has NaN, or was not all written"
        sample = torch.randint(0, self.rows, (24,), generator=torch.Generator().manual_seed(2))
        sample = torch.cat([torch.tensor([0, self.rows - 1]), sample]).to(self.device)
        worst = 0.0
        for got, exact, slack in self.exact(backward, sample).values():
            unit, least = {
                torch.float16: (2.0**-11, 2.0**-25),
                torch.bfloat16: (2.0**-8, 2.0**-134),
                torch.float32: (2.0**-24, 2.0**-149),
            }[got.dtype]
            error = (got.double() - exact).abs() / ((unit * exact.abs()).clamp(min=least) + slack)
            worst = max(worst, error.max().item())
        return worst, "" if worst <= 1 else f"the error is {worst:.3g} times what is allowed"

    def record(self, instance, direction):
        """What a cell of the JSON begins with."""
        return dict(
            instance=instance.name,
            kernel=instance.kernel,
            dtype=self.dtype,
            direction=direction,
            rows=self.rows,
            cols=self.cols,
            config=instance.config,
        )

    def rows_of(self, name, sample):
        return self.t[name][sample].double()

    def bytes(self, backward):
        size = torch.empty(0, dtype=self.kind).element_size()
        return self.useful[backward] * self.rows * self.cols * size

    def for_torch(self, name):
        """Its kernels want all tensors of one type, and int64 targets."""
        t = self.t[name]
        return t.long() if t.dtype == torch.int32 else t.to(self.kind)

    def contestants(self, backward):
        """Name -> function of PyTorch's; compiling takes seconds."""
        result, constant = {}, [self.for_torch(n) for n in self.constant]
        for name, function in (("eager", self.torch_forward), ("compile", torch.compile(self.torch_forward, dynamic=False))):
            given = [self.for_torch(n).detach() for n in self.differentiated]
            if backward:
                for t in given:
                    t.requires_grad_()
                results = function(*given, *constant)
                results = results if isinstance(results, tuple) else (results,)
                gradients = [self.for_torch(n) for n in self.gradients]
                result[name] = lambda r=results, i=given, g=gradients: torch.autograd.grad(r, i, g, retain_graph=True)
            else:
                result[name] = lambda f=function, i=given: f(*i, *constant)
        return result


class Softmax(Cell):
    useful, written, differentiated = (2, 3), (["y"], ["d_x"]), ["x"]
    columns = [1024, 4096, 8192, 16384, 32768, 131072]

    def inputs(self):
        self.t["x"], self.t["d_y"] = self.normal(3), self.normal(1)

    @staticmethod
    def torch_forward(x):
        return torch.softmax(x, -1)

    def exact(self, backward, sample):
        x, y, d_y = (self.rows_of(n, sample) for n in ("x", "y", "d_y"))
        if not backward:
            exact = torch.softmax(x, -1)
            return {"y": (self.t["y"][sample], exact, exact * (2e-6 + 2e-7 * (x.amax(-1, keepdim=True) - x)))}
        sum_, size = (y * d_y).sum(-1, keepdim=True), (y * d_y).abs().sum(-1, keepdim=True)
        return {"d_x": (self.t["d_x"][sample], y * (d_y - sum_), 1.5e-6 * y * (d_y.abs() + size))}


class LayerNorm(Cell):
    useful, written = (2, 3), (["y", "mean", "rstd"], ["d_x", "d_gamma", "d_beta"])
    differentiated = ["x", "gamma", "beta"]

    def inputs(self):
        self.t["x"], self.t["d_y"] = self.normal(2), self.normal(1)
        self.t["gamma"], self.t["beta"] = self.vector(self.cols), self.vector(self.cols)

    @staticmethod
    def torch_forward(x, gamma, beta):
        return F.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5)

    def exact(self, backward, sample):
        result, t = {}, self.t
        gamma, beta = (t[n].double() if n in t else 0.0 for n in ("gamma", "beta"))
        if not backward:
            s = self.rows_of("x", sample) + (self.rows_of("residual", sample) if "residual" in t else 0.0)
            mean = s.mean(-1, keepdim=True) if "mean" in t else torch.zeros_like(s[:, :1])
            rstd = ((s - mean).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
            normal = (s - mean) * rstd
            if "mean" in t:
                result["mean"] = t["mean"][sample], mean[:, 0], 1e-6 * s.abs().mean(-1)
            result["rstd"] = t["rstd"][sample], rstd[:, 0], 2e-6 * rstd[:, 0]
            slack = 2e-6 * (gamma.abs() * (normal.abs() + 1) + abs(beta))
            result["y"] = t["y"][sample], normal * gamma + beta, slack
            if "sum" in t:
                result["sum"] = t["sum"][sample], s, 1e-7 * s.abs()
            return result

        def normal_of(rows, cols):
            s = (t["sum"] if "sum" in t else t["x"])[rows][:, cols].double()
            return (s - (t["mean"][rows, None].double() if "mean" in t else 0.0)) * t["rstd"][rows, None].double()

        everything = slice(None)
        normal, w = normal_of(sample, everything), self.rows_of("d_y", sample) * gamma
        rstd, d_sum = t["rstd"][sample, None].double(), self.rows_of("d_sum", sample) if "d_sum" in t else 0.0
        mean, size = (w.mean(-1, keepdim=True), w.abs().mean(-1, keepdim=True)) if "mean" in t else (0.0, 0.0)
        dot, dot_size = (w * normal).mean(-1, keepdim=True), (w * normal).abs().mean(-1, keepdim=True)
        slack = 2e-6 * (rstd * (w.abs() + size + (normal.abs() + 1) * dot_size) + abs(d_sum))
        result["d_x"] = t["d_x"][sample], rstd * (w - mean - normal * dot) + d_sum, slack
        cols = torch.randint(0, self.cols, (8,), generator=torch.Generator().manual_seed(3)).to(self.device)
        d_y = t["d_y"][:, cols].double()
        terms = d_y * normal_of(everything, cols)  # thousands of floats are added in fp32
        result["d_gamma"] = t["d_gamma"][cols], terms.sum(0), 3e-7 * terms.abs().sum(0)
        if "d_beta" in t:
            result["d_beta"] = t["d_beta"][cols], d_y.sum(0), 3e-7 * d_y.abs().sum(0)
        return result


class RMSNorm(LayerNorm):
    written, differentiated = (["y", "rstd"], ["d_x", "d_gamma"]), ["x", "gamma"]

    def inputs(self):
        self.t["x"], self.t["d_y"], self.t["gamma"] = self.normal(2), self.normal(1), self.vector(self.cols)

    @staticmethod
    def torch_forward(x, gamma):
        return F.rms_norm(x, (x.shape[-1],), gamma, 1e-5)


class LayerNormResidual(LayerNorm):
    useful, written = (4, 4), (["y", "sum", "mean", "rstd"], ["d_x", "d_gamma", "d_beta"])
    differentiated, gradients = ["x", "residual", "gamma", "beta"], ["d_y", "d_sum"]

    def inputs(self):
        super().inputs()
        self.t["residual"], self.t["d_sum"] = self.normal(1), self.normal(1)

    @staticmethod
    def torch_forward(x, residual, gamma, beta):
        s = x + residual
        return F.layer_norm(s, (x.shape[-1],), gamma, beta, 1e-5), s


class RMSNormResidual(RMSNorm):
    useful, written = (4, 4), (["y", "sum", "rstd"], ["d_x", "d_gamma"])
    differentiated, gradients = ["x", "residual", "gamma"], ["d_y", "d_sum"]

    def inputs(self):
        super().inputs()
        self.t["residual"], self.t["d_sum"] = self.normal(1), self.normal(1)

    @staticmethod
    def torch_forward(x, residual, gamma):
        s = x + residual
        return F.rms_norm(s, (x.shape[-1],), gamma, 1e-5), s


class CrossEntropy(Cell):
    useful, written = (1, 2), (["loss", "lse"], ["d_logits"])
    differentiated, constant, gradients = ["logits"], ["targets"], ["d_loss"]
    columns = [1024, 4096, 8192, 16384, 32000, 128256]

    def inputs(self):
        self.t["logits"], self.t["d_loss"] = self.normal(3), self.vector(self.rows)
        self.t["targets"] = torch.randint(0, self.cols, (self.rows,), dtype=torch.int32, device=self.device)

    @staticmethod
    def torch_forward(logits, targets):
        return F.cross_entropy(logits, targets, reduction="none")

    def exact(self, backward, sample):
        z, target = self.rows_of("logits", sample), self.t["targets"][sample].long()[:, None]
        if not backward:
            lse, at_target = torch.logsumexp(z, -1), z.gather(1, target)[:, 0]
            slack = 2e-6 * (1 + lse.abs() + at_target.abs())
            loss, lse_got = self.t["loss"][sample], self.t["lse"][sample]
            return {"lse": (lse_got, lse, slack), "loss": (loss, lse - at_target, slack)}
        lse, d_loss = self.rows_of("lse", sample)[:, None], self.rows_of("d_loss", sample)[:, None]
        p, hit = (z - lse).exp(), torch.zeros_like(z).scatter_(1, target, 1.0)
        slack = d_loss.abs() * (p * (3e-6 + 2e-7 * (z - lse).abs()) + 2e-7 * hit)
        return {"d_logits": (self.t["d_logits"][sample], d_loss * (p - hit), slack)}


class SwiGLU(Cell):
    useful, written = (3, 5), (["y"], ["d_gate", "d_up"])
    differentiated = ["gate", "up"]

    def inputs(self):
        self.t["gate"], self.t["up"], self.t["d_y"] = self.normal(2), self.normal(1), self.normal(1)

    @staticmethod
    def torch_forward(gate, up):
        return F.silu(gate) * up

    def exact(self, backward, sample):
        gate, up, d_y = (self.rows_of(n, sample) for n in ("gate", "up", "d_y"))
        sigmoid = torch.sigmoid(gate)
        if not backward:
            exact = gate * sigmoid * up
            return {"y": (self.t["y"][sample], exact, 2e-6 * exact.abs())}
        slope = sigmoid * (1 + gate * (1 - sigmoid))
        d_up, d_gate = (self.t[n][sample] for n in ("d_up", "d_gate"))
        return {
            "d_up": (d_up, d_y * gate * sigmoid, 2e-6 * (d_y * gate).abs() * sigmoid),
            "d_gate": (d_gate, d_y * up * slope, 2e-6 * (d_y * up).abs() * (sigmoid + slope.abs())),
        }


class Rope(Cell):
    """A row is a token: half of its columns are heads of q, the other half are heads of k, 128 each."""

    useful, written, positions, angles = (2, 2), (["y"], ["d"]), 4096, 64
    differentiated, constant, gradients = ["x"], ["cos", "sin"], ["d"]

    def __init__(self, dtype, rows, cols, device):
        super().__init__(dtype, rows, cols, device)
        self.before = self.t["d"].clone()

    def inputs(self):
        self.t["x"] = self.normal(1)
        i = torch.arange(self.angles, dtype=torch.float64, device=self.device)
        position = torch.arange(self.positions, dtype=torch.float64, device=self.device)
        angle = position[:, None] * 10000.0 ** (-i / self.angles)
        self.t["cos"], self.t["sin"] = angle.cos().float(), angle.sin().float()

    def for_torch(self, name):
        return self.t[name]

    @staticmethod
    def torch_forward(x, cos, sin):
        positions = min(x.shape[0], Rope.positions)
        a, b = x.view(-1, positions, x.shape[1] // (2 * Rope.angles), 2, Rope.angles).float().unbind(-2)
        cos, sin = cos[:positions, None], sin[:positions, None]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -2).to(x.dtype).view_as(x)

    def poison(self, name):
        if name == "d":  # is worked on in place
            self.t["d"].copy_(self.before)
        else:
            super().poison(name)

    def exact(self, backward, sample):
        pairs = (len(sample), -1, 2, self.angles)
        from_ = (self.before if backward else self.t["x"])[sample].double().view(pairs)
        cos, sin = (self.t[n][sample % self.positions, None].double() for n in ("cos", "sin"))
        sin = -sin if backward else sin
        a, b = from_.unbind(-2)
        exact = torch.stack((a * cos - b * sin, b * cos + a * sin), -2)
        slack = (4e-7 * (a.abs() + b.abs()))[:, :, None].expand_as(exact)
        got = self.t["d" if backward else "y"][sample]
        return {"result": (got, exact.reshape(got.shape), slack.reshape(got.shape))}


KERNELS = {
    "softmax": Softmax,
    "layernorm": LayerNorm,
    "layernorm_residual": LayerNormResidual,
    "rmsnorm": RMSNorm,
    "rmsnorm_residual": RMSNormResidual,
    "cross_entropy": CrossEntropy,
    "swiglu": SwiGLU,
    "rope": Rope,
}


# ------------------------------------------------------------------ main


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda where there is one")
    parser.add_argument("--kernels", default=",".join(KERNELS), help=f"several with commas of {', '.join(KERNELS)}; default: all")
    parser.add_argument("--dtype", help="fp32, bf16, fp16, several with commas; default bf16 (GPU), fp32,bf16,fp16 (CPU)")
    parser.add_argument("--grid", choices=["default", "full"], default="default", help="full: a CPU has a GPU's number of elements, too")
    parser.add_argument("--columns", type=wholes, help="default: the kernel's own list, and 1024 columns of 4,096 rows")
    parser.add_argument("--elements", type=whole, help="of a matrix; default 2^28 (GPU), 2^24 (CPU)")
    parser.add_argument("--configs", default="default", help="experiments, such as default,xNAME (see bench.mk); default: default")
    parser.add_argument("--no-torch", action="store_true", help="time only ours and a copy (inputs and reference are PyTorch's all the same)")
    parser.add_argument("--repeat", type=whole, default=15, help="rounds, of whose times the median counts; default %(default)s")
    parser.add_argument("--jobs", type=whole, default=os.cpu_count(), help="compilations at a time; default: one a core")
    parser.add_argument("--budget", type=float, default=0, help="seconds after which no further cell is started; default: no limit")
    parser.add_argument("--json", help="file for every cell")
    parser.add_argument("--tsv", help="file for plot.c")
    parser.add_argument("--markdown", help="file for tables of rates and, in brackets, ratios over each contestant")
    o = parser.parse_args()
    o.dtype = o.dtype.split(",") if o.dtype else []
    o.kernels, o.configs = o.kernels.split(","), o.configs.split(",")
    for value, known, what in [(o.dtype, DTYPES, "--dtype"), (o.kernels, KERNELS, "--kernels")]:
        for word in value:
            if word not in known:
                parser.error(f"{what}: {word} is none of {', '.join(known)}")
    import_torch()
    o.device = o.device or ("cuda" if torch.cuda.is_available() else "cpu")
    gpu = o.device == "cuda"
    o.dtype = o.dtype or (["bf16"] if gpu else ["fp32", "bf16", "fp16"])
    o.elements = o.elements or (1 << 28 if gpu or o.grid == "full" else 1 << 24)
    return o


def shapes(o, kernel):
    """(rows, cols) of the cells."""
    if o.columns:
        return [(max(1, o.elements // c), c) for c in o.columns]
    return [(o.elements // c, c) for c in KERNELS[kernel].columns] + [(4096, 1024)]


def write_markdown(o, cells):
    with open(o.markdown, "w") as file:
        for kernel in dict.fromkeys(c["kernel"] for c in cells):
            mine = [c for c in cells if c["kernel"] == kernel]
            names = list(dict.fromkeys(name for c in mine for name in c["others"]))
            places = list(dict.fromkeys((c["rows"], c["cols"]) for c in mine))
            file.write(f"| {kernel}, GB/s" + (f" (x {', x '.join(names)})" if names else "") + " | ")
            file.write(" | ".join(f"{r} x {c}" for r, c in places) + " |\n|---|" + "---|" * len(places) + "\n")
            for label in dict.fromkeys((c["dtype"], c["direction"], c["config"]) for c in mine):
                found = {(c["rows"], c["cols"]): c for c in mine if (c["dtype"], c["direction"], c["config"]) == label}
                texts = []
                for place in places:
                    c = found.get(place)
                    over = [f"{c['others'][n]['ratio']:.2f}" if n in c["others"] else "-" for n in names] if c else []
                    texts.append((f"{c['rate']:.0f}" + (f" ({', '.join(over)})" if over else "")) if c else "")
                words = " ".join(w for w in label if w != "default")
                file.write(f"| {words} | " + " | ".join(texts) + " |\n")
            file.write("\n")


def main():
    started = time.time()
    o = options()
    device, gpu = o.device, o.device == "cuda"
    torch._functorch.config.donated_buffer = False  # the backward runs many times
    torch._dynamo.config.automatic_dynamic_shapes = False
    suffix = {c: "" if c == "default" else "_" + c for c in o.configs}
    names = [f"{t}_{k}{suffix[c]}" for k in o.kernels for t in o.dtype for c in o.configs]
    paths, build_code = build(names, "rows-gpu" if gpu else "rows-cpu", o.jobs)
    instances = [Instance(path) for path in paths]
    failures = int(build_code != 0)

    versions = {"fa": fa_version(), "python": sys.version.split()[0], "torch": torch.__version__}
    try:
        import triton

        versions["triton"] = triton.__version__
    except ImportError:
        pass
    if gpu:
        versions.update(cuda=torch.version.cuda, device=torch.cuda.get_device_name())
    else:
        torch.set_num_threads(int(os.environ.get("FA_THREADS", len(os.sched_getaffinity(0)))))
        versions.update(threads=torch.get_num_threads(), device="cpu")
    print("versions:", ", ".join(f"{k} {v}" for k, v in versions.items()))
    before = state(device)
    print("before:", before)
    print_compilations(instances)
    print(f"\nmatrices of {o.elements} elements; median of {o.repeat}; GB/s of useful bytes, and ratios over the others")

    timer, cells, wrong_cells, skipped, unavailable = Timer(device, o.repeat), [], [], 0, {}
    stream = torch.cuda.current_stream().cuda_stream if gpu else None
    for kernel in o.kernels:
        for dtype in o.dtype:
            ours = [i for i in instances if (i.kernel, i.dtype) == (kernel, dtype)]
            for rows, cols in shapes(o, kernel) if ours else []:
                if o.budget and time.time() - started > o.budget:
                    skipped += 2
                    continue
                refusal = ours[0].refusal(rows, cols)
                if refusal:
                    print(f"SKIPPED {dtype} {kernel}, {rows} x {cols}: {refusal}")
                    continue
                cell = KERNELS[kernel](dtype, rows, cols, device)
                from_ = cell.t[cell.differentiated[0]]
                to = torch.empty_like(from_)
                for backward in (0, 1):
                    direction = ("forward", "backward")[backward]
                    runs, shares, records = {"copy": lambda: to.copy_(from_)}, {}, {}
                    for instance in ours:
                        try:
                            run = instance.call(backward, cell, stream)
                            share, wrong = cell.check(backward, run)
                        except RuntimeError as error:
                            failures += 1
                            print(f"FAILED {instance.name} {direction}, {rows} x {cols}: {error}")
                            continue
                        if wrong:
                            failures += 1
                            print(f"WRONG  {instance.name} {direction}, {rows} x {cols}: {wrong}; not timed")
                            wrong_cells.append(dict(cell.record(instance, direction), correct=False))
                            continue
                        runs[instance.config], shares[instance.config] = run, share
                        records[instance.config] = cell.record(instance, direction)
                    if not o.no_torch:
                        torch._dynamo.reset()
                        try:
                            for name, run in cell.contestants(backward).items():
                                run()
                                wait(device)
                                runs[name] = run
                        except Exception as error:  # of the compiler too, whatever it is
                            why = (str(error).splitlines() or [type(error).__name__])[0][:160]
                            unavailable.setdefault(f"{kernel} {direction}", f"{rows} x {cols}: {why}")
                    seconds = timer.measure(runs)
                    rates = {name: cell.bytes(backward) / t * 1e-9 for name, t in seconds.items()}
                    rates["copy"] = 2e-9 * to.numel() * to.element_size() / seconds["copy"]
                    others = [n for n in rates if n not in shares and n != "copy"]
                    for label in shares:
                        line = f"{dtype:<5}{kernel:<19}{direction:<9}{rows:>8} x {cols:<7}{label:<10}{rates[label]:>8.1f}"
                        record = records[label]
                        record.update(correct=True, ms=1e3 * seconds[label], ms_quartiles=[1e3 * t for t in timer.spread[label]])
                        record.update(rate=rates[label], unit="GB/s", copy=rates["copy"])
                        record.update(error_share=shares[label], others={})
                        for name in others:
                            ratio = rates[label] / rates[name]
                            line += f"   {name} {rates[name]:>7.1f} x{ratio:.3f}"
                            record["others"][name] = dict(rate=rates[name], ratio=ratio)
                        print(line + f"   copy {rates['copy']:>7.1f}   error {shares[label]:.2f} of its limit", flush=True)
                        cells.append(record)
                    del runs
                del cell, from_, to
                if gpu:
                    torch.cuda.empty_cache()

    after = state(device)
    print("\nafter:", after)
    for name, why in unavailable.items():
        print(f"PyTorch could not run {name}, first at {why}")
    summary = {}
    for label in o.configs:
        for name in sorted({n for c in cells for n in c["others"]}):
            for kernel in o.kernels:
                found = [(c["others"][name]["ratio"], c) for c in cells if name in c["others"]]
                found = [(r, c) for r, c in found if (c["kernel"], c["config"]) == (kernel, label)]
                if found:
                    low, cell = min(found, key=lambda pair: pair[0])
                    mean = geometric_mean([ratio for ratio, _ in found])
                    summary[f"{kernel} {label} over {name}"] = dict(mean=mean, lowest=low, cells=len(found))
                    print(
                        f"{kernel} {label} over {name}: geometric mean {mean:.3f}, lowest {low:.3f} ({cell['dtype']} "
                        f"{cell['direction']}, {cell['rows']} x {cell['cols']}), {len(found)} cells"
                    )
    if skipped:
        print(f"{skipped} cells were not started: --budget {o.budget:.0f} s was spent")
    if failures:
        print(f"{failures} cells FAILED or are WRONG")
    if o.json:
        report = dict(versions=versions, before=before, after=after, elements=o.elements, repeat=o.repeat)
        report.update(compile={i.name: i.compile for i in instances}, cells=cells + wrong_cells, summary=summary, failures=failures)
        with open(o.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    if o.tsv:
        with open(o.tsv, "w") as file:
            for c in cells:
                if c["rows"] * c["cols"] * 2 < o.elements:
                    continue
                panel = f"beside PyTorch: {c['dtype']} {c['kernel']} {c['direction']} (GB/s)"
                name = "fa" if c["config"] == "default" else "fa " + c["config"]
                file.write(f"{panel}\t{name}\t{c['cols']}\t{c['rate']:.2f}\tcolumns\n")
                for name, other in c["others"].items() if c["config"] == o.configs[0] else ():
                    file.write(f"{panel}\t{name}\t{c['cols']}\t{other['rate']:.2f}\tcolumns\n")
    if o.markdown:
        write_markdown(o, cells)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
