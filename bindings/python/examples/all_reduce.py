# SPDX-License-Identifier: Apache-2.0
"""A minimal program: four replicas sum their gradients."""

import numpy as np

import libdist
from libdist import ReduceOp


def step(replica):
    """Runs once on every replica, on all of them at the same time."""
    gradient = np.array([1.0, 2.0, 3.0], np.float32) * (replica.id + 1)
    return replica.all_reduce(ReduceOp.SUM, gradient, out=gradient)


with libdist.Strategy(4) as strategy:
    for replica_id, total in enumerate(strategy.run(step)):
        print(f"replica {replica_id}: {total}")
