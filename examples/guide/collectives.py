# SPDX-License-Identifier: Apache-2.0
"""collectives.c in Python: a group, an asynchronous collective, and a plan."""

import numpy as np

import libdist
from libdist import ReduceOp


def sum_of_group(replica, group):
    """Only the members of the group take part."""
    if group.rank(replica.id) < 0:
        return None  # not a member
    return replica.all_reduce(ReduceOp.SUM, replica.id + 1, group=group)


def asynchronous(replica):
    """The call returns immediately. The array must not be touched until the work has completed."""
    number = np.array([replica.id + 1])
    with replica.begin.all_reduce(ReduceOp.SUM, number, out=number) as work:
        # ... compute something else here ...
        work.result()
    return number[0]


def planned(replica):
    """Planned once, then started in each step. An array can be reduced as soon as all replicas declared it ready."""
    numbers, sums = [np.zeros(()), np.zeros(())], []
    # A pack for each array; real gradients need packs of about 4 MiB.
    with replica.plan.all_reduce(ReduceOp.SUM, numbers, out=numbers, bytes_per_pack=8) as plan:
        for step in (1, 2):
            for t in (1, 0):  # the last array first, as in backpropagation
                numbers[t][...] = step * (t + 1) * (replica.id + 1)
                plan.ready(t)
            plan.result()
            sums.append(f"step {step}: {numbers[0]:g} {numbers[1]:g}")
    return sums


def step(replica):
    return [f"group: {sum_of_group(replica, even)}", f"asynchronous: {asynchronous(replica)}", *planned(replica)]


with libdist.Strategy(4) as strategy:
    even = strategy.group([0, 2])
    results = strategy.run(step)
    print(*results[0], sep="\n")
    even.close()
