# SPDX-License-Identifier: Apache-2.0
"""Fits y = 3 x on two replicas."""

import numpy as np

import libdist
from libdist import Aggregation, Assign, ReduceOp


def step(replica, x, y, w):
    error = w.component(replica.id) * x - y
    replica.assign(w, np.float32(0.5 / 16) * (error * x).sum(), Assign.SUB)
    return (error * error).sum()


with libdist.Strategy(2) as strategy:
    w = strategy.variable(np.float32(0), name="w", aggregation=Aggregation.SUM)
    x = np.array([i / 32 - 1 for i in range(64)], np.float32)
    dataset = strategy.dataset_from_tensors([x, 3 * x], global_batch_size=16)
    for epoch in range(1, 4):
        loss = 0.0
        for batch in dataset:
            losses = strategy.run_values(step, (*batch, w))
            loss += float(strategy.reduce(ReduceOp.SUM, losses))
        print(f"epoch {epoch}: loss {loss / 64:.4f}")
    print(f"w = {float(w.read()):.4f}")
