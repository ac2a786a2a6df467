# SPDX-License-Identifier: Apache-2.0
"""embedding.c in Python: two threads of the program are the replicas."""

from concurrent.futures import ThreadPoolExecutor

import libdist
from libdist import ReduceOp, Threads


def work(replica_id):
    """A thread of the program: it joins the run, does its part, and leaves with the run."""
    with strategy.enter(replica_id) as replica:  # raises if the run has failed
        return replica.all_reduce(ReduceOp.SUM, replica.id + 1)


with libdist.Strategy(2, threads=Threads.HOST) as strategy, ThreadPoolExecutor(2) as pool:
    for i, total in enumerate(pool.map(work, range(2))):
        print(f"replica {i}: the sum is {total}")
