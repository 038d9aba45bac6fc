#!/usr/bin/env python3
"""The peer of train_bench: the same ResNet-18 and LSTM, losses and optimisers with PyTorch.

    train_torch.py THREADS TO FROM      reads commands from the pipe TO, one JSON object a line, answers on FROM
    {"do": "about"}                  -> {"version": V}
    {"do": "begin", "net": NAME}     -> {"parameters": N}    the net for the steps that follow
    {"do": "steps", "n": N}          -> {"seconds": S}
"""
import json, sys, time
import torch, torch.nn as nn, torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)

def conv3x3(i, o, stride): return nn.Conv2d(i, o, 3, stride, 1, bias=False)

class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.norm1 = conv3x3(i, o, stride), nn.BatchNorm2d(o)
        self.conv2, self.norm2 = conv3x3(o, o, 1), nn.BatchNorm2d(o)
        self.project = None
        if stride != 1 or i != o: self.project, self.norm3 = nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)
    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.project is None else self.norm3(self.project(x))))

class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, blocks, i = conv3x3(3, 64, 1), nn.BatchNorm2d(64), [], 64
        for o in (64, 128, 256, 512):
            for stride in (1 if o == 64 else 2, 1): blocks.append(Residual(i, o, stride)); i = o
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(512, 10)
    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(F.relu(self.norm(self.first(x)))), 1).flatten(1))

class LstmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(128, 256, 2), nn.Linear(256, 10)
    def forward(self, x): return self.head(self.lstm(x)[0][-1])

def begin(name):
    if name.startswith("resnet18"):
        net, x = ResNet(), torch.randn(16, 3, 32, 32)
        opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=5e-4, fused=True)
    else:
        net, x = LstmNet(), torch.randn(64, 32, 128)
        opt = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
    labels = torch.randint(10, (16 if name.startswith("resnet18") else 32,))
    def step():
        loss = F.cross_entropy(net(x), labels)
        opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
    return step, sum(p.numel() for p in net.parameters())

to, out = open(sys.argv[2]), open(sys.argv[3], "w")
for line in to:
    c = json.loads(line)
    if c["do"] == "about": answer = {"version": torch.__version__}
    elif c["do"] == "begin":
        step, n = begin(c["net"])
        answer = {"parameters": n}
    else:
        t = time.perf_counter()
        for _ in range(c["n"]): step()
        answer = {"seconds": time.perf_counter() - t}
    print(json.dumps(answer), file=out, flush=True)
