# SPDX-License-Identifier: Apache-2.0
"""Cancel objects, and deadlines, of runs, of what waits in the queue for its turn, and of collectives."""

import gc
import threading
import time
import unittest
import weakref

import numpy as np

import libdist
from libdist import Cancel, Cancelled, DeadlineExceeded, ReduceOp, Strategy

PATIENCE = 60  # seconds; only against a hang


class Busy:
    """A run that is under way in another thread until it is let go."""

    def __init__(self, strategy, **options):
        self.begun, self.release, self.outcome = threading.Event(), threading.Event(), None
        self.thread = threading.Thread(target=self.run, args=(strategy, options))

    def run(self, strategy, options):
        def fn(replica):
            self.begun.set()
            self.release.wait(PATIENCE)
            return replica.all_reduce(ReduceOp.SUM, np.ones(1))[0]

        try:
            self.outcome = strategy.run(fn, **options)
        except libdist.DistError as error:
            self.outcome = error

    def __enter__(self):
        self.thread.start()
        self.begun.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self.release.set()
        self.thread.join(PATIENCE)


class Cancels(unittest.TestCase):
    def setUp(self):
        self.strategy = Strategy(2)
        self.addCleanup(self.strategy.close)

    def runs(self):
        """run() and run_values(), of a function that would wait for a peer that never comes."""

        def lonely(replica):
            if replica.id == 0:
                replica.barrier(timeout=-1)
            else:
                self.begun.set()
                self.over.wait(PATIENCE)

        self.begun, self.over = threading.Event(), threading.Event()
        return (
            lambda **options: self.strategy.run(lonely, **options),
            lambda **options: self.strategy.run_values(lonely, **options),
        )

    def test_a_run_under_way(self):
        for run in self.runs():
            self.begun.clear()
            self.over.clear()
            with Cancel() as cancel:

                def signal(cancel=cancel):
                    self.begun.wait(PATIENCE)
                    cancel.signal("enough")
                    self.over.set()

                thread = threading.Thread(target=signal)
                thread.start()
                with self.assertRaisesRegex(Cancelled, "enough"):
                    run(cancel=cancel)
                thread.join(PATIENCE)
                self.assertTrue(cancel.signalled)
            self.assertEqual(self.strategy.run(lambda replica: replica.id), [0, 1])

    def test_what_is_begun_later(self):
        cancel = Cancel()
        self.assertFalse(cancel.signalled)
        cancel.signal()
        for run in self.runs():
            with self.assertRaises(Cancelled):
                run(cancel=cancel)
        self.assertEqual(self.strategy.run(lambda replica: replica.id), [0, 1])

    def test_the_queue(self):
        called = []
        for run in (self.strategy.run, self.strategy.run_values):
            with Busy(self.strategy) as busy:
                with self.assertRaises(DeadlineExceeded):
                    run(lambda *_: called.append(1), timeout=0.01)
                cancel, kept = Cancel(), lambda *_: called.append(1)
                timer = threading.Timer(0.01, cancel.signal)
                timer.start()
                with self.assertRaises(Cancelled):
                    run(kept, cancel=cancel)
                timer.join(PATIENCE)
                forgotten = weakref.ref(kept)
                del kept
                gc.collect()
                self.assertIsNone(forgotten())  # nothing keeps the function of a run that left the queue
            self.assertEqual((busy.outcome, called), ([2.0, 2.0], []))

    def test_another_callers_run(self):
        cancel, other = Cancel(), Cancel()
        with Busy(self.strategy, cancel=other) as busy:
            cancel.signal()
            with self.assertRaises(Cancelled):
                self.strategy.run(lambda replica: replica.id, cancel=cancel)
        self.assertEqual(busy.outcome, [2.0, 2.0])

    def test_collectives(self):
        for begin in (False, True):
            cancel = Cancel()

            def fn(replica):
                if replica.id == 1:
                    cancel.signal("no more")  # noqa: B023
                    return "left"
                give = replica.begin if begin else replica  # noqa: B023
                result = give.all_reduce(ReduceOp.SUM, np.ones(3), cancel=cancel)  # noqa: B023
                return result.result() if begin else result  # noqa: B023

            with self.subTest(begin=begin), self.assertRaises(libdist.DistError):
                self.strategy.run(fn)

        def one_round(replica):
            return replica.merge_call(lambda strategy: 5, cancel=Cancel()), replica.barrier(cancel=Cancel())

        self.assertEqual(self.strategy.run(one_round), [(5, None)] * 2)

    def test_deadlines(self):
        for run in self.runs():
            self.over.clear()
            with self.assertRaises(DeadlineExceeded):
                run(timeout=0.05)
            self.over.set()
            self.assertEqual(self.recovered(), [0, 1])

    def recovered(self):
        """A run after one that was given up, as soon as the last replica of that has left its function."""
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                return self.strategy.run(lambda replica: replica.id)
            except libdist.FailedPrecondition:
                if time.monotonic() > limit:
                    raise

    def test_logical_devices(self):
        topology = libdist.Topology([1, 1, 1, 2], [[(0, 0, 0, 0), (0, 0, 0, 1)]])
        assignment = libdist.DeviceAssignment.build(topology, [1, 1, 1, 2])
        with Strategy(kind=libdist.StrategyKind.MESH, device_assignment=assignment) as strategy:
            cancel = Cancel()
            cancel.signal("devices")
            with self.assertRaisesRegex(Cancelled, "devices"):
                strategy.run(lambda replica: replica.run_on_devices(lambda device: device.id, cancel=cancel))

    def test_misuse(self):
        cancel = Cancel()
        cancel.close()
        cancel.close()
        for call in (cancel.signal, lambda: cancel.signalled, lambda: self.strategy.run(lambda _: 0, cancel=cancel)):
            with self.assertRaises(libdist.FailedPrecondition):
                call()
        with self.assertRaises(TypeError):
            self.strategy.run(lambda _: 0, cancel=5)
        with self.assertRaises(TypeError):
            self.strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, np.ones(1), cancel=5))


if __name__ == "__main__":
    unittest.main()
