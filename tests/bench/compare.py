#!/usr/bin/env python3
"""Times instances of fa/attention.h beside PyTorch's attention kernels, in the same run, interleaved.

On a GPU: cuDNN, FlashAttention-2 and the memory-efficient kernel (PyTorch's SDPA backends); on the CPU: PyTorch's CPU
SDPA. Instances are built by make as shared libraries (bench.mk) and called through ctypes. Every cell is checked
against float64 before it is timed. Some runs:

    python3 tests/bench/compare.py                                   the standard grid, bf16, full and causal
    python3 tests/bench/compare.py --dtype bf16 --dims 64,128 --seqlens 512,2048 --variants causal,full
    python3 tests/bench/compare.py --variants full,causal,window,document,alibi,softcap --dims 128 --seqlens 8192
    python3 tests/bench/compare.py --variants all --dims 128 --seqlens 8192 --backends flex     beside FlexAttention
    python3 tests/bench/compare.py --dims 128 --configs a80,a80_m128_n64_s2_w4,a80_m64_n128_s1_w4   tiles, side by side
    python3 tests/bench/compare.py --dims 128 --width 8192 --heads-kv 8 --tokens 8192 --seqlens 8192   64 heads that share 8 of keys
    python3 tests/bench/compare.py --dims 64 --variants full --seqlens 1024,4096 --keys 77             queries that see other tokens
    python3 tests/bench/compare.py --dtype fp32                      fp32-accurate, with PyTorch's tf32 off
    python3 tests/bench/compare.py --device cpu --dtype fp32,bf16

Time is the median of --repeat rounds (15); in every round each contestant runs once, in a rotating order. On a GPU each
timing starts with a short sleep of the device and a write of 256 MB that empties the L2 cache, so that the launch is
queued before the first event and host latency does not count. TFLOP/s: 4 * batch * heads * queries * keys * head_dim
operations, half when causal; other masks count what they show. A variant is compared
with the plain kernel: its time over (plain time * share of the tiles that hold a visible element).
"""

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # PyTorch's idle threads must not spin while ours are timed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}  # what PyTorch calls them
MASKS = ["causal", "window", "prefix", "document", "packed", "span", "packedspan"]
HOOKS = ["alibi", "softcap", "bias", "keybias", "own"]
# A variant is a mask, a hook, or both, as windowsoftcap. These are all of --variants all:
ALL = ["full", "causal", "window", "prefix", "document", *HOOKS, "causalalibi", "causalbias", "causalsoftcap", "causalown", "packed", "span", "packedspan"]
VARIANTS = ALL + [mask + hook for mask in MASKS for hook in HOOKS if mask + hook not in ALL]
BACKENDS = ["cudnn", "fa2", "efficient", "math", "torch", "flex"]
ROUNDING = {"fp32": 2.0**-24, "tf32": 2.0**-24, "bf16": 2.0**-8, "fp16": 2.0**-11}


def import_torch():
    """Makes PyTorch's names this module's, and returns torch. Called once the options are known: --help does without."""
    global torch, F, SDPBackend, sdpa_kernel
    try:
        import torch
    except ImportError:
        sys.exit(
            f"{os.path.basename(sys.argv[0])}: {sys.executable} has no PyTorch, beside which this measures: run it with a python3"
            " that has. (make bench takes that as PYTHON=..., and leaves this part out where there is no PyTorch.)"
        )
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return torch


def kind_of(dtype):
    return getattr(torch, DTYPES[dtype])


# ------------------------------------------------------------------ the library, through ctypes


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p)] + [
        (n, ctypes.c_int64) for n in ("stride_batch", "stride_head", "stride_seq")
    ]


class Args(ctypes.Structure):
    """fa_attention_args of fa/fa.h, field by field; check_layout() compares the two."""

    _fields_ = (
        [(n, Tensor) for n in "qkvo"]
        + [("lse", ctypes.c_void_p)]
        + [(n, ctypes.c_int) for n in ("batch", "heads", "heads_kv", "seqlen_q", "seqlen_k")]
        + [("scale", ctypes.c_float), ("window_left", ctypes.c_int), ("window_right", ctypes.c_int)]
        + [("softcap", ctypes.c_float), ("alibi_slopes", ctypes.c_void_p), ("bias", ctypes.c_void_p)]
        + [(n, ctypes.c_int64) for n in ("bias_stride_batch", "bias_stride_head", "bias_stride_query")]
        + [("key_bias", ctypes.c_void_p)]
        + [(n, ctypes.c_int64) for n in ("key_bias_stride_batch", "key_bias_stride_head")]
        + [(n, ctypes.c_void_p) for n in ("prefix", "document_q", "document_k", "span_begin", "span_end", "user", "workspace")]
        + [("workspace_bytes", ctypes.c_size_t), ("threads", ctypes.c_int)]
    )


