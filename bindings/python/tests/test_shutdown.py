# SPDX-License-Identifier: Apache-2.0
"""Strategies that end in a time that the program says; threads' stacks; room for asynchronous collectives; operators
whose elements are larger than the dtype."""

import threading
import unittest

import numpy as np

import libdist
from libdist import ReduceOp, Strategy

PATIENCE = 60  # seconds; only against a hang


class Closing(unittest.TestCase):
    """close() while other threads use the strategy."""

    def test_other_threads_get_an_exception(self):
        for _ in range(50):
            strategy, together, seen = Strategy(2), threading.Barrier(4), []

            def use():
                together.wait()
                try:
                    while True:
                        with strategy.scope():
                            strategy.values_from_function(lambda context: np.ones(2))
                            strategy.dataset_from_tensors(np.ones(2)).close()
                except libdist.DistError as error:
                    seen.append(type(error))

            threads = [threading.Thread(target=use, daemon=True) for _ in range(3)]
            for thread in threads:
                thread.start()
            together.wait()
            strategy.close()
            for thread in threads:
                thread.join()
            self.assertEqual([libdist.FailedPrecondition] * 3, seen)

    def test_a_shutdown_ends_the_calls_of_other_threads(self):
        for work in (lambda s, v: s.run(lambda replica: replica.id), lambda s, v: v.read()):
            for _ in range(20):
                strategy = Strategy(2)
                variable, seen, began = strategy.variable(np.zeros(3)), [], threading.Event()

                def use():
                    try:
                        while True:
                            work(strategy, variable)  # noqa: B023
                            began.set()  # noqa: B023
                    except libdist.DistError as error:
                        seen.append(type(error))  # noqa: B023

                thread = threading.Thread(target=use, daemon=True)
                thread.start()
                began.wait()
                strategy.shutdown(PATIENCE)
                thread.join()
                self.assertIn(seen, ([libdist.FailedPrecondition], [libdist.Cancelled]))

    def test_a_run_refuses_close_at_once(self):
        strategy, inside, leave = Strategy(2), threading.Event(), threading.Event()

        def stay(replica):
            inside.set()
            leave.wait()

        thread = threading.Thread(target=strategy.run, args=(stay,))
        thread.start()
        inside.wait()
        with self.assertRaises(libdist.FailedPrecondition):
            strategy.close()
        leave.set()
        thread.join()
        strategy.close()

    def test_a_call_that_goes_on_is_named(self):
        strategy, inside, leave = Strategy(1), threading.Event(), threading.Event()

        def value(context):
            inside.set()
            leave.wait()
            return 1

        thread = threading.Thread(target=strategy.values_from_function, args=(value,))
        thread.start()
        inside.wait()
        with self.assertRaisesRegex(libdist.FailedPrecondition, "another thread is in .*values_from_function"):
            strategy.close()
        self.assertEqual(1, strategy.num_replicas)
        leave.set()
        thread.join()
        strategy.close()

    def test_a_call_cannot_close_its_own_strategy(self):
        strategy = Strategy(1)
        with self.assertRaises(libdist.FailedPrecondition):
            strategy.values_from_function(lambda context: strategy.close())
        strategy.close()


