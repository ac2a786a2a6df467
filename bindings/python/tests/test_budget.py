# SPDX-License-Identifier: Apache-2.0
"""Budgets that strategies share, and loops on an executor's threads."""

import gc
import pickle
import threading
import unittest
import weakref
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np

from libdist import Budget, DeadlineExceeded, FailedPrecondition, InvalidArgument, Strategy, Threads

PATIENCE = 60  # seconds; only against a hang


class Budgets(unittest.TestCase):
    def test_one_thread_lets_one_in(self):
        with Budget(1) as budget:
            strategies = [Strategy(1, budget=budget) for _ in range(2)]
        self.assertEqual(repr(budget), "<libdist.Budget, closed>")  # the strategies keep it
        inside, most, runs = [], [], []

        def fn(replica):
            inside.append(replica)
            most.append(len(inside))
            np.ones(1 << 12).sum()
            inside.pop()
            runs.append(1)

        def often(strategy):
            for _ in range(200):
                strategy.run(fn)

        threads = [threading.Thread(target=often, args=(s,)) for s in strategies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((max(most), len(runs)), (1, 400))
        for strategy in strategies:
            strategy.close()

    def test_who_waits_has_a_deadline(self):
        with Budget(1) as budget, Strategy(1, budget=budget) as first, Strategy(1, budget=budget) as second:
            begun, over = threading.Event(), threading.Event()

            def hold(replica):
                begun.set()
                over.wait(PATIENCE)

            thread = threading.Thread(target=first.run, args=(hold,))
            thread.start()
            begun.wait(PATIENCE)
            with self.assertRaises(DeadlineExceeded) as caught:
                second.run(lambda replica: None, timeout=0.001)
            self.assertIn("budget's 1 threads", str(caught.exception))
            over.set()
            thread.join(PATIENCE)
            self.assertEqual(second.run(lambda replica: replica.id), [0])

    def test_wrong_budgets_are_refused(self):
        for threads in (0, -1, 65537):
            with self.assertRaises(InvalidArgument):
                Budget(threads)
        with self.assertRaises(TypeError):
            Budget("8")
        budget = Budget(1)
        budget.close()
        budget.close()
        with self.assertRaises(FailedPrecondition):
            Strategy(1, budget=budget)
        with self.assertRaises(TypeError):
            Strategy(1, budget=8)


def loop(test, strategy, length=512):
    """Each index of a loop once, on each replica."""

    def fn(replica):
        marks = np.zeros(length, dtype=np.int64)

        def body(begin, end):
            marks[begin:end] += 1

        replica.parallel_for(0, length, 4, body)
        return bool((marks == 1).all())

    test.assertEqual(strategy.run(fn), [True] * strategy.num_replicas)


class Own(Executor):
    """One of the program's own, by a function."""

    def __init__(self, fn):
        self.fn, self.asked = fn, 0

    def submit(self, task):
        self.asked += 1
        return self.fn(task)


def done(task):
    future = Future()
    future.set_result(task())
    return future


class Executors(unittest.TestCase):
    def test_loops_are_shared(self):
        names = set()
        with ThreadPoolExecutor(3, "helper") as pool, Strategy(1, executor=pool, max_workers=3) as strategy:
            both = threading.Barrier(2)

            def meet(begin, end):
                names.add(threading.current_thread().name)
                both.wait(PATIENCE)  # each of two parts waits for the other: on two threads

            strategy.run(lambda replica: replica.parallel_for(0, 2, 1, meet))
            self.assertTrue(any(name.startswith("helper") for name in names), names)
        with ThreadPoolExecutor(2) as pool, Strategy(2, executor=pool) as strategy:
            for _ in range(10):
                loop(self, strategy)

    def test_what_a_loop_raises_on_a_helper_arrives(self):
        with ThreadPoolExecutor(2) as pool, Strategy(1, executor=pool, max_workers=2) as strategy:
            both = threading.Barrier(2)

            def body(begin, end):
                both.wait(PATIENCE)
                raise KeyError(begin)

            with self.assertRaises(KeyError):
                strategy.run(lambda replica: replica.parallel_for(0, 2, 1, body))
            loop(self, strategy)

    def test_executors_may_refuse(self):
        def fail(task):
            raise OSError("no thread is free")

        def late(task):  # which is a mistake, and does no harm
            kept.append(task)
            fail(task)

        def twice(task):
            task()
            return done(task)

        kept = []
        for fn in (fail, late, twice, done):
            executor = Own(fn)
            with Strategy(2, executor=executor, max_workers=5) as strategy:
                loop(self, strategy)
            self.assertGreater(executor.asked, 0)
        for task in kept:
            task()
        with ThreadPoolExecutor(1) as pool, Strategy(2, executor=pool) as strategy:
            pool.shutdown()  # RuntimeError from now on
            loop(self, strategy)

    def test_tasks_may_come_when_all_is_over(self):
        kept = []

        def keep(task):
            kept.append(task)
            return Future()

        with Strategy(2, executor=Own(keep), max_workers=2) as strategy:
            loop(self, strategy)
        self.assertTrue(kept)
        for task in kept:
            task()
        self.assertRaises(TypeError, pickle.dumps, kept[0])

    def test_tasks_that_are_dropped(self):
        futures = []

        def keep(task):
            futures.append((Future(), task))
            return futures[-1][0]

        with Strategy(2, executor=Own(keep), max_workers=2) as strategy:
            loop(self, strategy)
            for future, _ in futures:
                self.assertTrue(future.cancel())
            for thread in threading.enumerate():
                if thread.name == "libdist-task":
                    thread.join(PATIENCE)
            self.assertFalse([task for _, task in futures if task.take()])  # each was called

    def test_the_executor_ends_with_the_strategy(self):
        executor = Own(done)
        gone = weakref.ref(executor)
        strategy = Strategy(2, executor=executor)
        del executor
        gc.collect()
        self.assertIsNotNone(gone())
        loop(self, strategy)
        strategy.close()
        gc.collect()
        self.assertIsNone(gone())

    def test_wrong_executors_are_refused(self):
        with ThreadPoolExecutor(1) as pool:
            for workers in (0, -1, 65536):
                with self.assertRaisesRegex(InvalidArgument, f"max_workers is {workers}, but must be"):
                    Strategy(1, executor=pool, max_workers=workers)
        with self.assertRaises(InvalidArgument):
            Strategy(1, max_workers=2)
        with self.assertRaises(TypeError):
            Strategy(1, executor=lambda task: task())

    def test_host_threads_may_be_helped(self):
        with Strategy(1, threads=Threads.HOST, helper_threads=True) as strategy, strategy.enter(0) as replica:
            parts = []
            replica.parallel_for(0, 64, 4, lambda begin, end: parts.append(end - begin))
            self.assertEqual(sum(parts), 64)


if __name__ == "__main__":
    unittest.main()
