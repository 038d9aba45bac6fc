#!/usr/bin/env python3
"""The peer of `vesta bench ops`: times PyTorch expressions that it is sent, one JSON line each.

    ops_torch.py THREADS TO FROM      reads {inputs, dtype, high, expr, bwd, calls} from the pipe TO, answers {us} on FROM
"""
import json, sys, time
import torch, torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
to, out = open(sys.argv[2]), open(sys.argv[3], "w")
cases = {}

def prepare(c):
    xs = []
    for shape, high in zip(c["inputs"], c["high"]):
        if high: xs.append(torch.randint(high, shape))
        else: xs.append(torch.randn(shape).to(getattr(torch, c["dtype"])).requires_grad_(c["bwd"]))
    f = eval("lambda x: " + c["expr"])
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
