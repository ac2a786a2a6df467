# SPDX-License-Identifier: Apache-2.0
"""input.c in Python: batches of a source, and a value from a function."""

import libdist


def squares():
    for number in range(7):
        yield number * number


with libdist.Strategy(2) as strategy:
    dataset = strategy.dataset_from_iterable(squares, global_batch_size=4)
    for batch in dataset:
        print(batch.describe())  # a training loop passes the batch to run_values()
    seeds = strategy.values_from_function(lambda context: 100 + context.replica_id)
    print(seeds.describe())
