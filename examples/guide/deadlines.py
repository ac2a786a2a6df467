# SPDX-License-Identifier: Apache-2.0
"""deadlines.c in Python: three runs that end early, and one that succeeds after them."""

import libdist


def compute(replica):
    """A long computation. check() raises when the run fails, is cancelled, or reaches its deadline."""
    while True:
        replica.check()  # ... and compute a little


def late(replica):
    """Replica 1 does not arrive at the barrier in time."""
    if replica.id == 1:
        compute(replica)
    replica.barrier(timeout=0.05)


def slow(replica):
    """Replica 0 takes longer than the whole run may."""
    if replica.id == 0:
        compute(replica)


def cancelled(replica):
    """Replica 0 cancels the run. Any other thread could do so, too."""
    if replica.id == 0:
        cancel.signal("enough")
    compute(replica)


def report(name, fn, **options):
    try:
        strategy.run(fn, **options)
        print(f"{name}: OK")
    except libdist.DistError as error:
        print(f"{name}: {error.status.name}" + (f", replica {error.replica}" if error.replica >= 0 else ""))


with libdist.Strategy(2) as strategy, libdist.Cancel() as cancel:
    report("late", late)
    report("slow", slow, timeout=0.05)
    report("cancelled", cancelled, cancel=cancel)
    report("quick", lambda replica: replica.barrier())