class Plan(ctypes.Structure):
    """fa_plan of fa/fa.h."""

    _fields_ = (
        [("schedule", ctypes.c_char_p)]
        + [(n, ctypes.c_int) for n in ("arch", "block_m", "block_n", "stages", "warps", "threads")]
        + [("blocks", ctypes.c_int64), ("shared_bytes", ctypes.c_size_t), ("workspace_bytes", ctypes.c_size_t)]
        + [(n, ctypes.c_int64) for n in ("tiles_total", "tiles_visited", "tiles_masked", "tiles_skipped")]
    )


def compilation(path):
    """What a library's compilation took (measure.c): word -> number; nothing where it is not known."""
    note = path[: -len(".so")] + ".compile"
    if not os.path.exists(note):
        return {}
    with open(note) as file:
        return {word: float(value) for word, value in (line.split() for line in file)}


def print_compilations(instances):
    print(f"\n{'instance':<40}{'compile s':>10}{'cpu s':>8}{'peak MB':>9}{'registers':>11}{'spills B':>10}")
    for i in instances:
        c = i.compile
        print(
            f"{i.name:<40}{c.get('seconds', 0):>10.2f}{c.get('cpu_seconds', 0):>8.2f}{c.get('peak_mb', 0):>9.0f}"
            + (f"{c['registers']:>11.0f}{c['spill_bytes']:>10.0f}" if "registers" in c else "")
        )


class Instance:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".so")]
        words = self.name.split("_")
        self.dtype, self.dim, self.variant = words[0], int(words[1][1:]), words[2]
        self.config = "_".join(words[3:]) or "default"
        self.library = ctypes.CDLL(path)
        for name in ("bench_forward", "bench_plan"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p]
            getattr(self.library, name).restype = ctypes.c_int
        self.forward_function = self.library.bench_forward
        self.library.bench_last_error.restype = ctypes.c_char_p
        self.library.bench_layout.restype = ctypes.c_size_t
        self.library.bench_layout.argtypes = [ctypes.c_int]
        ours = [ctypes.sizeof(Args), Args.scale.offset, Args.prefix.offset, Args.threads.offset]
        ours += [ctypes.sizeof(Plan), Plan.tiles_skipped.offset]
        theirs = [self.library.bench_layout(i) for i in range(6)]
        if ours != theirs:
            raise SystemExit(f"compare.py: its picture of the structs {ours} is not that of fa/fa.h {theirs}")
        self.compile = compilation(path)

    def forward(self, args, stream):
        status = self.forward_function(ctypes.addressof(args), stream)
        if status:
            raise RuntimeError(self.library.bench_last_error().decode())

    def plan(self, args):
        plan = Plan()
        status = self.library.bench_plan(ctypes.addressof(args), ctypes.addressof(plan))
        if status:
            raise RuntimeError(self.library.bench_last_error().decode())
        return plan


