#!/usr/bin/env python3
"""The peer's side of the main job: train the same byte-level GPT with PyTorch and print one JSON line.

    gpt_torch.py --text FILE [--compile] [--device cpu|cuda] [--dtype fp32|bf16] [--size nano|small|gpt2] [--steps N] [--threads N]

Same model as Vesta's examples/gpt: pre-norm blocks, fused QKV, GELU(tanh) MLP of 4x, learned positions, tied head, no
dropout, AdamW(lr 1e-3, betas 0.9/0.95, weight decay 0.1), cross-entropy in float32, batches drawn uniformly.

With --serve TO FROM it is the peer of the bench `gpt`: it reads commands from the pipe TO, one JSON object a line, and
answers each with a line on the pipe FROM.
    {"do": "steps", "n": N}                      -> {"seconds": S}      train N steps on batches of its own
    {"do": "losses", "weights": F, "batches": G} -> {"losses": [...]}   start anew from F (the parameters' float32, in order,
                                                    raw) and train on each of G (uint8, [steps, batch, block + 1], raw)
    {"do": "peak"}                               -> {"bytes": B}        most resident memory of this process so far
    {"do": "about"}                              -> {"version": V}
"""
import argparse, gzip, json, os, time
import torch, torch.nn as nn, torch.nn.functional as F

SIZES = {  # layers, heads, width, block, batch
    "nano": (4, 4, 128, 64, 12),
    "small": (6, 6, 384, 256, 8),
    "gpt2": (12, 12, 768, 1024, 16),
}

class Block(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.h, self.n1, self.n2 = h, nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.out, self.up, self.down = nn.Linear(c, 3 * c), nn.Linear(c, c), nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.h, c // self.h).transpose(1, 2) for z in self.qkv(self.n1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))

class GPT(nn.Module):
    def __init__(self, layers, heads, c, block, vocab=256):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, c), nn.Embedding(block, c)
        self.blocks, self.norm = nn.ModuleList(Block(c, heads) for _ in range(layers)), nn.LayerNorm(c)
        self.head = nn.Linear(c, vocab, bias=False)
        self.head.weight = self.tok.weight
        for p in self.parameters():
            if p.dim() > 1: nn.init.normal_(p, std=0.02)
    def forward(self, x, y):
        h = self.tok(x) + self.pos(torch.arange(x.shape[1], device=x.device))
        for b in self.blocks: h = b(h)
        return F.cross_entropy(self.head(self.norm(h)).float().flatten(0, 1), y.flatten())

a = argparse.ArgumentParser()
a.add_argument("--text", required=True); a.add_argument("--compile", action="store_true"); a.add_argument("--device", default="cpu")
a.add_argument("--dtype", default="fp32"); a.add_argument("--size", default="nano"); a.add_argument("--steps", type=int, default=200)
a.add_argument("--threads", type=int, default=0); a.add_argument("--layers", type=int); a.add_argument("--batch", type=int)
a.add_argument("--serve", nargs=2)
a = a.parse_args()
if a.threads: torch.set_num_threads(a.threads)
torch.manual_seed(0)
raw = (gzip.open if a.text.endswith((".gz", ".dz")) else open)(a.text, "rb").read()
data = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
layers, heads, c, block, batch = SIZES[a.size]; layers, batch = a.layers or layers, a.batch or batch
model = GPT(layers, heads, c, block).to(a.device)
amp = torch.autocast(a.device, torch.bfloat16, enabled=a.dtype == "bf16")
def new_optimizer(): return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
opt = new_optimizer()
run = torch.compile(model) if a.compile else model
def step():
    i = torch.randint(len(data) - block - 1, (batch,))
    x = torch.stack([data[j:j + block] for j in i]).long().to(a.device); y = torch.stack([data[j + 1:j + 1 + block] for j in i]).long().to(a.device)
    return train_on(x, y)
def train_on(x, y):
    with amp: loss = run(x, y)
    opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
    return loss
sync = torch.cuda.synchronize if a.device == "cuda" else (lambda: None)

def steps(c):
    t = time.perf_counter()
    for _ in range(c["n"]): step()
    sync(); return {"seconds": time.perf_counter() - t}
def losses(c):
    global opt
    flat, at = torch.from_file(c["weights"], size=os.path.getsize(c["weights"]) // 4, dtype=torch.float32), 0
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(flat[at:at + p.numel()].view_as(p)); at += p.numel()
    assert at == flat.numel(), (at, flat.numel())
    opt = new_optimizer()
    b = torch.from_file(c["batches"], size=os.path.getsize(c["batches"]), dtype=torch.uint8).view(-1, batch, block + 1).long().to(a.device)
    return {"losses": [train_on(z[:, :-1], z[:, 1:]).item() for z in b]}
def peak(c):
    return {"bytes": next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmHWM"))}
if a.serve:
    to, out = open(a.serve[0]), open(a.serve[1], "w")
    for line in to:
        c = json.loads(line)
        answer = {"about": lambda c: {"version": torch.__version__}, "steps": steps, "losses": losses, "peak": peak}[c["do"]](c)
        print(json.dumps(answer), file=out, flush=True)
    raise SystemExit

t0 = time.time(); first = step().item(); sync(); first_s = time.time() - t0
for _ in range(5): step()
sync(); t = time.time(); n = 0; times = []
while n < a.steps:
    s = time.time(); loss = step(); sync(); times.append(time.time() - s); n += 1
times.sort(); med = times[len(times) // 2]
print(json.dumps({"peer": "pytorch", "version": torch.__version__, "compile": a.compile, "device": a.device, "dtype": a.dtype, "size": a.size,
                  "params": sum(p.numel() for p in model.parameters()), "first_step_s": round(first_s, 3), "median_step_ms": round(med * 1e3, 3),
                  "tokens_per_s": round(batch * block / med), "first_loss": round(first, 4), "last_loss": round(loss.item(), 4), "threads": torch.get_num_threads()}))
