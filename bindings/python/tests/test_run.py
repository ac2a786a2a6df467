# SPDX-License-Identifier: Apache-2.0
"""Strategies, runs, results, contexts."""

import gc
import threading
import unittest

import numpy as np

import libdist
from libdist import ReduceOp, Strategy, StrategyKind, Threads, Value


class Run(unittest.TestCase):
    def test_what_each_replica_returned_comes_back_in_order(self):
        for threads in (Threads.CALLER, Threads.LIBRARY):
            with Strategy(4, threads=threads) as strategy:
                self.assertEqual(strategy.run(lambda replica: replica.id * 10), [0, 10, 20, 30])

    def test_the_caller_is_replica_0(self):
        with Strategy(2) as strategy:
            threads = strategy.run(lambda replica: threading.get_ident())
        self.assertEqual(threads[0], threading.get_ident())
        self.assertNotEqual(threads[1], threading.get_ident())

    def test_a_replica_thread_keeps_its_thread_locals(self):
        local = threading.local()

        def count(replica):
            local.runs = getattr(local, "runs", 0) + 1
            return local.runs

        with Strategy(3) as strategy:
            for expected in (1, 2, 3):
                self.assertEqual(strategy.run(count), [expected] * 3)

    def test_64_replicas_meet(self):
        with Strategy(64) as strategy:
            results = strategy.run(lambda replica: int(replica.all_reduce(ReduceOp.SUM, np.int64(replica.id))))
        self.assertEqual(results, [64 * 63 // 2] * 64)

    def test_values_go_in_and_come_out(self):
        with Strategy(2) as strategy:
            x = strategy.per_replica([np.float32(1), np.float32(2)])
            seen = {}

            def step(replica, x, scale, names, *, bias):
                seen[replica.id] = (x.item(), scale.item(), names)
                return {"y": x * scale + bias, "all": names, "none": None}

            out = strategy.run_values(step, (x, 10, ["a", {"b": None}]), {"bias": np.float32(0.5)})
        self.assertEqual(seen, {0: (1.0, 10, ["a", {"b": None}]), 1: (2.0, 10, ["a", {"b": None}])})
        self.assertEqual([float(y) for y in out["y"]], [10.5, 20.5])
        self.assertEqual(out["all"], ["a", {"b": None}])
        self.assertIsNone(out["none"])

    def test_the_same_object_from_all_replicas_stays_one(self):
        class Thing:
            pass

        thing, array = Thing(), np.arange(3.0)
        with Strategy(3) as strategy:
            self.assertIs(strategy.run_values(lambda replica: thing), thing)
            self.assertIs(strategy.run_values(lambda replica, given: given, (thing,)), thing)
            same = strategy.run_values(lambda replica, given: given, (array,))
            self.assertIsInstance(same, np.ndarray)
            self.assertTrue(np.shares_memory(same, array))
            self.assertIsInstance(strategy.run_values(lambda replica: Thing()), Value)

    def test_one_replica_gives_its_result_as_it_is(self):
        with Strategy(kind=StrategyKind.ONE_DEVICE) as strategy:
            self.assertEqual(strategy.run_values(lambda replica: [1.5, "x"])[1], "x")
            self.assertEqual(strategy.num_replicas, 1)

    def test_arguments_and_results_are_not_copied(self):
        array = np.zeros(4)
        with Strategy(2) as strategy:
            addresses = {array.ctypes.data}

            def look(replica, given):
                addresses.add(given.ctypes.data)
                with self.assertRaises(ValueError):
                    given[0] = 1  # read-only
                return np.full(2, replica.id)

            out = strategy.run_values(look, (array,))
        self.assertEqual(len(addresses), 1)
        gc.collect()
        self.assertEqual(out[1].tolist(), [1, 1])  # its owner is kept, the strategy is closed

    def test_runs_of_several_threads_take_turns(self):
        with Strategy(2) as strategy:
            totals = []

            def many():
                for _ in range(50):
                    totals.append(strategy.run(lambda replica: int(replica.all_reduce(ReduceOp.SUM, np.int32(1))))[1])

            threads = [threading.Thread(target=many) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(totals, [2] * 150)

    def test_host_threads_are_replicas(self):
        with Strategy(3, threads=Threads.HOST) as strategy:
            sums = [None] * 3

            def work(replica_id):
                with strategy.enter(replica_id) as replica:
                    self.assertIs(libdist.get_replica(), replica)
                    sums[replica_id] = replica.all_reduce(ReduceOp.SUM, np.array([1, replica_id])).tolist()

            threads = [threading.Thread(target=work, args=(r,)) for r in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(sums, [[3, 3]] * 3)

    def test_a_loop_runs_on_the_replicas_share(self):
        with Strategy(2) as strategy:

            def step(replica):
                done = np.zeros(1000, np.int64)

                def part(begin, end):
                    done[begin:end] += 1

                replica.parallel_for(0, 1000, 10, part)
                return int(done.min()), int(done.max())

            self.assertEqual(strategy.run(step), [(1, 1), (1, 1)])


class Properties(unittest.TestCase):
    def test_what_a_strategy_is(self):
        with Strategy(2, devices=["CPU:3", "CPU:1"]) as strategy:
            self.assertEqual(strategy.kind, StrategyKind.MIRRORED)
            self.assertTrue(strategy.device(0).endswith("device:CPU:3"))
            self.assertEqual(strategy.devices, strategy.parameter_devices)
            self.assertEqual(strategy.query().num_replicas, 2)
            self.assertIsNone(strategy.cluster_resolver)
            self.assertIn("replicas", strategy.explain())

    def test_central_storage_has_one_parameter_device(self):
        with Strategy(2, kind=StrategyKind.CENTRAL_STORAGE, parameter_device="CPU:5") as strategy:
            self.assertEqual(strategy.parameter_devices, ["/job:localhost/replica:0/task:0/device:CPU:5"])
            self.assertTrue(strategy.query().between_graph)

    def test_looking_inside(self):
        with Strategy(2) as strategy:
            strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, np.ones(2), tag="grads"))
            self.assertIn('"grads"', strategy.write_trace())
            self.assertIn('strategy="mine"', strategy.write_metrics("mine"))
            rows = strategy.stragglers()
            self.assertIn("grads", {row.tag for row in rows})
            self.assertTrue(all(0 <= row.replica < 2 and row.times_last >= 1 for row in rows))


class Contexts(unittest.TestCase):
    def test_a_thread_knows_its_strategy_and_replica(self):
        default = libdist.get_strategy()
        self.assertEqual(default.kind, StrategyKind.DEFAULT)
        self.assertIs(default, libdist.get_strategy())
        self.assertFalse(libdist.has_strategy())
        self.assertEqual(libdist.get_replica().id, 0)
        with Strategy(2) as strategy:
            with strategy.scope() as entered:
                self.assertIs(entered, strategy)
                self.assertIs(libdist.get_strategy(), strategy)
                self.assertIsNone(libdist.get_replica())
                self.assertTrue(libdist.in_cross_replica_context())
            self.assertFalse(libdist.in_cross_replica_context())

            def inside(replica):
                return libdist.get_replica() is replica and libdist.get_strategy() is strategy

            self.assertEqual(strategy.run(inside), [True, True])
            libdist.set_strategy(strategy)
            self.assertIs(libdist.get_strategy(), strategy)
            libdist.set_strategy(None)
        self.assertIs(libdist.get_strategy(), default)

    def test_a_default_strategy_ends_with_its_thread(self):
        kept = []
        thread = threading.Thread(target=lambda: kept.append(libdist.get_strategy()))
        thread.start()
        thread.join()
        with self.assertRaisesRegex(libdist.FailedPrecondition, "a thread that has ended"):
            kept[0].num_replicas

    def test_merge_call_runs_once_for_all(self):
        with Strategy(3) as strategy:

            def merge(given, x, *, scale):
                self.assertIs(given, strategy)
                total = given.reduce(ReduceOp.SUM, x)
                return {"sum": total * scale}

            def step(replica):
                return replica.merge_call(merge, (np.float64(replica.id),), {"scale": 2.0})["sum"].item()

            self.assertEqual(strategy.run(step), [6.0] * 3)


if __name__ == "__main__":
    unittest.main()
