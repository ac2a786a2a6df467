# SPDX-License-Identifier: Apache-2.0
"""What a call costs from Python: `cost.py [REPLICAS]` prints lines of "name ns".

An empty run, and an all-reduce of 4 bytes and of 1 MiB from inside a replica function, in place.
"""

import statistics
import sys
import time

import numpy as np

import libdist


def timed(calls, call):
    """Nanoseconds a call: the median of nine rounds."""
    rounds = []
    for _ in range(9):
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter_ns() - start) / calls)
    return statistics.median(rounds)


def all_reduce(elements, calls):
    """A replica function that times all-reduces."""

    def step(replica):
        x = np.zeros(elements, np.float32)
        return timed(calls, lambda: replica.all_reduce(libdist.ReduceOp.SUM, x, out=x))

    return step


def main(replicas):
    """Prints the lines."""
    with libdist.Strategy(replicas) as strategy:
        nothing = lambda replica: None  # noqa: E731
        print(f"run_empty {timed(2000, lambda: strategy.run(nothing)):.0f}")
        print(f"all_reduce_4B {strategy.run(all_reduce(1, 2000))[0]:.0f}")
        print(f"all_reduce_1MiB {strategy.run(all_reduce(1 << 18, 100))[0]:.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
