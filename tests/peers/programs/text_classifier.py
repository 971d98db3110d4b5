"""News into classes: words of different numbers in a bag of embeddings with offsets."""

import numpy as np
import torch
from torch import nn


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super(TextClassificationModel, self).__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for label, text in batch:
        label_list.append(label)
        processed = torch.tensor(text, dtype=torch.int64)
        text_list.append(processed)
        offsets.append(processed.size(0))
    return (torch.tensor(label_list, dtype=torch.int64), torch.cat(text_list),
            torch.tensor(offsets[:-1]).cumsum(dim=0))


def train(share, steps):
    random = np.random.default_rng(0)
    model = share(TextClassificationModel(50, 16, 4))
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    losses = []
    for step in range(steps):
        lengths = (3, 5, 4, 6) if step % 2 else (4, 4, 2, 3)
        batch = [(int(random.integers(4)), random.integers(0, 50, n).tolist()) for n in lengths]
        label, text, offsets = collate_batch(batch)
        optimizer.zero_grad()
        loss = criterion(model(text, offsets), label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
