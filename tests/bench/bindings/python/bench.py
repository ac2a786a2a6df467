#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures libdist from Python for dist_bench, which starts it and compares it with C: bench.py REPLICAS."""

import pathlib
import platform
import sys
import time

import libdist
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[2] / "peers"))
import peer  # noqa: E402  (in the folder of the other peers)


class EmptyRuns:
    """Times the caller."""

    def __init__(self, strategy):
        self.strategy = strategy

    def samples(self, iterations, batches):
        samples = []
        for _ in range(batches + 1):
            begin = time.perf_counter()
            for _ in range(iterations):
                self.strategy.run(lambda replica: None)
            samples.append((time.perf_counter() - begin) / iterations)
        return samples


class AllReduces:
    """Times the calls inside one run."""

    def __init__(self, strategy, byte_count):
        self.strategy = strategy
        self.tensors = peer.Tensors("f32", byte_count, strategy.num_replicas)
        self.data = [np.empty_like(row) for row in self.tensors.rows]

    def samples(self, iterations, batches):
        expected = np.resize(self.tensors.expected(iterations), self.tensors.rows.shape[1])
        runs = self.strategy.run(lambda replica: self.replica(replica, expected, iterations, batches))
        # From the last replica's beginning to the last one's end, because the time before is spent waiting for a
        # thread that has not arrived.
        return [
            (max(end for _, end in batch) - max(begin for begin, _ in batch)) / iterations
            for batch in zip(*runs)
        ]

    def replica(self, replica, expected, iterations, batches):
        """One replica's part, as in C: restore the data, meet, time the operations, compare, meet."""
        data, times = self.data[replica.id], []
        for _ in range(batches + 1):
            data[:] = self.tensors.rows[replica.id]
            replica.barrier()
            begin = time.perf_counter()
            for _ in range(iterations):
                replica.all_reduce(libdist.ReduceOp.SUM, data, out=data)
            times.append((begin, time.perf_counter()))
            if not peer.same_bits(data, expected):
                raise peer.WrongResult(f"wrong result after {iterations} operations")
            replica.barrier()
        return times


class Barriers:
    """Times the calls inside one run."""

    def __init__(self, strategy):
        self.strategy = strategy

    def samples(self, iterations, batches):
        runs = self.strategy.run(lambda replica: self.replica(replica, iterations, batches))
        return [
            (max(end for _, end in batch) - max(begin for begin, _ in batch)) / iterations
            for batch in zip(*runs)
        ]

    def replica(self, replica, iterations, batches):
        times = []
        for _ in range(batches + 1):
            replica.barrier()
            begin = time.perf_counter()
            for _ in range(iterations):
                replica.barrier()
            times.append((begin, time.perf_counter()))
            replica.barrier()
        return times


def measure(operation, request):
    """Returns microseconds per operation, with one sample per batch except the first."""
    return [1e6 * sample for sample in operation.samples(request.iterations, request.batches)[1:]]


def main(replicas):
    with libdist.Strategy(replicas) as strategy:
        kept = {}  # by size, because the sides in C keep their tensors, too

        def operation(request):
            if request.pace != "hot":
                return None
            if request.operation == "run":
                return EmptyRuns(strategy)
            if request.operation == "barrier":
                return Barriers(strategy)
            if request.operation != "all_reduce" or request.dtype != "f32" or not request.in_place:
                return None
            if request.bytes not in kept:
                kept.clear()
                kept[request.bytes] = AllReduces(strategy, request.bytes)
            return kept[request.bytes]

        peer.serve(f"Python {platform.python_version()}", [""], operation, measure=measure)


if __name__ == "__main__":
    main(int(sys.argv[1]))
