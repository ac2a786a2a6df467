# SPDX-License-Identifier: Apache-2.0
"""Saves a checkpoint after each step, keeps the last two, and continues from the latest with more replicas."""

import pathlib

import numpy as np

from libdist import Aggregation, Assign, Strategy

KEPT = 2


def checkpoints():
    return sorted(pathlib.Path().glob("step-*.safetensors"))


def add_one(replica, w):
    """All replicas together add 1."""
    replica.assign(w, np.float64(1 / replica.num_replicas), Assign.ADD)


def train(replicas, last_step):
    with Strategy(replicas) as strategy:
        w = strategy.variable(np.zeros(()), name="w", aggregation=Aggregation.SUM)
        step = 0
        if checkpoints():
            strategy.load_checkpoint(checkpoints()[-1], [w])
            step = int(checkpoints()[-1].stem.removeprefix("step-"))
        print(f"{replicas} replicas start after step {step}: w = {w.read():g}")
        while step < last_step:
            strategy.run(lambda replica: add_one(replica, w))
            step += 1
            strategy.save_checkpoint(f"step-{step:06}.safetensors", [w])
            for old in checkpoints()[:-KEPT]:  # only after the new one is complete
                old.unlink()


train(2, 5)
train(4, 7)
for path in checkpoints():
    path.unlink()
    print(f"{path} was left")
