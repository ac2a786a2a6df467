# SPDX-License-Identifier: Apache-2.0
"""training.c in Python: two replicas learn w in y = w * x."""

import numpy as np

import libdist
from libdist import Assign, MetricKind, ReduceOp


def train_step(replica, x, y, w, loss):
    """Runs on each replica with its rows of the batch, which can be none."""
    error = w.component(replica.id) * x - y  # with this replica's copy of w

    # Add up the gradients and the numbers of rows of all replicas, in one call.
    gradient, rows = replica.all_reduce(ReduceOp.SUM, np.array([(2 * error * x).sum(), len(x)]))

    # Every replica has the same sums, so each changes its own copy, and the copies stay equal.
    replica.assign(w, 0.2 * gradient / rows, Assign.SUB)
    replica.update_metric(loss, error**2)


with libdist.Strategy(2) as strategy:
    w = strategy.variable(0.0, name="w")
    loss = strategy.metric(MetricKind.MEAN, "loss")
    x = np.arange(1, 10) / 8
    dataset = strategy.dataset_from_tensors([x, 3 * x], global_batch_size=4)
    for epoch in range(1, 6):
        for batch in dataset:
            strategy.run_values(train_step, (*batch, w, loss))
        print(f"epoch {epoch}: loss {loss.result():.4f}")  # over all rows of all replicas
        loss.reset()
    print(f"w = {w.read():.3f}")
