"""MLP-Mixer: patches by a convolution, layers over patches and over channels in turn, gradients gathered over two batches."""

import numpy as np
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim),
                                 nn.Dropout(dropout))

    def forward(self, x):
        return self.net(x)


class MixerBlock(nn.Module):
    def __init__(self, dim, patches, token_dim, channel_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token_mix = FeedForward(patches, token_dim)
        self.channel_mix = FeedForward(dim, channel_dim)

    def forward(self, x):
        x = x + self.token_mix(self.norm1(x).permute(0, 2, 1)).permute(0, 2, 1)
        return x + self.channel_mix(self.norm2(x))


class MLPMixer(nn.Module):
    def __init__(self, image_size=16, patch_size=4, dim=16, depth=2, num_classes=5):
        super().__init__()
        assert image_size % patch_size == 0
        patches = (image_size // patch_size) ** 2
        self.to_patch = nn.Sequential(nn.Conv2d(3, dim, patch_size, patch_size), nn.Flatten(2))
        self.mixer_blocks = nn.ModuleList([])
        for _ in range(depth):
            self.mixer_blocks.append(MixerBlock(dim, patches, 8, 32))
        self.layer_norm = nn.LayerNorm(dim)
        self.mlp_head = nn.Sequential(nn.Linear(dim, num_classes))

    def forward(self, x):
        x = self.to_patch(x).transpose(1, 2)
        for block in self.mixer_blocks:
            x = block(x)
        return self.mlp_head(self.layer_norm(x).mean(dim=1))


def train(share, steps):
    random = np.random.default_rng(0)
    model = share(MLPMixer())
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=3)
    rest = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=4)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, rest], milestones=[3])
    losses = []
    for step in range(steps):
        x = torch.from_numpy(random.normal(size=(4, 3, 16, 16)).astype(np.float32))
        y = torch.from_numpy(random.integers(0, 5, 4))
        loss = nn.functional.cross_entropy(model(x), y) / 2
        loss.backward()
        if step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        losses.append(loss.item())
    return losses
