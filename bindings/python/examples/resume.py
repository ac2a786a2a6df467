# SPDX-License-Identifier: Apache-2.0
"""Saves a checkpoint in the middle of an epoch and resumes from it with a different number of replicas.

The file contains the variable, the position in the dataset, and metadata of the program.
"""

import pathlib
import tempfile

import numpy as np

from libdist import Aggregation, Assign, ReduceOp, Strategy

ROWS = np.arange(24.0)


def make(strategy):
    """Creates a variable and a shuffled dataset with batches of four rows."""
    total = strategy.variable(np.zeros(()), name="total", aggregation=Aggregation.SUM)
    return total, strategy.dataset_from_tensors(ROWS, global_batch_size=4, shuffle=True, seed=7)


def add(replica, rows, total):
    """Runs on every replica: adds its rows to the variable."""
    replica.assign(total, rows.sum(), Assign.ADD)


def first_half(path):
    """Processes three batches on two replicas and saves a checkpoint."""
    with Strategy(2) as strategy:
        total, dataset = make(strategy)
        with iter(dataset) as batches:
            for _ in range(3):
                strategy.run_values(add, (next(batches), total))
            position = batches.position
        strategy.save_checkpoint(path, [total], position=position, metadata={"run": "first"})
        print(f"saved after {position.batches} batches: {total.read():.0f}")


def second_half(path):
    """Processes the remaining batches on four replicas."""
    with Strategy(4) as strategy:
        total, dataset = make(strategy)
        position = strategy.load_checkpoint(path, [total], position=True)
        with strategy.open_checkpoint(path) as file:
            print(f"the {file.metadata['run']} run left {file['total']:.0f} at row {position.elements}")
        for rows in dataset.iterate_from(position):
            strategy.run_values(add, (rows, total))
        print(f"all rows: {total.read():.0f}, as {strategy.reduce(ReduceOp.MEAN, ROWS.sum()):.0f} should be")


with tempfile.TemporaryDirectory() as folder:
    first_half(pathlib.Path(folder) / "half.safetensors")
    second_half(pathlib.Path(folder) / "half.safetensors")
