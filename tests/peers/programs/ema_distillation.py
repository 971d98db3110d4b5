"""A student learns from a teacher that is the moving average of its weights; the average by hand and by AveragedModel."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def encoder():
    return nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.GELU(), nn.Linear(24, 6))


@torch.no_grad()
def update_teacher(student, teacher, momentum):
    for ps, pt in zip(student.parameters(), teacher.parameters()):
        pt.data.mul_(momentum).add_(ps.detach().data, alpha=1 - momentum)
    for bs, bt in zip(student.buffers(), teacher.buffers()):
        bt.copy_(bs)


def train(share, steps):
    random = np.random.default_rng(0)
    student = share(encoder())
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad = False
    averaged = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.RMSprop(student.parameters(), lr=1e-3, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for step in range(steps):
        x = torch.from_numpy(random.normal(size=(8, 12)).astype(np.float32))
        noise = torch.from_numpy(random.normal(size=(8, 12)).astype(np.float32)) * 0.1
        teacher.eval()
        with torch.no_grad():
            target = F.softmax(teacher(x) / 0.5, dim=-1)
        loss = F.kl_div(F.log_softmax(student(x + noise), dim=-1), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        update_teacher(student, teacher, 0.9)
        averaged.update_parameters(student)
        losses.append(loss.item())
    averaged.eval()
    with torch.no_grad():
        losses += averaged(x).mean(dim=0).tolist()
    return losses
