# SPDX-License-Identifier: Apache-2.0
"""The custom training loop from the tf.distribute documentation. Run it as `training_loop.py [REPLICAS]` (default 2).

It learns on which side of a line a point lies (squared hinge loss). It prints the loss and accuracy of each epoch and
finally the bits of the weights, which equal those of examples/training_loop.c because all sums use the same order.
"""

import sys

import numpy as np

import libdist
from libdist import Aggregation, Assign, MetricKind, ReduceOp, Strategy

EXAMPLES, GLOBAL_BATCH, EPOCHS = 1000, 64, 8
LEARNING_RATE = np.float32(2)


def add_in_order(terms):
    """Sums from left to right. np.sum() adds pairwise."""
    return np.cumsum(terms, dtype=np.float32)[-1] if len(terms) else np.float32(0)


def train_step(replica, points, labels, weights, accuracy):
    """Runs on every replica with its part of the batch."""
    w = weights.component(replica.id)
    z = w[0] * points[:, 0] + w[1] * points[:, 1] + w[2]
    side = np.where(labels != 0, np.float32(1), np.float32(-1))
    missing = np.where(side * z < 1, 1 - side * z, np.float32(0))  # squared hinge loss
    slope = LEARNING_RATE / GLOBAL_BATCH * (-side * missing)
    step = [add_in_order(slope * points[:, 0]), add_in_order(slope * points[:, 1]), add_in_order(slope)]

    # The variable's aggregation is SUM: libdist adds the changes of all replicas and applies the sum to every copy.
    replica.assign(weights, np.array(step, np.float32), Assign.SUB)
    replica.update_metric(accuracy, (z > 0).astype(np.int32), labels)
    return libdist.average_loss(replica, missing * missing, global_batch_size=GLOBAL_BATCH)


def make_dataset(strategy):
    """Points in the square [-1, 1) x [-1, 1). The label tells which side of the line a point is on."""
    random, numbers = 1, []
    for _ in range(2 * EXAMPLES):
        random = (random * 1664525 + 1013904223) & 0xFFFFFFFF
        numbers.append(random >> 8)
    points = (np.array(numbers, np.float32) / np.float32(1 << 23) - 1).reshape(EXAMPLES, 2)
    labels = (points[:, 0] + 2 * points[:, 1] > np.float32(0.25)).astype(np.int32)
    return strategy.dataset_from_tensors([points, labels], global_batch_size=GLOBAL_BATCH, shuffle=True)


def main(replicas):
    """Trains and prints the results."""
    with Strategy(replicas) as strategy:
        with strategy.scope():
            weights = strategy.variable(np.zeros(3, np.float32), name="weights", aggregation=Aggregation.SUM)
            accuracy = strategy.metric(MetricKind.ACCURACY, "accuracy")
        dataset = make_dataset(strategy)
        for epoch in range(1, EPOCHS + 1):
            total_loss, steps = 0.0, 0
            for points, labels in dataset:
                losses = strategy.run_values(train_step, (points, labels, weights, accuracy))
                total_loss += float(strategy.reduce(ReduceOp.SUM, losses))
                steps += 1
            print(f"epoch {epoch}: loss {total_loss / steps:.4f}, accuracy {100 * accuracy.result():.1f}%")
            accuracy.reset()
        weights.check_drift()
        print("weights", *(f"{bits:08x}" for bits in weights.read().view(np.uint32)))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    except libdist.DistError as error:
        sys.exit(f"training_loop: {error}")
