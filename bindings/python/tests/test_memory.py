# SPDX-License-Identifier: Apache-2.0
"""Memory stays flat over 10^5 calls of each kind."""

import gc
import unittest

import numpy as np

from libdist import Aggregation, InvalidArgument, ReduceOp, Strategy

CALLS = 100_000
ALLOWED = 4 << 20  # a leak of 42 bytes a call is more


def resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096


class Memory(unittest.TestCase):
    def check(self, call, calls=CALLS):
        for _ in range(calls // 10):
            call()
        gc.collect()
        before = resident()
        for _ in range(calls):
            call()
        gc.collect()
        self.assertLess(resident() - before, ALLOWED)

    def test_collectives(self):
        x, y = np.ones(8, np.float32), np.empty(8, np.float32)

        def step(replica):
            def calls():
                replica.all_reduce(ReduceOp.MAX, x, out=x)
                replica.all_reduce(ReduceOp.SUM, [x], out=[y], tag="t", weights=None)

            self.check(calls)

        with Strategy(1) as strategy:
            strategy.run(step)

    def test_rounds(self):
        def step(replica):
            ours = np.ones(8)

            def calls():
                replica.all_reduce(ReduceOp.MAX, ours, out=ours)

            if replica.id == 0:
                self.check(calls, CALLS // 4)
            else:
                for _ in range(CALLS // 4 + CALLS // 40):
                    calls()

        with Strategy(2) as strategy:
            strategy.run(step)

    def test_merge_calls_and_nests(self):
        def step(replica):
            given = {"a": np.ones(2), "b": [1, None]}

            def calls():
                replica.merge_call(lambda strategy, x: x, (given,))
                replica.all_reduce_value(ReduceOp.SUM, given["a"])

            self.check(calls, CALLS // 4)

        with Strategy(1) as strategy:
            strategy.run(step)

    def test_runs_values_and_variables(self):
        with Strategy(1) as strategy:
            x = np.ones(4)
            v = strategy.variable(np.zeros(4), aggregation=Aggregation.MEAN)

            def calls():
                strategy.run(lambda replica: replica.id)
                strategy.run_values(lambda replica, x: {"y": x}, (x,))
                v.assign(x)
                v.read()
                strategy.value(object())

            self.check(calls, CALLS // 2)

    def test_failures(self):
        with Strategy(1) as strategy:

            def fails(replica):
                raise KeyError("k")

            def calls():
                with self.assertRaises(InvalidArgument):
                    strategy.device(7)
                try:
                    strategy.run(fails)
                except KeyError:
                    pass

            self.check(calls, CALLS // 4)

    def test_strategies_and_datasets(self):
        rows = np.arange(8)

        def calls():
            with Strategy(2) as strategy:
                for batch in strategy.dataset_from_tensors(rows, global_batch_size=4):
                    strategy.run_values(lambda replica, x: x, (batch,))

        self.check(calls, 400)


if __name__ == "__main__":
    unittest.main()
