#!/usr/bin/env python3
"""Training steps of PyTorch programs, 2 threads: eager, inductor, lazuli's backend, for the optimiser's step, too, and whole steps.

    torch_compile.py FOLDER [--no-inductor] [MODEL...]     FOLDER holds the package lazuli; run by `./lz bench --torch`

Each is a process of its own that trains on one random batch. They take turns of some steps, so that what else the machine does meets
all of them alike; the median of the turns is reported, what it is of eager's, and how long the first two steps took, tracing and
compiling included. Inductor needs a C++ compiler. The last line is what a call costs beside the program: a forward and a backward pass
of a small net with 10 parameters.
"""

import functools
import os
import statistics
import subprocess
import sys
import time

THREADS, ROUNDS, SECONDS = 2, 11, 0.3
MODELS = {"mlp": "mlp b128 Adam", "lenet": "lenet b64 SGD", "cifar": "cifar b256 RMSprop", "gpt": "gpt 4x128, 8x128 tokens, AdamW"}
WAYS = ("eager", "inductor", "backend", "backend+optimizer", "train_step")


def training(model, way):
    import torch
    from torch import nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.norm1, self.norm2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(d, 2))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(256, 128), nn.Embedding(128, 128)
            self.blocks, self.norm = nn.Sequential(*(Block(128, 4) for _ in range(4))), nn.LayerNorm(128)
            self.out = nn.Linear(128, 256, bias=False)

        def forward(self, x):
            return self.out(self.norm(self.blocks(self.words(x) + self.places(torch.arange(x.shape[1]))))).flatten(0, 1)

    def images(*sizes):
        return torch.rand(sizes), torch.randint(0, 10, sizes[:1])

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    if model == "mlp":
        net, (x, y) = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), images(128, 784)
        opt = torch.optim.Adam(net.parameters(), 1e-3)
    elif model == "lenet":
        net, (x, y) = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                    nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)), images(64, 1, 28, 28)
        opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    elif model == "cifar":
        net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Conv2d(32, 64, 3, padding=1),
                            nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(4096, 256), nn.ReLU(), nn.Dropout(0.5),
                            nn.Linear(256, 10))
        x, y = images(256, 3, 32, 32)
        opt = torch.optim.RMSprop(net.parameters(), 1e-4)
    else:
        net, x, y = GPT(), torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (1024,))
        opt = torch.optim.AdamW(net.parameters(), 1e-3)
    if way == "train_step":
        import lazuli.torch
        whole = lazuli.torch.train_step(net, opt, F.cross_entropy)
        return lambda: whole(x, y)
    if way.startswith("backend"):
        import lazuli.torch  # noqa: F401
    compiled = functools.partial(torch.compile, backend="inductor" if way == "inductor" else "lazuli")
    forward = net if way == "eager" else compiled(net)
    update = compiled(opt.step) if way == "backend+optimizer" else opt.step

    def step():
        opt.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        update()
        return loss

    return step


def child(model, way):
    start = time.perf_counter()
    import torch  # noqa: F401
    imported = time.perf_counter()
    step = training(model, way)
    step()
    step().item()
    print(time.perf_counter() - imported, imported - start, flush=True)
    for _ in sys.stdin:  # a turn
        steps, begin = 0, time.perf_counter()
        while (now := time.perf_counter()) - begin < SECONDS or steps == 0:
            step().item()
            steps += 1
        print((now - begin) / max(steps, 1) if steps else 0, flush=True)


def call():
    """What a compiled call costs with 10 parameters of next to no elements."""
    import torch
    from torch import nn
    import lazuli.torch  # noqa: F401
    torch.set_num_threads(THREADS)
    net, x = nn.Sequential(*(m for _ in range(5) for m in (nn.Linear(16, 16), nn.ReLU()))), torch.rand(8, 16)
    compiled, times = torch.compile(net, backend="lazuli"), []
    for _ in range(3000):
        net.zero_grad()
        begin = time.perf_counter()
        loss = compiled(x).sum()
        loss.backward()
        times.append(time.perf_counter() - begin)
    print(f"a call, forward and backward, with 10 parameters: {statistics.median(times) * 1e6:.0f} us")


def main(folder, *arguments):
    ways = [w for w in WAYS if w != "inductor" or "--no-inductor" not in arguments]
    models = [a for a in arguments if not a.startswith("--")] or MODELS
    print(f"{'ms per step (of eager), s for the first two':40s}" + "".join(f"{w:>24s}" for w in ways))
    environment = os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": str(THREADS), "LAZULI_NUM_THREADS": str(THREADS)}
    for model in models:
        peers, first, times = [], [], {w: [] for w in ways}
        for way in ways:
            peers.append(subprocess.Popen([sys.executable, __file__, "--child", model, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          text=True, env=environment))
            first.append(float(peers[-1].stdout.readline().split()[0]))
        for _ in range(ROUNDS):
            for way, peer in zip(ways, peers):
                peer.stdin.write("\n")
                peer.stdin.flush()
                times[way].append(float(peer.stdout.readline()))
        for peer in peers:
            peer.stdin.close()
            peer.wait()
        medians = [statistics.median(times[w]) * 1e3 for w in ways]
        print(f"{MODELS[model]:40s}" + "".join(f"{m:9.2f} ({m / medians[0]:4.2f}) {f:5.1f} s" for m, f in zip(medians, first)), flush=True)
    subprocess.run([sys.executable, __file__, "--call"], env=environment, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    elif sys.argv[1:2] == ["--call"]:
        call()
    else:
        main(*sys.argv[1:])
