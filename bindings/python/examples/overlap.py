# SPDX-License-Identifier: Apache-2.0
"""Overlaps all-reduces with computing gradients. A plan for the list is created once and started in every step."""

import numpy as np

import libdist
from libdist import ReduceOp

SIZES, STEPS = (1000, 2000, 500), 3


def train(replica):
    """Runs on every replica. One plan serves all steps."""
    gradients = [np.zeros(size, np.float32) for size in SIZES]
    parameters = [np.zeros(size, np.float32) for size in SIZES]
    with replica.plan.all_reduce(ReduceOp.MEAN, gradients, out=gradients, bytes_per_pack=4096) as plan:
        for step in range(STEPS):
            for layer in reversed(range(len(SIZES))):  # the last layer first, as in backpropagation
                gradients[layer][:] = (replica.id + 1) * (layer + 1) + step
                plan.ready(layer)
            plan.result(timeout=60)
            for parameter, gradient in zip(parameters, gradients):
                parameter -= np.float32(0.5) * gradient
    return [float(parameter[0]) for parameter in parameters]


with libdist.Strategy(3) as strategy:
    learned = strategy.run(train)
    print(learned[0], "on every replica:", all(other == learned[0] for other in learned))
