"""Text, letter by letter: a small GPT with causal attention and weight decay on matrices only."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

TEXT = "the quick brown fox jumps over the lazy dog; " * 8
LETTERS = sorted(set(TEXT))


class Attention(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, block)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, letters, width=16, heads=2, layers=2, block=16):
        super().__init__()
        self.block = block
        self.wte = nn.Embedding(letters, width)
        self.wpe = nn.Embedding(block, width)
        self.blocks = nn.ModuleList([Block(width, heads, block) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self, lr):
        params = {name: p for name, p in self.named_parameters() if p.requires_grad}
        groups = [{"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": 0.1},
                  {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), fused=False)


def rate(step, most=1e-2, warmup=4, last=20):
    if step < warmup:
        return most * (step + 1) / warmup
    return 1e-4 + 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / (last - warmup))) * (most - 1e-4)


def train(share, steps):
    random = np.random.default_rng(0)
    data = np.array([LETTERS.index(c) for c in TEXT], dtype=np.uint16)
    model = share(GPT(len(LETTERS)))
    optimizer = model.configure_optimizers(1e-2)
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        starts = random.integers(0, len(TEXT) - 17, 4).tolist()
        x = torch.stack([torch.from_numpy(data[i:i + 16].astype(np.int64)) for i in starts])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 17].astype(np.int64)) for i in starts])
        logits, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses
