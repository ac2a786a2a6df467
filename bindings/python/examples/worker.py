# SPDX-License-Identifier: Apache-2.0
"""One of the processes of a job, which TF_CONFIG describes. Its replicas and those of all others, whatever language they
are written in, add up their numbers. With the word `reform` it does so once more, after the workers have re-formed without
those that have ended.

    dist-launch -n 2 --replicas 2 -- python worker.py
"""

import sys

import numpy as np

import libdist
from libdist import ReduceOp, Replica, StrategyKind


def add_up(replica: Replica) -> None:
    total = replica.all_reduce(ReduceOp.SUM, np.array([replica.id + 1.0]), tag="numbers")
    print(f"replica {replica.id} of {replica.num_replicas}: {total[0]:.0f}\n", end="", flush=True)


with libdist.Strategy(kind=StrategyKind.MULTI_WORKER_MIRRORED) as strategy:
    strategy.run(add_up)
    if sys.argv[1:] == ["reform"]:
        strategy.reform()
        strategy.run(add_up)
