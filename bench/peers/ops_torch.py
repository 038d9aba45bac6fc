#!/usr/bin/env python3
"""The peer of `vesta bench ops`: times PyTorch expressions that it is sent, one JSON line each.

    ops_torch.py THREADS TO FROM      reads {inputs, dtype, high, form, setup, expr, bwd, calls} from the pipe TO, answers {us} on FROM

form: see BenchInput in cli/benches/ops_cases.h.
"""
import json, sys, time
import torch, torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
to, out = open(sys.argv[2]), open(sys.argv[3], "w")
cases = {}

def make(shape, high, form, dtype, bwd):
    shape, form = list(shape), form.split()
    if "transposed" in form: shape[-1], shape[-2] = shape[-2], shape[-1]
    if "every_other" in form: shape[-1] *= 2
    if high: t = torch.randint(high, shape)
    elif "mask" in form: t = torch.rand(shape) < 0.5
    elif dtype == torch.int64: t = torch.randint(1000, shape)
    elif "uniform" in form: t = (torch.rand(shape) * 0.98 + 0.01).to(dtype)
    else: t = torch.randn(shape).to(dtype)
    if "sorted" in form: t = t.sort(-1)[0]
    if "transposed" in form: t = t.transpose(-1, -2)
    if "every_other" in form: t = t[..., ::2]
    return t.requires_grad_(bwd and t.is_floating_point() and "fixed" not in form)

def prepare(c):
    dtype = getattr(torch, c["dtype"])
    xs = [make(*of, dtype, c["bwd"]) for of in zip(c["inputs"], c["high"], c["form"])]
    names = {"torch": torch, "F": F, "x": xs}
    exec(c["setup"], names)
    f = eval("lambda x: " + c["expr"], names)
    if not c["bwd"]: return lambda: f(xs)
    y, wanted = f(xs), [x for x in xs if x.requires_grad]
    dy = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True)

for line in to:
    c = json.loads(line)
    if c["name"] not in cases: cases = {c["name"]: prepare(c)}
    run = cases[c["name"]]
    for _ in range(2): run()
    best = 1e30
    for _ in range(5):
        t = time.perf_counter()
        for _ in range(c["calls"]): run()
        best = min(best, time.perf_counter() - t)
    print(json.dumps({"us": best / c["calls"] * 1e6}), file=out, flush=True)
