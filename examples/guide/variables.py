# SPDX-License-Identifier: Apache-2.0
"""variables.c in Python: a mirrored variable, whose copies are equal, and a counter, of which each replica changes its
own copy."""

import libdist
from libdist import Aggregation, Assign, Synchronization


def step(replica):
    # A collective: all copies change by the sum of the replicas' changes, 1 + 2.
    replica.assign(w, replica.id + 1.0, Assign.ADD)
    # Not a collective: this replica's copy changes by its rows, 4 or 3.
    replica.assign(seen, 4.0 - replica.id, Assign.ADD)


with libdist.Strategy(2) as strategy:
    w = strategy.variable(0.0, name="w", aggregation=Aggregation.SUM)
    seen = strategy.variable(0.0, name="seen", aggregation=Aggregation.SUM, synchronization=Synchronization.ON_READ)
    strategy.run(step)
    print(w.describe())
    print(seen.describe())
    print(f"seen: {seen.read():g}")  # the sum of the copies
