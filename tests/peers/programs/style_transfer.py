"""A picture with the content of one and the style of another: L-BFGS moves the picture, not the network."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def gram_matrix(x):
    a, b, c, d = x.size()
    features = x.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, x):
        self.loss = F.mse_loss(gram_matrix(x), self.target)
        return x


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def train(share, steps):
    random = np.random.default_rng(0)
    content, style = (torch.from_numpy(random.random((1, 3, 16, 16), dtype=np.float32)) for _ in range(2))
    cnn = share(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
                              nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1))).eval()
    model = nn.Sequential(Normalization([0.5, 0.4, 0.4], [0.2, 0.2, 0.2]))
    content_losses, style_losses = [], []
    for i, layer in enumerate(cnn.children()):
        if isinstance(layer, nn.ReLU):
            layer = nn.ReLU(inplace=False)
        model.add_module(f"layer_{i}", layer)
        if isinstance(layer, nn.Conv2d):
            loss = StyleLoss(model(style).detach())
            model.add_module(f"style_loss_{i}", loss)
            style_losses.append(loss)
            if i == 2:
                loss = ContentLoss(model(content).detach())
                model.add_module(f"content_loss_{i}", loss)
                content_losses.append(loss)
    picture = content.clone()
    picture.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = optim.LBFGS([picture], lr=0.5, max_iter=5)
    losses = []
    for step in range(steps // 4):
        def closure():
            with torch.no_grad():
                picture.clamp_(0, 1)
            optimizer.zero_grad()
            model(picture)
            score = sum(loss.loss for loss in style_losses) * 1e4 + sum(loss.loss for loss in content_losses)
            score.backward()
            losses.append(score.item())
            return score

        optimizer.step(closure)
    with torch.no_grad():
        picture.clamp_(0, 1)
    return [*losses, picture.mean().item(), picture.std().item()]
