# SPDX-License-Identifier: Apache-2.0
"""Jobs that save a checkpoint before they lose a machine."""

import gc
import os
import signal
import tempfile
import unittest
import weakref

import numpy as np

import libdist
from libdist import (
    Aggregation,
    Assign,
    Cancelled,
    FailedPrecondition,
    InvalidArgument,
    PreemptionHandler,
    PreemptionState,
    Strategy,
)


class Preemption(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "checkpoint")

    def start(self, **options):
        """A start of the job, whose steps add one for each replica to the variable "steps"."""
        strategy = Strategy(2)
        self.addCleanup(strategy.close)
        steps = strategy.variable(np.zeros(1, np.float32), name="steps", aggregation=Aggregation.SUM)
        handler = strategy.preemption_handler(self.path, [steps], **options)
        return handler, lambda replica: replica.assign(steps, np.ones(1, np.float32), Assign.ADD)

    def test_a_preempted_job_ends_and_its_next_start_goes_on(self):
        for calls in (1, 2):
            handler, step = self.start()
            self.assertEqual(handler.total_run_calls, calls - 1)
            handler.run(step)
            self.assertIs(handler.save_if_preempted(), PreemptionState.NONE)
            self.assertEqual(os.path.exists(self.path), calls > 1)
            before = signal.signal(signal.SIGTERM, lambda *_: handler.notify())
            signal.raise_signal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, before)
            handler.notify()
            for _ in range(2):
                with self.assertRaisesRegex(Cancelled, r"^PreemptionHandler\.run\(\): the job is preempted"):
                    handler.run(step)
            self.assertIs(handler.save_if_preempted(), PreemptionState.OVER)
            self.assertEqual(handler.total_run_calls, calls)
            with libdist.get_strategy().open_checkpoint(self.path) as file:
                self.assertEqual(np.array(file["steps"]).tolist(), [2 * calls])
                self.assertEqual(file.metadata["preemption.total_run_calls"], str(calls))

    def test_it_goes_on_for_its_grace(self):
        handler, step = self.start(grace=3600)
        handler.notify()
        stop = libdist.Cancel()
        self.assertEqual(len(handler.run(step, cancel=stop)), 2)
        self.assertIs(handler.save_if_preempted(cancel=stop), PreemptionState.SAVED)
        with self.assertRaisesRegex(TypeError, "cancel is 1, but must be a libdist.Cancel or None"):
            handler.save_if_preempted(cancel=1)
        # It ends waits for worker 0, of which there are none here, and runs.
        stop.signal("enough")
        self.assertIs(handler.save_if_preempted(cancel=stop), PreemptionState.SAVED)
        with self.assertRaisesRegex(Cancelled, "enough"):
            handler.run(step, cancel=stop)
        handler.count_run()
        self.assertEqual(handler.total_run_calls, 2)

    def test_a_scope_saves_at_its_end(self):
        handler, _ = self.start(grace=0)
        with self.assertRaises(KeyError), handler.watch_preemption_scope():
            handler.notify()
            raise KeyError
        self.assertFalse(os.path.exists(self.path))
        with handler.watch_preemption_scope() as same:
            self.assertIs(same, handler)
            self.assertFalse(os.path.exists(self.path))
        self.assertTrue(os.path.exists(self.path))
        self.assertIs(handler.save_if_preempted(), PreemptionState.OVER)

    def test_what_cannot_be_is_refused(self):
        strategy = Strategy(2)
        variable = strategy.variable(np.zeros(1))
        with self.assertRaisesRegex(InvalidArgument, "grace is -2.5, but must be"):
            strategy.preemption_handler(grace=-2.5)
        with self.assertRaisesRegex(InvalidArgument, "no path"):
            strategy.preemption_handler(variables=[variable])
        handler = strategy.preemption_handler()

        def fails(replica):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            handler.run(fails)
        self.assertEqual(handler.total_run_calls, 0)
        left = strategy.preemption_handler()
        handler.close()
        handler.close()
        strategy.close()  # ends the other one too
        for closed in (handler, left):
            for call in (
                closed.notify,
                closed.save_if_preempted,
                closed.count_run,
                lambda one=closed: one.total_run_calls,
                lambda one=closed: one.run(fails),
            ):
                with self.assertRaisesRegex(FailedPrecondition, "the preemption handler is closed"):
                    call()
        with self.assertRaisesRegex(FailedPrecondition, "the strategy is closed"):
            strategy.preemption_handler()

    def test_it_keeps_its_strategy_and_variables(self):
        handler, step = self.start()
        self._cleanups.pop()  # which holds the strategy
        strategy = weakref.ref(handler._strategy)
        handler.run(step)
        del step
        gc.collect()
        self.assertIsNotNone(strategy())
        handler.notify()
        self.assertIs(handler.save_if_preempted(), PreemptionState.OVER)
        with libdist.get_strategy().open_checkpoint(self.path) as file:
            self.assertEqual(np.array(file["steps"]).tolist(), [2])
        del handler
        gc.collect()
        self.assertIsNone(strategy())


if __name__ == "__main__":
    unittest.main()
