# SPDX-License-Identifier: Apache-2.0
"""Saves a checkpoint after each step, keeps the last two, and continues from the latest with more replicas.

    python checkpoints.py [PREFIX]

The names of the files begin with PREFIX, by default "step".
"""

import pathlib
import sys

import numpy as np

from libdist import Aggregation, Assign, Strategy

KEPT = 2
PREFIX = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "step")


def checkpoints():
    return sorted(PREFIX.parent.glob(f"{PREFIX.name}-*.safetensors"))


def step_of(path):
    return int(path.stem.removeprefix(f"{PREFIX.name}-"))


def add_one(replica, w):
    """All replicas together add 1."""
    replica.assign(w, np.float64(1 / replica.num_replicas), Assign.ADD)


def train(replicas, last_step):
    with Strategy(replicas) as strategy:
        w = strategy.variable(np.zeros(()), name="w", aggregation=Aggregation.SUM)
        step = 0
        if checkpoints():
            strategy.load_checkpoint(checkpoints()[-1], [w])
            step = step_of(checkpoints()[-1])
        print(f"{replicas} replicas start after step {step}: w = {w.read():g}")
        while step < last_step:
            strategy.run(lambda replica: add_one(replica, w))
            step += 1
            strategy.save_checkpoint(f"{PREFIX}-{step:06}.safetensors", [w])
            for old in checkpoints()[:-KEPT]:  # only after the new one is complete
                old.unlink()


train(2, 5)
train(4, 7)
for path in checkpoints():
    path.unlink()
    print(f"step {step_of(path)} was left")
