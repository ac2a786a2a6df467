# SPDX-License-Identifier: Apache-2.0
"""sums.c in Python: adds up four numbers with each order of additions."""

import numpy as np

import libdist
from libdist import Numerics, ReduceOp


def add(replicas, numerics, terms):
    """Each replica contributes the same number of terms, in order."""
    n = len(terms) // replicas

    def step(replica):
        own, total = [np.array(term) for term in terms[replica.id * n : (replica.id + 1) * n]], np.zeros(())
        replica.all_reduce(ReduceOp.SUM, own, out=[total], contributions=n, numerics=numerics)
        return float(total)

    with libdist.Strategy(replicas) as strategy:
        return strategy.run(step)[0]


terms, moved = [1.0, 1e16, -1e16, 1.0], [1e16, -1e16, 1.0, 1.0]
for numerics in (Numerics.ORDERED, Numerics.TREE, Numerics.REPRODUCIBLE):
    print(f"{numerics.name}: {add(4, numerics, terms):g}, {add(2, numerics, terms):g}, {add(4, numerics, moved):g}")
