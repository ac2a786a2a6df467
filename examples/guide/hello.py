# SPDX-License-Identifier: Apache-2.0
"""hello.c in Python: four replicas add up their numbers."""

import libdist
from libdist import ReduceOp


def add_up(replica):
    total = replica.all_reduce(ReduceOp.SUM, float(replica.id + 1))  # 1, 2, 3 and 4
    print(f"replica {replica.id}: the sum is {total:g}\n", end="")  # one write, because replicas print at the same time


with libdist.Strategy(4) as strategy:
    strategy.run(add_up)
