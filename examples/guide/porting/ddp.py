# SPDX-License-Identifier: Apache-2.0
"""Fits y = 3 x with two processes. With PyTorch's DistributedDataParallel.

torchrun --nproc-per-node 2 ddp.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(model.weight)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.tensor([[i / 32 - 1] for i in range(64)])

for epoch in range(1, 4):
    total = torch.zeros(())
    for first in range(0, 64, 16):
        mine = x[first : first + 16][16 * rank // size : 16 * (rank + 1) // size]
        loss = ((model(mine) - 3 * mine) ** 2).mean() / 2
        optimizer.zero_grad()
        loss.backward()  # DDP averages the gradients of all processes
        optimizer.step()
        total += 2 * loss.detach() / 4
    dist.all_reduce(total)
    if rank == 0:
        print(f"epoch {epoch}: loss {total / size:.4f}")
if rank == 0:
    print(f"w = {model.module.weight.item():.4f}")
dist.destroy_process_group()
