# SPDX-License-Identifier: Apache-2.0
"""One worker process of a job that TF_CONFIG describes.

The replicas of all workers sum their numbers. The other workers may be written in any language. With the argument
`reform`, the workers that are still running re-form without the others and sum again.

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
