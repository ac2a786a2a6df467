# SPDX-License-Identifier: Apache-2.0
"""Fits y = 3 x on two replicas. PyTorch computes the gradients, and libdist averages them."""

import torch

import libdist
from libdist import ReduceOp

x = torch.tensor([[i / 32 - 1] for i in range(64)])


def train(replica):
    rank, size = replica.id, replica.num_replicas
    model = torch.nn.Linear(1, 1, bias=False)  # each replica has a model of its own
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(1, 4):
        total = torch.zeros(())
        for first in range(0, 64, 16):
            mine = x[first : first + 16][16 * rank // size : 16 * (rank + 1) // size]
            loss = ((model(mine) - 3 * mine) ** 2).mean() / 2
            optimizer.zero_grad()
            loss.backward()
            gradients = [parameter.grad for parameter in model.parameters()]
            replica.all_reduce(ReduceOp.MEAN, gradients, out=gradients, tag="gradients")
            optimizer.step()
            total += 2 * loss.detach() / 4
        replica.all_reduce(ReduceOp.MEAN, total, out=total, tag="loss")
        if rank == 0:
            print(f"epoch {epoch}: loss {total:.4f}")
    if rank == 0:
        print(f"w = {model.weight.item():.4f}")


torch.set_num_threads(1)
with libdist.Strategy(2) as strategy:
    strategy.run(train)
