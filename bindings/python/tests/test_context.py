# SPDX-License-Identifier: Apache-2.0
"""Context variables and np.errstate: functions on libdist's threads see what their caller has set."""

import asyncio
import contextvars
import unittest

import numpy as np

from libdist import Strategy, Threads

variable = contextvars.ContextVar("variable", default="default")


def divide(*_):
    try:
        return float(np.float32(1) / np.float32(0))
    except FloatingPointError:
        return "raised"


class Context(unittest.TestCase):
    def test_runs(self):
        for threads in (Threads.CALLER, Threads.LIBRARY):
            with self.subTest(threads.name), Strategy(3, threads=threads) as strategy:
                token = variable.set("mine")
                try:
                    self.assertEqual(strategy.run(lambda replica: variable.get()), ["mine"] * 3)
                    result = strategy.run_values(lambda replica: np.array(len(variable.get())))
                    self.assertEqual([int(each) for each in strategy.local_results(result)], [4] * 3)
                finally:
                    variable.reset(token)
                self.assertEqual(strategy.run(lambda replica: variable.get()), ["default"] * 3)
                with np.errstate(divide="raise"):
                    self.assertEqual(strategy.run(divide), ["raised"] * 3)
                with np.errstate(divide="ignore"):
                    self.assertEqual(strategy.run(divide), [np.inf] * 3)

    def test_what_a_function_sets_stays_in_it(self):
        def change(replica):
            before = variable.get()
            variable.set(f"replica {replica.id}")
            replica.barrier()
            return before, variable.get()

        for threads in (Threads.CALLER, Threads.LIBRARY):
            with self.subTest(threads.name), Strategy(2, threads=threads) as strategy:
                for _ in range(2):
                    expected = [("default", f"replica {i}") for i in range(2)]
                    self.assertEqual(strategy.run(change), expected)
                self.assertEqual(variable.get(), "default")
                with np.errstate(divide="ignore"):
                    strategy.run(lambda replica: replica.id and np.seterr(divide="raise"))
                    self.assertEqual(strategy.run(divide), [np.inf] * 2)

    def test_requests_and_items(self):
        seen = []

        def state(replica):
            seen.append(variable.get())
            return variable.get()

        with Strategy(2, threads=Threads.LIBRARY) as strategy:
            token = variable.set("states")
            instances = strategy.instances(create_state=state, destroy_state=lambda _: seen.append(variable.get()))
            variable.reset(token)

            async def ask(name):
                variable.set(name)
                return await strategy.submit(lambda replica: (variable.get(), replica.instance_state))

            async def main():
                return await asyncio.gather(*(ask(str(k)) for k in range(8)))

            self.assertEqual(asyncio.run(main()), [(str(k), "states") for k in range(8)])
            with np.errstate(divide="raise"):
                self.assertEqual(strategy.submit(divide).result(), "raised")
            token = variable.set("batcher")
            with strategy.batcher(lambda replica, batch: seen.append(variable.get())) as batcher:
                variable.reset(token)
                batcher.submit().result()
            instances.close()
        self.assertEqual(sorted(seen), ["batcher"] + ["states"] * 4)

    def test_functions_inside_a_replica(self):
        seen = []

        def operator(acc, values):
            seen.append(variable.get())
            acc += values

        def inside(replica):
            variable.set("replica")
            replica.parallel_for(0, 8, 1, lambda begin, end: seen.append(variable.get()))
            replica.all_reduce(operator, np.ones(2))
            return replica.merge_call(lambda strategy: variable.get())

        with Strategy(2) as strategy:
            self.assertEqual(strategy.run(inside), ["replica"] * 2)
        self.assertEqual(set(seen), {"replica"})

    def test_sources_and_updates(self):
        seen = []

        def source(index):
            seen.append(variable.get())
            if index == 4:
                raise StopIteration
            return np.float32(index)

        token = variable.set("mine")
        try:
            with Strategy(2) as strategy:
                with strategy.dataset_from_callback(source, global_batch_size=2, prefetch=2) as dataset:
                    self.assertEqual(len(list(dataset)), 2)
                copies = strategy.variable(np.zeros(1))
                strategy.update(copies, lambda place: seen.append(variable.get()), parallel=True)
                with np.errstate(divide="raise"):
                    strategy.update(copies, lambda place: seen.append(divide()), parallel=True)
        finally:
            variable.reset(token)
        self.assertEqual(set(seen), {"mine", "raised"})


if __name__ == "__main__":
    unittest.main()