def build(names, folder, jobs):
    """Builds the libraries that are missing or older than the headers; returns those that exist afterwards."""
    build_folder = os.environ.get("BUILD", "build")
    paths = [f"{build_folder}/bench/{folder}/{name}.so" for name in names]
    start = time.time()
    make = ["make", "-C", ROOT, "-k", "--no-print-directory", f"BUILD={build_folder}", f"-j{jobs}"]
    result = subprocess.run(make + paths, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        print("\n".join(line[:400] for line in result.stderr.splitlines()[:60]))
    print(
        f"build: {len(paths)} instances, {time.time() - start:.1f} s with {jobs} jobs"
        + (", with FAILURES" if result.returncode else "")
    )
    paths = [os.path.join(ROOT, path) for path in paths]
    # A library older than its failed rebuild is not what was asked for.
    newest = max(
        os.path.getmtime(os.path.join(d, f)) for d, _, fs in os.walk(os.path.join(ROOT, "include")) for f in fs
    )
    return [
        p for p in paths if os.path.exists(p) and (not result.returncode or os.path.getmtime(p) > newest)
    ], result.returncode


# ------------------------------------------------------------------ one cell of the grid


class Cell:
    """Inputs of one shape and variant, their reference, and the arguments for an instance."""

    def __init__(self, o, dtype, dim, seqlen, variant, device):
        self.dtype, self.dim, self.seqlen, self.variant, self.device = dtype, dim, seqlen, variant, device
        self.hook = next((hook for hook in sorted(HOOKS, key=len, reverse=True) if variant.endswith(hook)), None)
        self.mask = variant[: len(variant) - len(self.hook or "")].replace("full", "")
        self.batch, self.heads = max(1, o.tokens // seqlen), max(1, o.width // dim)
        self.keys, self.heads_kv = o.keys or seqlen, o.heads_kv or self.heads
        kind = kind_of(dtype)
        generator = torch.Generator(device=device).manual_seed(o.seed)

        def tensor(heads, length):
            if o.layout == "bhsd":
                return torch.randn(self.batch, heads, length, dim, generator=generator, device=device).to(kind)
            return torch.randn(self.batch, length, heads, dim, generator=generator, device=device).to(kind).transpose(1, 2)

        self.q, self.k, self.v = tensor(self.heads, seqlen), tensor(self.heads_kv, self.keys), tensor(self.heads_kv, self.keys)
        self.o = torch.empty_like(self.q)
        self.lse = torch.empty(self.batch, self.heads, seqlen, device=device)
        self.softcap = o.softcap
        self.part = min(1024, max(1, seqlen // 4))
        self.window = o.window or self.part
        self.slopes = torch.exp2(-8.0 * torch.arange(1, self.heads + 1, device=device) / self.heads).float()
        lengths = [o.documents or self.part] * seqlen if o.documents != "mixed" else torch.randint(
            100, 2000, (seqlen,), generator=torch.Generator().manual_seed(o.seed)).tolist()
        self.parts, begin = [], 0  # the document of each token: begin, end
        for length in lengths:
            self.parts += [(begin, min(begin + length, seqlen))] * (min(begin + length, seqlen) - begin)
            begin += length
            if begin >= seqlen:
                break
        ids = torch.tensor([part[0] for part in self.parts], device=device, dtype=torch.int32)
        self.documents = ids.repeat(self.batch, 1).contiguous()
        spans = [self.visible_keys(query) for query in range(seqlen)] if self.mask in ("span", "packedspan") else []
        self.spans = [torch.tensor([span[i] for span in spans], device=device, dtype=torch.int32).repeat(self.batch, 1) for i in (0, 1)]
        self.workspace = torch.empty(4, device=device, dtype=torch.int32) if o.workspace else None
        self.prefix = torch.full((self.batch,), seqlen // 2, device=device, dtype=torch.int32)
        self.key_bias = torch.randn(self.heads, seqlen, generator=generator, device=device)
        matrices = self.heads if o.bias == "heads" else 1
        self.bias = torch.randn(matrices, seqlen, seqlen, generator=generator, device=device, dtype=kind) if self.hook == "bias" else None

    def args(self):
        a = Args()
        a.window_left = a.window_right = -1
        a.batch, a.heads, a.heads_kv, a.seqlen_q, a.seqlen_k = (
            self.batch,
            self.heads,
            self.heads_kv,
            self.seqlen,
            self.keys,
        )
        for name in "qkvo":
            t, f = getattr(self, name), getattr(a, name)
            f.data, f.stride_batch, f.stride_head, f.stride_seq = t.data_ptr(), t.stride(0), t.stride(1), t.stride(2)
        if self.mask == "window":
            a.window_left, a.window_right = self.window - 1, 0
        if self.hook == "alibi":
            a.alibi_slopes = self.slopes.data_ptr()
        if self.hook == "softcap":
            a.softcap = self.softcap
        if self.mask == "prefix":
            a.prefix = self.prefix.data_ptr()
        if self.mask in ("document", "packed"):
            a.document_q = a.document_k = self.documents.data_ptr()
        if self.mask in ("span", "packedspan"):
            a.span_begin, a.span_end = (span.data_ptr() for span in self.spans)
        if self.workspace is not None:
            a.workspace, a.workspace_bytes = self.workspace.data_ptr(), 16
        if self.hook == "keybias":
            a.key_bias, a.key_bias_stride_head = self.key_bias.data_ptr(), self.seqlen
        if self.hook == "bias":
            a.bias, a.bias_stride_query = self.bias.data_ptr(), self.seqlen
            a.bias_stride_head = self.seqlen**2 if len(self.bias) > 1 else 0
        return a

    def record(self, config):
        """What a cell of the JSON begins with."""
        name = f"{self.dtype}_d{self.dim}_{self.variant}" + ("" if config == "default" else "_" + config)
        return dict(
            instance=name,
            dtype=self.dtype,
            head_dim=self.dim,
            variant=self.variant,
            config=config,
            batch=self.batch,
            heads=self.heads,
            heads_kv=self.heads_kv,
            seqlen=self.seqlen,
            keys=self.keys,
        )

    def operations(self):
        full = 4.0 * self.batch * self.heads * self.seqlen * self.keys * self.dim
        if self.mask == "causal":
            return full / 2
        seen = sum(end - begin for begin, end in map(self.visible_keys, range(self.seqlen)))
        return full * seen / (self.seqlen * self.keys)

    def visible_keys(self, query):
        """First and last key (exclusive) that a query sees: every mask here shows an interval."""
        if self.mask == "causal":
            return 0, query + 1
        if self.mask == "window":
            return max(0, query - self.window + 1), query + 1
        if self.mask == "prefix":
            return 0, max(self.seqlen // 2, query + 1)
        if self.mask in ("document", "span"):
            return self.parts[query]
        if self.mask in ("packed", "packedspan"):
            return self.parts[query][0], query + 1
        return 0, self.keys

    def tile_fraction(self, block_m, block_n):
        """Share of the tiles that hold a visible element: intervals of neighbouring rows touch, their union is one."""
        rows, total, visited = range(0, self.seqlen, block_m), 0, 0
        for begin in rows:
            last = min(begin + block_m, self.seqlen) - 1
            first_key, end_key = self.visible_keys(begin)[0], self.visible_keys(last)[1]
            visited += (end_key - 1) // block_n - first_key // block_n + 1
            total += -(-self.keys // block_n)
        return visited / total

    def modify(self, scores, b, h, rows):
        """Mask and score hook of the variant on scaled scores (rows, keys)."""
        keys = torch.arange(self.keys, device=self.device)
        if self.hook == "alibi":
            scores = scores - (self.slopes[h].to(scores.dtype) * (keys[None, :] - rows[:, None]).abs().to(scores.dtype))
        elif self.hook == "softcap":
            scores = self.softcap * torch.tanh(scores / self.softcap)
        elif self.hook == "bias":
            scores = scores + self.bias[h % len(self.bias), rows].to(scores.dtype)
        elif self.hook == "keybias":
            scores = scores + self.key_bias[h][None, :].to(scores.dtype)
        elif self.hook == "own":
            scores = scores + 1e-4 * (keys[None, :] - rows[:, None]).to(scores.dtype)
        bounds = torch.tensor([self.visible_keys(int(r)) for r in rows], device=self.device)
        hidden = (keys[None, :] < bounds[:, :1]) | (keys[None, :] >= bounds[:, 1:])
        return scores.masked_fill(hidden, -math.inf)

    def make_reference(self):
        """Sampled rows in float64, and the error of the same computation done unfused in the data type."""
        generator = torch.Generator().manual_seed(1)
        pairs = self.batch * self.heads
        chosen = sorted({0, pairs - 1, *torch.randint(0, pairs, (4,), generator=generator).tolist()})
        self.samples, self.low_error, self.low_lse_error, self.largest = [], 0.0, 0.0, 0.0
        scale = 1.0 / math.sqrt(self.dim)
        set_tf32(self.dtype == "tf32")
        for pair in chosen:
            b, h = divmod(pair, self.heads)
            rows = {0, self.seqlen - 1, *torch.randint(0, self.seqlen, (30,), generator=generator).tolist()}
            rows = torch.tensor(sorted(rows), device=self.device)
            of_keys = h * self.heads_kv // self.heads
            q, k, v = self.q[b, h, rows], self.k[b, of_keys], self.v[b, of_keys]
            scores = self.modify(q.double() @ k.double().T * scale, b, h, rows)
            reference, lse = torch.softmax(scores, -1) @ v.double(), torch.logsumexp(scores, -1)
            low_scores = self.modify((q @ k.T) * scale, b, h, rows)
            low = torch.softmax(low_scores, -1) @ v
            low_lse = torch.logsumexp(low_scores.float(), -1)
            self.low_error = max(self.low_error, (low.double() - reference).abs().max().item())
            self.low_lse_error = max(self.low_lse_error, (low_lse.double() - lse).abs().max().item())
            self.largest = max(self.largest, reference.abs().max().item())
            self.samples.append((b, h, rows, reference, lse))
        set_tf32(False)
        # The sample is small: no error below four roundings, of the output or in tf32 of an operand, counts as the unfused one.
        self.low_error = max(self.low_error, 4 * (2.0**-12 if self.dtype == "tf32" else 2.0**-24) * self.largest)
        # Twice the unfused error is the contract; PyTorch's fp32 products add in blocks, which a dot product need not.
        allowed = 4 if self.dtype == "fp32" else 2
        self.limit = allowed * self.low_error + ROUNDING[self.dtype] * self.largest
        self.lse_limit = 2 * self.low_lse_error + 1e-5

    def error(self, o):
        return max((o[b, h, rows].double() - reference).abs().max().item() for b, h, rows, reference, _ in self.samples)

    def lse_error(self):
        return max((self.lse[b, h, rows].double() - lse).abs().max().item() for b, h, rows, _, lse in self.samples)

    def check(self, instance, stream):
        """Runs an instance once into poisoned outputs. Returns (error, what is wrong or "")."""
        self.o.fill_(math.nan)
        self.lse.fill_(math.nan)
        a = self.args()
        a.lse = self.lse.data_ptr()
        instance.forward(a, stream)
        wait(self.device)
        if torch.isnan(self.o).any().item() or torch.isnan(self.lse).any().item():
            return math.nan, "NaN in the output, or not all of it written"
        error, lse_error = self.error(self.o), self.lse_error()
        if not error <= self.limit:
            return error, f"error {error:.2e}, allowed {self.limit:.2e}"
        if not lse_error <= self.lse_limit:
            return error, f"lse error {lse_error:.2e}, allowed {self.lse_limit:.2e}"
        return error, ""


def set_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


# ------------------------------------------------------------------ what we compare with


def flex(cell):
    """FlexAttention (PyTorch, compiled by Triton) with the mask and the score function of the variant."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.config.recompile_limit = 1000
    by_head = cell.hook == "bias" and len(cell.bias) > 1
    ids, prefix, window, slopes, cap = cell.documents[0], cell.seqlen // 2, cell.window, cell.slopes, cell.softcap
    masks = {
        "causal": lambda b, h, q, k: q >= k,
        "window": lambda b, h, q, k: (q >= k) & (q - k < window),
        "prefix": lambda b, h, q, k: (k < prefix) | (q >= k),
        "document": lambda b, h, q, k: ids[q] == ids[k],
        "packed": lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k),
        "span": lambda b, h, q, k: ids[q] == ids[k],
        "packedspan": lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k),
    }
    backwards = cell.mask in ("causal", "window", "packed", "packedspan")  # no key comes after its query
    scores = {
        "alibi": (lambda s, b, h, q, k: s - slopes[h] * (q - k)) if backwards else lambda s, b, h, q, k: s - slopes[h] * (q - k).abs(),
        "softcap": lambda s, b, h, q, k: cap * torch.tanh(s / cap),
        "bias": lambda s, b, h, q, k: s + cell.bias[h if by_head else 0, q, k],
        "keybias": lambda s, b, h, q, k: s + cell.key_bias[h, k],
        "own": lambda s, b, h, q, k: s + 1e-4 * (k - q),
    }
    blocks = None
    if cell.mask:
        blocks = create_block_mask(masks[cell.mask], None, None, cell.seqlen, cell.seqlen, device=cell.device)
    compiled = torch.compile(flex_attention, dynamic=False)
    shared = cell.heads_kv < cell.heads
    return lambda: compiled(cell.q, cell.k, cell.v, score_mod=scores.get(cell.hook), block_mask=blocks, enable_gqa=shared)


def contestants(cell, o):
    """Name -> function of PyTorch's kernels for this cell. Of variants, FlexAttention alone has more than causal."""
    if o.no_torch:
        return {}
    if "flex" in o.backends:
        return {"flex": flex(cell)}
    if cell.variant not in ("full", "causal"):
        return {}
    causal = cell.variant == "causal"
    if cell.device == "cpu":
        backends = {"torch": None}
    elif cell.dtype in ("fp32", "tf32"):
        backends = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
    else:
        backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "fa2": SDPBackend.FLASH_ATTENTION}
    if o.backends:
        backends = {name: backend for name, backend in backends.items() if name in o.backends}

    shared = dict(enable_gqa=True) if cell.heads_kv < cell.heads else {}

    def caller(backend):
        def run():
            if backend is None:
                return F.scaled_dot_product_attention(cell.q, cell.k, cell.v, is_causal=causal, **shared)
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(cell.q, cell.k, cell.v, is_causal=causal, **shared)

        return run

    return {name: caller(backend) for name, backend in backends.items()}


# ------------------------------------------------------------------ timing


class Timer:
    def __init__(self, device, repeat):
        self.device, self.repeat = device, repeat
        if device == "cuda":
            self.flush = torch.empty(256 << 20, dtype=torch.uint8, device=device)
            self.driver = ctypes.CDLL("libcuda.so.1")
            self.begin = torch.cuda.Event(enable_timing=True)
            self.end = torch.cuda.Event(enable_timing=True)

    def once(self, run):
        if self.device != "cuda":
            time.sleep(0.002)
            begin = time.perf_counter()
            run()
            return time.perf_counter() - begin
        if self.driver.cuCtxResetPersistingL2Cache():  # what is marked to leave the cache last would survive the write below
            raise RuntimeError("cuCtxResetPersistingL2Cache() failed")
        torch.cuda._sleep(1_000_000)  # device clocks: half a millisecond in which the host queues what follows
        self.flush.zero_()
        self.begin.record()
        run()
        self.end.record()
        self.end.synchronize()
        return 1e-3 * self.begin.elapsed_time(self.end)

    def measure(self, runs):
        """runs: name -> function. Returns name -> median seconds of interleaved timings; between which half of them lie is in spread."""
        names, times = list(runs), {name: [] for name in runs}
        for name in names:
            self.once(runs[name])
        for turn in range(self.repeat):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                times[name].append(self.once(runs[name]))
        for t in times.values():
            t.sort()
        quarter = self.repeat // 4
        self.spread = {name: [t[quarter], t[-1 - quarter]] for name, t in times.items()}
        return {name: statistics.median(t) for name, t in times.items()}


def state(device):
    if device != "cuda":
        return "cpu"
    query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu"
    try:
        return subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True
        ).stdout.strip()
    except OSError as error:
        return f"nvidia-smi: {error}"


def fa_version():
    with open(os.path.join(ROOT, "include/fa/fa.h")) as file:
        return re.search(r"^#define FA_VERSION (\d+)", file.read(), re.M).group(1)


def whole(text):
    """An option that is a whole number above 0."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,10}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def wholes(text):
    """Several of them, with commas."""
    return [whole(word) for word in text.split(",")]


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


# ------------------------------------------------------------------ main


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda where there is one")
    parser.add_argument(
        "--dtype", help="fp32, tf32, bf16, fp16, several with commas; default bf16 (GPU), fp32,bf16,fp16 (CPU)"
    )
    parser.add_argument("--dims", type=wholes, default="64,128,256", help="head dimensions; default %(default)s")
    parser.add_argument("--grid", choices=["default", "full"], default="default", help="full: a CPU has a GPU's shapes, too")
    parser.add_argument("--seqlens", type=wholes, help="default 512 to 16384 in powers of two (GPU), 512,2048 (CPU)")
    parser.add_argument(
        "--variants", default="full,causal",
        help=f"several with commas: full, a mask ({', '.join(MASKS)}), a hook ({', '.join(HOOKS)}), or both, as windowsoftcap; or all, which"
        f" are {len(ALL)}; default %(default)s",
    )
    parser.add_argument(
        "--configs", default="default",
        help="schedules and tiles to try, such as a80,a80_m128_n64_s2_w4 (bench.mk): a80 is the schedule for every GPU, which tiles"
        " chosen by hand have unless they begin with a90; default: default, what an instance chooses itself",
    )
    parser.add_argument("--tokens", type=whole, help="batch * seqlen; default 16384 (GPU), 4096 (CPU)")
    parser.add_argument("--width", type=whole, help="heads * head_dim; default 2048 (GPU), 512 (CPU)")
    parser.add_argument("--heads-kv", type=whole, help="heads of keys and values, which groups of the others share; default: as many")
    parser.add_argument("--keys", type=whole, help="seqlen of keys and values; --seqlens are then of queries; only without a mask and a hook")
    parser.add_argument(
        "--documents", type=lambda x: x if x == "mixed" else whole(x), default=0,
        help="tokens of a document (document, span; packed, packedspan: with a causal mask), or mixed, 100 to 2000; default 1024, or a quarter",
    )
    parser.add_argument("--window", type=whole, default=0, help="keys that a query of window sees; default 1024, or a quarter")
    parser.add_argument(
        "--softcap", type=float, default=30.0,
        help="the cap of softcap; scores have a deviation of 1; default %(default)s",
    )
    parser.add_argument("--bias", choices=["shared", "heads"], default="shared", help="one matrix for all heads, or one a head; default %(default)s")
    parser.add_argument("--workspace", action="store_true", help="give ours its optional workspace")
    parser.add_argument("--layout", choices=["bhsd", "bshd"], default="bhsd", help="default %(default)s")
    parser.add_argument("--backends", help=f"only these of {', '.join(BACKENDS[:-1])}; or flex, which compiles for seconds a cell")
    parser.add_argument("--no-torch", action="store_true", help="time only ours (inputs and reference are PyTorch's all the same)")
    parser.add_argument("--repeat", type=whole, default=15, help="rounds, of whose times the median counts; default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs; default %(default)s")
    parser.add_argument("--jobs", type=whole, default=os.cpu_count(), help="compilations at a time; default: one a core")
    parser.add_argument("--budget", type=float, default=0, help="seconds after which no further cell is started; default: no limit")
    parser.add_argument("--json", help="file for every cell")
    parser.add_argument("--tsv", help="file for plot.c")
    parser.add_argument("--markdown", help="file for a table of rates and, in brackets, ratios over each contestant")
    o = parser.parse_args()
    o.dtype = o.dtype.split(",") if o.dtype else []
    o.backends = o.backends.split(",") if o.backends else []
    o.variants = list(ALL) if o.variants == "all" else o.variants.split(",")
    o.configs = o.configs.split(",")
    for value, known, what in [(o.dtype, DTYPES, "--dtype"), (o.variants, VARIANTS, "--variants"), (o.backends, BACKENDS, "--backends")]:
        for word in value:
            if word not in known:
                parser.error(f"{what}: {word} is none of {', '.join(known)}")
    for dim in o.dims:
        if dim % 8 or dim > 256:
            parser.error(f"--dims: {dim} is no multiple of 8 from 8 to 256")
    if any(v not in ("full", "causal") for v in o.variants) and "full" not in o.variants:
        o.variants.insert(0, "full")  # what variants are compared with
    o.variants.sort(key=VARIANTS.index)
    import_torch()
    o.device = o.device or ("cuda" if torch.cuda.is_available() else "cpu")
    gpu = o.device == "cuda"
    o.dtype = o.dtype or (["bf16"] if gpu else ["fp32", "bf16", "fp16"])
    full = gpu or o.grid == "full"
    o.seqlens = o.seqlens or ([512, 1024, 2048, 4096, 8192, 16384] if full else [512, 2048])
    o.tokens = o.tokens or (16384 if full else 4096)
    o.width = o.width or (2048 if full else 512)
    if o.keys and o.variants != ["full"]:
        parser.error("--keys: masks and hooks are timed where queries and keys are the same tokens: add --variants full")
    for dim in o.dims if o.heads_kv else []:
        if max(1, o.width // dim) % o.heads_kv:
            parser.error(f"--heads-kv {o.heads_kv}: {max(1, o.width // dim)} heads of head_dim {dim} (--width {o.width}) are no multiple of it")
    return o


def write_markdown(o, cells, unit):
    """A row for each type, head dimension, variant and tile; a column for each length."""
    names = list(dict.fromkeys(name for c in cells for name in c["others"]))
    rows = list(dict.fromkeys((c["dtype"], c["head_dim"], c["variant"], c["config"]) for c in cells))
    ratios = f" (x {', x '.join(names)})" if names else ""
    with open(o.markdown, "w") as file:
        file.write(
            f"| {unit}{ratios} | " + " | ".join(map(str, o.seqlens)) + " |\n|---|" + "---|" * len(o.seqlens) + "\n"
        )
        for row in rows:
            found = {c["seqlen"]: c for c in cells if (c["dtype"], c["head_dim"], c["variant"], c["config"]) == row}
            label = f"{row[0]} d{row[1]} {row[2]}" + ("" if row[3] == "default" else f" {row[3]}")
            texts = []
            for seqlen in o.seqlens:
                c = found.get(seqlen)
                over = [f"{c['others'][n]['ratio']:.2f}" if n in c["others"] else "-" for n in names] if c else []
                texts.append((f"{c['rate']:.0f}" + (f" ({', '.join(over)})" if over else "")) if c else "")
            file.write(f"| {label} | " + " | ".join(texts) + " |\n")


def main():
    started = time.time()
    o = options()
    device, gpu = o.device, o.device == "cuda"
    unit, giga = ("TFLOP/s", 1e12) if gpu else ("GFLOP/s", 1e9)
    set_tf32(False)
    suffix = {c: "" if c == "default" else "_" + c for c in o.configs}
    names = [f"{t}_d{d}_{v}{suffix[c]}" for t in o.dtype for d in o.dims for v in o.variants for c in o.configs]
    paths, build_code = build(names, "gpu" if gpu else "cpu", o.jobs)
    instances = [Instance(path) for path in paths]
    failures = int(build_code != 0)

    versions = {"fa": fa_version(), "python": sys.version.split()[0], "torch": torch.__version__}
    if gpu:
        versions.update(
            cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(), device=torch.cuda.get_device_name()
        )
    else:
        cores = len(os.sched_getaffinity(0))
        torch.set_num_threads(int(os.environ.get("FA_THREADS", cores)))
        versions.update(threads=torch.get_num_threads(), device="cpu")
    print("versions:", ", ".join(f"{k} {v}" for k, v in versions.items()))
    before = state(device)
    print("before:", before)
    print(
        f"grid: batch x seqlen = {o.tokens}, heads x head_dim = {o.width}, layout {o.layout}"
        + (f", {o.heads_kv} heads of keys" if o.heads_kv else "") + (f", {o.keys} keys" if o.keys else "") + "; "
        f"median of {o.repeat}; {unit}"
    )

    print_compilations(instances)
    print()

    timer, cells, wrong_cells, skipped, unavailable = Timer(device, o.repeat), [], [], 0, {}
    for dtype in o.dtype:
        for dim in o.dims:
            for seqlen in o.seqlens:
                plain = {}  # config -> seconds of the full kernel at this shape
                for variant in o.variants:
                    if o.budget and time.time() - started > o.budget:
                        skipped += 1
                        continue
                    ours = [i for i in instances if (i.dtype, i.dim, i.variant) == (dtype, dim, variant)]
                    if not ours:
                        continue
                    try:
                        cell = Cell(o, dtype, dim, seqlen, variant, device)
                        cell.make_reference()
                    except torch.OutOfMemoryError as error:
                        print(
                            f"{dtype} d{dim} {variant} s {seqlen}: inputs or reference do not fit: {str(error)[:120]}"
                        )
                        continue
                    if variant != "full":
                        # The plain kernels run again beside their variant, so that both see the same clock.
                        ours += [
                            i
                            for i in instances
                            if (i.dtype, i.dim, i.variant) == (dtype, dim, "full")
                            and any(i.config == j.config for j in ours)
                        ]
                    stream = torch.cuda.current_stream().cuda_stream if gpu else None
                    runs, errors, plans = {}, {}, {}
                    for instance in ours:
                        label = instance.config if instance.variant == variant else "plain/" + instance.config
                        a = cell.args()
                        try:
                            if instance.variant == variant:
                                errors[label], wrong = cell.check(instance, stream)
                                if wrong:
                                    failures += 1
                                    print(f"WRONG  {instance.name} s {seqlen}: {wrong}; not timed")
                                    wrong_cells.append(dict(cell.record(label), correct=False))
                                    continue
                                plans[label] = instance.plan(a)
                            runs[label] = lambda instance=instance, a=a: instance.forward(a, stream)
                        except RuntimeError as error:
                            failures += 1
                            print(f"FAILED {instance.name} s {seqlen}: {error}")
                    for name, run in contestants(cell, o).items():
                        try:
                            errors[name] = cell.error(run())
                            wait(device)
                            runs[name] = run
                        except (RuntimeError, torch.OutOfMemoryError) as error:
                            unavailable.setdefault(
                                name, f"{dtype} d{dim} {variant} s {seqlen}: {str(error).splitlines()[0][:160]}"
                            )
                            if gpu:
                                torch.cuda.empty_cache()
                    if not any(label in plans for label in runs):
                        continue
                    seconds = timer.measure(runs)
                    others = [name for name in runs if name not in plans and not name.startswith("plain/")]
                    rates = {name: cell.operations() / t / giga for name, t in seconds.items()}
                    best_label = min((label for label in plans), key=lambda label: seconds[label])
                    for label, plan in plans.items():
                        if variant == "full":
                            plain[label] = seconds[label]
                        line = f"{dtype:<5}d{dim:<4}{variant:<18}s {seqlen:<6}{label:<18}{rates[label]:>8.1f}"
                        record = cell.record(label)
                        record.update(
                            correct=True,
                            ms=1e3 * seconds[label],
                            ms_quartiles=[1e3 * t for t in timer.spread[label]],
                            rate=rates[label],
                            unit=unit,
                            error=errors[label],
                            error_limit=cell.limit,
                            unfused_error=cell.low_error,
                            block_m=plan.block_m,
                            block_n=plan.block_n,
                            stages=plan.stages,
                            warps=plan.warps,
                            schedule=plan.schedule.decode() if plan.schedule else "",
                            others={},
                            best=label == best_label,
                        )
                        for name in others:
                            ratio = rates[label] / rates[name]
                            line += f"   {name} {rates[name]:>6.1f} x{ratio:.3f}"
                            record["others"][name] = dict(rate=rates[name], ratio=ratio, error=errors[name])
                        if variant != "full":
                            fraction = cell.tile_fraction(plan.block_m, plan.block_n)
                            planned = plan.tiles_visited / plan.tiles_total if plan.tiles_total else math.nan
                            base = seconds.get("plain/" + label, plain.get(label))
                            if base:
                                ratio = seconds[label] / (base * fraction)
                                line += f"   {ratio:.3f} of plain x {fraction:.4f}"
                                record.update(over_plain=ratio, tile_fraction=fraction, planned_fraction=planned)
                            if abs(planned - fraction) > 1e-6:
                                line += f" (NAME_plan says {planned:.4f})"
                        line += f"   err {errors[label]:.1e}" + "".join(
                            f" {name} {errors[name]:.1e}" for name in others
                        )
                        line += f"   {plan.block_m}x{plan.block_n} s{plan.stages} w{plan.warps}"
                        print(line, flush=True)
                        cells.append(record)
                    del cell, runs
                    if gpu:
                        torch.cuda.empty_cache()

    after = state(device)
    print("\nafter:", after)
    for name, why in unavailable.items():
        print(f"{name} could not run, first at {why}")
    summary = {}
    for label in o.configs:
        for name in sorted({n for c in cells for n in c["others"]}):
            for dtype in o.dtype:
                found = [
                    (c["others"][name]["ratio"], c)
                    for c in cells
                    if c["config"] == label and c["dtype"] == dtype and name in c["others"]
                ]
                if found:
                    low, cell = min(found, key=lambda pair: pair[0])
                    mean = geometric_mean([ratio for ratio, _ in found])
                    summary[f"{dtype} {label} over {name}"] = dict(mean=mean, lowest=low, cells=len(found))
                    print(
                        f"{dtype} {label} over {name}: geometric mean {mean:.3f}, lowest {low:.3f}"
                        f" (d{cell['head_dim']} {cell['variant']} s {cell['seqlen']}), {len(found)} cells"
                    )
    if len(o.configs) > 1:
        print("best tile of each cell:")
        for c in (c for c in cells if c["best"]):
            print(f"  {c['dtype']} d{c['head_dim']} {c['variant']} s {c['seqlen']}: {c['config']}, {c['rate']:.1f}")
    if skipped:
        print(f"{skipped} cells were not started: --budget {o.budget:.0f} s was spent")
    if failures:
        print(f"{failures} instances FAILED or are WRONG")
    if o.json:
        report = dict(
            versions=versions,
            before=before,
            after=after,
            tokens=o.tokens,
            width=o.width,
            heads_kv=o.heads_kv,
            keys=o.keys,
            layout=o.layout,
            documents=o.documents,
            window=o.window,
            softcap=o.softcap,
            repeat=o.repeat,
            unit=unit,
            compile={i.name: i.compile for i in instances},
            cells=cells + wrong_cells,
            summary=summary,
            failures=failures,
        )
        with open(o.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    if o.tsv:
        with open(o.tsv, "w") as file:
            for c in cells:
                if c["variant"] not in ("full", "causal"):
                    continue
                panel = f"beside PyTorch: {c['dtype']} d{c['head_dim']} {c['variant']} ({unit})"
                name = "fa" if c["config"] == "default" else "fa " + c["config"]
                file.write(f"{panel}\t{name}\t{c['seqlen']}\t{c['rate']:.2f}\n")
                for name, other in c["others"].items() if c["best"] else ():
                    file.write(f"{panel}\t{name}\t{c['seqlen']}\t{other['rate']:.2f}\n")
    if o.markdown:
        write_markdown(o, cells, unit)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