class Shutdown(unittest.TestCase):
    def test_nothing_under_way(self):
        for timeout in (None, 0, 1.0, -1):
            strategy = Strategy(2)
            group = strategy.group([0, 1])
            variable = strategy.variable(np.ones(1))
            strategy.shutdown(timeout)
            self.assertEqual(variable.component(0).tolist(), [1])
            for call in (strategy.shutdown, lambda: strategy.run(lambda _: 0)):  # noqa: B023
                with self.assertRaises(libdist.FailedPrecondition):
                    call()
            strategy.close()
            group.close()

    def test_a_run_that_waits_in_a_collective(self):
        strategy, outcome, begun = Strategy(2), [], threading.Event()

        def lonely(replica):
            if replica.id == 0:
                begun.set()
                replica.barrier(timeout=-1)
            else:
                replica.merge_call(lambda _: None, timeout=-1, tag="other")

        def run():
            try:
                strategy.run(lonely)
            except libdist.DistError as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        begun.wait(PATIENCE)
        strategy.shutdown(PATIENCE)
        thread.join(PATIENCE)
        self.assertEqual((len(outcome), strategy._handle), (1, 0))

    def test_a_replica_that_is_stuck(self):
        lines = []
        strategy = Strategy(2, log=lambda level, text: lines.append(text))
        begun, over, outcome = threading.Event(), threading.Event(), []

        def stuck(replica):
            if replica.id == 1:
                begun.set()
                over.wait(PATIENCE)

        def run():
            try:
                strategy.run(stuck)
            except libdist.DistError as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        begun.wait(PATIENCE)
        with self.assertRaisesRegex(libdist.DeadlineExceeded, "1"):
            strategy.shutdown(0.01)
        with self.assertRaises(libdist.FailedPrecondition):
            strategy.run(lambda _: 0)
        over.set()
        thread.join(PATIENCE)
        self.assertEqual(len(outcome), 1)

    def test_refusals(self):
        with Strategy(2) as strategy:
            with self.assertRaises(libdist.FailedPrecondition):
                strategy.run(lambda replica: strategy.shutdown(0))
            self.assertEqual(strategy.run(lambda replica: replica.id), [0, 1])
            with self.assertRaises(libdist.FailedPrecondition):
                libdist.get_strategy().shutdown()


class Options(unittest.TestCase):
    def test_stacks_and_room(self):
        with Strategy(2, stack_size_bytes=1 << 20, async_bytes=1 << 20) as strategy:
            self.assertEqual(strategy.run(lambda replica: replica.all_reduce("SUM", np.ones(1)).tolist()), [[2.0]] * 2)
        for recorded, events in ((2000, "the last 2048 events"), (0, "the last 1024 events")):
            with Strategy(1, recorded_events=recorded) as strategy:
                self.assertIn(events, strategy.explain())
        for name, number, error in (
            ("recorded_events", -1, libdist.InvalidArgument),
            ("recorded_events", 2**20 + 1, libdist.InvalidArgument),
            ("stack_size_bytes", 1, libdist.InvalidArgument),
            ("stack_size_bytes", -1, libdist.InvalidArgument),
            ("async_bytes", 2**63, libdist.InvalidArgument),
            ("async_bytes", -1, libdist.InvalidArgument),
        ):
            with self.subTest(name, number=number), self.assertRaisesRegex(error, name):
                Strategy(2, **{name: number})

    def test_operators_with_large_elements(self):
        shapes = set()

        def largest(acc, values):
            """(value, place) pairs: the one with the larger value."""
            shapes.add(acc.shape[1:])
            better = values[:, 0] > acc[:, 0]
            acc[better] = values[better]

        def step(replica):
            pairs = np.array([[i * (1 if replica.id else -1), replica.id] for i in range(-50, 50)], np.float64)
            return replica.all_reduce(largest, pairs, reduce_element_bytes=16)

        with Strategy(2) as strategy:
            for result in strategy.run(step):
                self.assertEqual(result[:, 0].tolist(), [abs(i) for i in range(-50, 50)])
                self.assertEqual(result[[0, -1], 1].tolist(), [0, 1])
            self.assertEqual(shapes, {(2,)})
            with self.assertRaises(libdist.DistError):
                strategy.run(lambda replica: replica.all_reduce(largest, np.ones(3), reduce_element_bytes=16))
            with self.assertRaises(libdist.DistError):
                strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, np.ones(2), reduce_element_bytes=16))
        kind = libdist.CrossDeviceKind.REDUCTION_TO_ONE_DEVICE
        cross = libdist.CrossDevice(kind, accumulate=largest, accumulate_element_bytes=16)
        with Strategy(2, cross_device=cross) as strategy:
            value = strategy.per_replica([np.array([[1.0, 7.0]]), np.array([[2.0, 8.0]])])
            self.assertEqual(strategy.batch_reduce_to("SUM", [(value, None)])[0][0].tolist(), [[2.0, 8.0]])


if __name__ == "__main__":
    unittest.main()
