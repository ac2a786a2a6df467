# SPDX-License-Identifier: Apache-2.0
"""observing.c in Python: the late replica, metrics, a trace, and copies of a variable that differ.

Run it as `observing.py TRACE.json`.
"""

import logging
import sys
from pathlib import Path

import numpy as np

import libdist
from libdist import ReduceOp


def step(replica):
    """Replica 0 begins the all-reduce before the barrier, replica 1 after it: so replica 1 is late."""
    if replica.id == 0:
        work = replica.begin.all_reduce(ReduceOp.SUM, 1.0, tag="gradients")
    replica.barrier()
    if replica.id == 1:
        work = replica.begin.all_reduce(ReduceOp.SUM, 1.0, tag="gradients")
    work.result()


def find_drift():
    w = strategy.variable(np.zeros(3), name="w")
    w.component(1)[2] = 5  # a mistake: only one copy changes
    try:
        w.check_drift()
    except libdist.DataLoss as error:
        print(f"replica {error.replica} has {error.received} instead of {error.expected}")


with libdist.Strategy(2, log=logging.getLogger("libdist")) as strategy:
    for _ in range(3):
        strategy.run(step)
    for row in strategy.stragglers():
        if row.tag == "gradients":  # only this one is the same in every run
            print(f'replica {row.replica} was last in {row.times_last} of {row.rounds} rounds of "{row.tag}"')
    find_drift()
    print(strategy.explain() + strategy.write_metrics("train"), file=sys.stderr)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(strategy.write_trace(), encoding="utf-8")
