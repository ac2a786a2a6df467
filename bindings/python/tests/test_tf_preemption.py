# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: PreemptionCheckpointHandler of one worker, and TerminationConfig."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from unittest import mock

import numpy as np

import libdist
import libdist.tf as tf
from libdist.tf import _termination

Handler = tf.distribute.experimental.PreemptionCheckpointHandler
TerminationConfig = tf.distribute.experimental.TerminationConfig
GUARD_S = 240
OVER = r"PreemptionCheckpointHandler\.run\(\): the job is preempted, and its checkpoint is saved after %d runs"


class Boom(Exception):
    pass


def raise_sigterm():
    signal.raise_signal(signal.SIGTERM)


class OneWorker(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "kept")
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
        self.addCleanup(lambda: self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL))

    def start(self, folder=None, managed=None, **config):
        """A start of the job, whose steps add one for each of two replicas to the checkpoint's variable "steps"."""
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(strategy.close)
        with strategy.scope():
            steps = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        checkpoint = tf.train.Checkpoint(steps=steps)
        given = (checkpoint, folder or self.folder) if managed is None else (managed(checkpoint),)
        handler = Handler(None, *given, termination_config=TerminationConfig(**config) if config else None)

        def step():
            strategy.run(lambda: steps.assign_add(tf.constant(1.0)) and None)
            return float(steps)

        return handler, step, steps


    def test_a_preempted_job_ends_and_its_next_start_goes_on(self):
        for calls in (1, 2, 3):
            handler, step, steps = self.start()
            self.assertEqual((handler.total_run_calls, float(steps)), (calls - 1, 2 * (calls - 1)))
            self.assertEqual(handler.run(step), 2 * calls)
            self.assertEqual(handler.total_run_calls, calls)
            raise_sigterm()
            raise_sigterm()
            self.assertEqual(tf.train.latest_checkpoint(self.folder) is None, calls == 1)  # not by the signal itself
            for _ in range(2):
                with self.assertRaisesRegex(libdist.Cancelled, OVER % calls):
                    handler.run(step)
            self.assertEqual(sorted(os.listdir(self.folder)), ["checkpoint", f"ckpt-{calls}"])
            path = tf.train.latest_checkpoint(self.folder)
            self.assertEqual(
                [tf.train.load_variable(path, name).tolist() for name in ("checkpointed_runs", "steps")],
                [calls, 2 * calls],
            )
            handler.close()

    def test_native_handlers_read_the_file_and_are_read(self):
        handler, step, _ = self.start()
        for _ in range(3):
            handler.run(step)
        raise_sigterm()
        self.assertRaises(libdist.Cancelled, handler.run, step)
        path = tf.train.latest_checkpoint(self.folder)
        with libdist.Strategy(3) as strategy:
            steps = strategy.variable(np.float32(0), name="steps")
            native = strategy.preemption_handler(path, [steps])
            self.assertEqual((native.total_run_calls, float(steps.read())), (3, 6))
            native.run(lambda replica: None)
            native.notify()
            self.assertIs(native.save_if_preempted(), libdist.PreemptionState.OVER)
        self.assertEqual(tf.train.list_variables(path), [("steps", [])])
        handler, _, steps = self.start()
        self.assertEqual((handler.total_run_calls, float(steps)), (4, 6))

    def test_a_file_that_says_no_number(self):
        strategy = tf.distribute.OneDeviceStrategy("CPU:0")
        with strategy.scope():
            checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        path = checkpoint.save(os.path.join(self.folder, "ckpt"))
        self.assertEqual(Handler(None, checkpoint, self.folder).total_run_calls, 0)
        for text in ("", "-1", "1e3", "many"):
            strategy._native.save_checkpoint(path, {"v": checkpoint.v._native}, metadata={"preemption.total_run_calls": text}
            )
            with self.assertRaisesRegex(libdist.DataLoss, "is no number of runs"):
                Handler(None, checkpoint, self.folder)
        strategy.close()

    def test_the_programs_own_saves_say_how_many_runs_there_were(self):
        handler, step, _ = self.start(managed=lambda one: tf.train.CheckpointManager(one, self.folder, max_to_keep=2))
        for _ in range(3):
            handler.run(step)
            handler._manager.save()  # as the program would, who has the manager
        handler.run(step)
        self.assertEqual(tf.train.load_variable(self.folder, "checkpointed_runs"), 3)
        handler, _, steps = self.start()
        self.assertEqual((handler.total_run_calls, float(steps)), (3, 6))

    def test_a_manager_saves_though_its_interval_is_not_over(self):
        step_counter = tf.Variable(0)
        handler, step, _ = self.start(
            managed=lambda one: tf.train.CheckpointManager(
                one, self.folder, max_to_keep=None, step_counter=step_counter, checkpoint_interval=100
            )
        )
        handler._manager.save()
        raise_sigterm()
        self.assertRaises(libdist.Cancelled, handler.run, step)
        self.assertEqual(len(handler._manager.checkpoints), 2)

    def test_a_loop_without_run(self):
        saved = []
        handler, step, _ = self.start(save_fn=lambda *args, **kwargs: saved.append((args, kwargs)))
        step()
        self.assertIsNone(handler.save_checkpoint_if_preempted(5))
        self.assertEqual((handler.total_run_calls, saved), (1, []))
        raise_sigterm()
        with self.assertRaisesRegex(libdist.Cancelled, r"save_checkpoint_if_preempted\(\): .* after 1 runs"):
            handler.save_checkpoint_if_preempted(5, call=None)
        self.assertEqual(saved, [((5,), {"call": None})])
        handler, step, _ = self.start()
        raise_sigterm()
        self.assertRaises(libdist.Cancelled, handler.save_checkpoint_if_preempted, 77)
        self.assertEqual(tf.train.latest_checkpoint(self.folder), os.path.join(self.folder, "ckpt-77"))

    def test_scopes(self):
        handler, step, _ = self.start()
        with handler.watch_preemption_scope() as nothing:
            self.assertIsNone(nothing)
            handler.run(step)
        with self.assertRaises(Boom), handler.watch_preemption_scope():
            raise_sigterm()
            raise Boom
        self.assertFalse(os.path.exists(self.folder))
        passed = []
        with self.assertRaisesRegex(libdist.Cancelled, "watch_preemption_scope"), handler.watch_preemption_scope():
            with handler.watch_preemption_scope():
                passed.append("inner")
            passed.append("outer")
        self.assertEqual(passed, ["inner"])
        self.assertTrue(os.path.exists(self.folder))

    def test_it_goes_on_for_its_grace(self):
        handler, step, _ = self.start(grace_period=3600)
        raise_sigterm()
        for calls in (1, 2):
            self.assertEqual(handler.run(step), 2 * calls)
        self.assertEqual(tf.train.load_variable(self.folder, "checkpointed_runs"), 0)
        self.assertEqual(handler.total_run_calls, 2)

    def test_a_function_ends_the_program(self):
        left = []
        handler, step, _ = self.start(exit_fn=lambda: left.append(handler.total_run_calls))
        handler.run(step)
        self.assertEqual(left, [])
        raise_sigterm()
        # As in TensorFlow a function that returns lets the program go on.
        self.assertEqual([handler.run(step), handler.run(step)], [4, 6])
        self.assertEqual((left, handler.total_run_calls), ([1], 3))
        self.assertEqual(tf.train.load_variable(self.folder, "checkpointed_runs"), 1)

    def test_functions_that_raise(self):
        for error in (Boom("mine"), KeyboardInterrupt(), SystemExit(42)):
            calls = []

            def fail(*_, error=error, calls=calls):
                calls.append(1)
                if len(calls) < 3:
                    raise error

            for name in ("exit_fn", "save_fn"):
                with self.subTest(name, error=error):
                    calls.clear()
                    handler, step, steps = self.start(**{name: fail})
                    before = float(steps)
                    raise_sigterm()
                    for _ in range(2):  # it is tried again
                        with self.assertRaises(type(error)) as raised:
                            handler.run(step)
                        self.assertIs(raised.exception, error)
                    if name == "save_fn":
                        self.assertRaises(libdist.Cancelled, handler.run, step)
                    else:
                        handler.run(step)
                        handler.run(step)
                    self.assertEqual((len(calls), float(steps) - before), (3, 0 if name == "save_fn" else 4))
                    handler.close()

    def test_functions_that_call_the_handler(self):
        calls = []

        def again():
            calls.append(handler.run(step))
            handler.save_checkpoint_if_preempted()
            with handler.watch_preemption_scope():
                pass

        handler, step, _ = self.start(exit_fn=again, save_fn=again)
        raise_sigterm()
        self.assertEqual((handler.run(step), calls, handler.total_run_calls), (6, [2, 4], 5))

    def test_a_checkpoint_that_cannot_be_written_is_tried_again(self):
        handler, step, _ = self.start()
        handler.run(step)
        with open(self.folder, "w"):  # where a folder is wanted
            raise_sigterm()
        self.assertRaises(OSError, handler.run, step)
        os.remove(self.folder)
        self.assertRaises(libdist.Cancelled, handler.run, step)
        self.assertEqual(tf.train.load_variable(self.folder, "steps"), 2)

    def test_steps_that_raise_are_not_counted(self):
        handler, step, _ = self.start()
        for error in (Boom("mine"), KeyboardInterrupt()):

            def fail(error=error):
                raise error

            with self.assertRaises(type(error)):
                handler.run(fail)
            with self.assertRaises(type(error)):
                handler.run(handler._strategy.run, fail)
        self.assertEqual((handler.total_run_calls, handler.run(step)), (0, 2))
        self.assertEqual(handler.run(lambda a, *, b: (a, b), 1, b=2), (1, 2))
        self.assertEqual(handler.run(handler.run, step), 4)
        self.assertEqual(handler.total_run_calls, 4)

    def test_a_function_that_watches(self):
        answers = iter([Boom("no answer"), False, np.bool_(False), True])

        def watch():
            answer = next(answers)
            if isinstance(answer, Boom):
                raise answer
            return answer

        with mock.patch.object(_termination, "EVERY_SECONDS", 0.001), self.assertLogs("libdist.tf", "WARNING") as told:
            handler, step, steps = self.start(termination_watcher_fn=watch)
            self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
            with self.assertRaises(libdist.Cancelled):
                while True:
                    handler.run(step)
        self.assertEqual(len(told.output), 1)
        self.assertIn("is asked again: Boom('no answer')", told.output[0])
        self.assertEqual(2 * tf.train.load_variable(self.folder, "checkpointed_runs"), float(steps))

    def test_nobody_waits_for_a_function_that_blocks(self):
        begun, forever = threading.Event(), threading.Event()
        self.addCleanup(forever.set)
        handler, step, _ = self.start(termination_watcher_fn=lambda: begun.set() or forever.wait())
        begun.wait()
        handler.run(step)
        handler.close()
        with self.assertRaisesRegex(libdist.FailedPrecondition, "handler is closed"):
            handler.run(step)

    def test_a_function_is_no_longer_asked_when_nobody_listens(self):
        threads = lambda: {one for one in threading.enumerate() if one.name == "libdist-termination"}  # noqa: E731
        config = TerminationConfig(termination_watcher_fn=lambda: False)
        with mock.patch.object(_termination, "EVERY_SECONDS", 3600):
            for closes in (True, False):
                before = threads()
                handler = Handler(None, tf.train.Checkpoint(v=tf.Variable(1.0)), self.folder, config)
                (asking,) = threads() - before
                if closes:
                    handler.close()
                del handler
                gc.collect()
                asking.join(GUARD_S)
                self.assertFalse(asking.is_alive())

    def test_two_handlers(self):
        handlers = [self.start(folder=os.path.join(self.folder, str(i)))[:2] for i in range(2)]
        raise_sigterm()
        for handler, step in handlers:
            self.assertRaises(libdist.Cancelled, handler.run, step)
        handlers[0][0].close()
        handlers[0][0].close()
        self.assertNotEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

    def test_two_handlers_of_a_checkpoint(self):
        first, step, _ = self.start()
        first.run(step)
        second = Handler(None, first._checkpoint, self.folder)
        self.addCleanup(second.close)
        self.assertEqual((first.total_run_calls, second.total_run_calls), (1, 0))
        raise_sigterm()
        for handler, calls in ((second, 0), (first, 1)):
            self.assertRaises(libdist.Cancelled, handler.run, step)
            self.assertEqual(tf.train.load_variable(self.folder, "checkpointed_runs"), calls)

    def test_the_programs_own_handler_of_sigterm_comes_back(self):
        got = []
        own = lambda *_: got.append(1)  # noqa: E731
        signal.signal(signal.SIGTERM, own)
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        handler, _, _ = self.start()
        ours = signal.getsignal(signal.SIGTERM)
        raise_sigterm()
        self.assertEqual(got, [])
        handler.close()
        self.assertIs(signal.getsignal(signal.SIGTERM), own)
        handler, _, _ = self.start()
        handler._strategy.close()  # which ends the handler
        self.assertIs(signal.getsignal(signal.SIGTERM), own)
        handler, _, _ = self.start()
        closing = threading.Thread(target=handler.close)  # where Python changes no handlers of signals
        closing.start()
        closing.join()
        raise_sigterm()
        self.assertEqual((got, signal.getsignal(signal.SIGTERM)), ([1], own))
        handler, step, _ = self.start()
        later = lambda *arguments: (got.append(2), ours(*arguments))  # noqa: E731
        signal.signal(signal.SIGTERM, later)
        raise_sigterm()
        self.assertRaises(libdist.Cancelled, handler.run, step)
        handler.close()  # what the program has put there later stays
        raise_sigterm()
        self.assertEqual((got, signal.getsignal(signal.SIGTERM)), ([1, 2, 2], later))

    def test_the_default_strategy(self):
        v = tf.Variable(1.0)
        handler = Handler(None, tf.train.Checkpoint(v=v), self.folder)
        self.addCleanup(handler.close)
        self.assertEqual(float(handler.run(lambda: v.assign_add(1.0))), 2)
        raise_sigterm()
        self.assertRaises(libdist.Cancelled, handler.run, lambda: None)
        self.assertEqual(tf.train.load_variable(self.folder, "v"), 2)

    def test_what_cannot_be_is_refused(self):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        for wrong in (
            {"termination_watcher_fn": True},
            {"exit_fn": 42},
            {"save_fn": "path"},
            {"grace_period": "60 seconds"},
            {"grace_period": [1, 2]},
            {"grace_period": -1},
            {"grace_period": float("nan")},
            {"grace_period": 1e300},
        ):
            (name,) = wrong
            with self.subTest(wrong), self.assertRaisesRegex((TypeError, ValueError), rf"TerminationConfig\(\): {name} is"):
                TerminationConfig(**wrong)
        self.assertEqual(vars(TerminationConfig(None, print, np.float32(2.5))), {
            "termination_watcher_fn": None, "exit_fn": print, "grace_period": 2.5, "save_fn": None,
        })  # fmt: skip
        spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})
        servers = tf.train.ClusterSpec({"worker": ["a:1"], "ps": ["c:1"]})
        simple = tf.distribute.cluster_resolver.SimpleClusterResolver
        class Broken(tf.distribute.cluster_resolver.ClusterResolver):
            def cluster_spec(self):
                return {"worker": ["a:1"]}

        for error, words, arguments in (
            (TypeError, "cluster_resolver is <.*, but must be a", (strategy, checkpoint, self.folder)),
            (TypeError, "is no tf.train.ClusterSpec", (Broken(), checkpoint, self.folder)),
            (NotImplementedError, "parameter servers", (simple(servers), checkpoint, self.folder)),
            (RuntimeError, "several workers", (simple(spec, task_type="worker", task_id=0), checkpoint, self.folder)),
            (TypeError, "checkpoint_or_checkpoint_manager is 'folder', but", (None, "folder", self.folder)),
            (TypeError, "checkpoint_or_checkpoint_manager is None, but", (None, None, self.folder)),
            (ValueError, "a checkpoint_dir must be passed", (None, checkpoint)),
            (ValueError, "a checkpoint_dir must be passed", (None, checkpoint, "")),
            (TypeError, "checkpoint_dir is 3, but must be", (None, checkpoint, 3)),
            (TypeError, "termination_config is {.*, but must be a TerminationConfig", (None, checkpoint, self.folder, {"grace_period": 3})),
            (ValueError, "name of the handler's", (None, tf.train.Checkpoint(checkpointed_runs=[]), self.folder)),
            (ValueError, "name of the handler's",
             (None, tf.train.Checkpoint(checkpointed_runs=tf.Variable(1.5)), self.folder)),
        ):  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(error, words):
                Handler(*arguments)
        handler = Handler(None, checkpoint, self.folder)
        self.addCleanup(handler.close)
        for wrong in (None, 3, "step"):
            with self.assertRaisesRegex(TypeError, "distributed_train_function is .*, but must be callable"):
                handler.run(wrong)
        with self.assertRaisesRegex(AttributeError, "not offered: of a handler there are run"):
            handler.stop  # noqa: B018
        calls = (
            lambda: handler.run(print),
            handler.save_checkpoint_if_preempted,
            lambda: handler.watch_preemption_scope().__enter__() or Handler(None, checkpoint, self.folder),
            lambda: Handler(None, checkpoint, self.folder),
        )
        for call in calls:
            with self.assertRaisesRegex(libdist.FailedPrecondition, "outside of replica functions"):
                strategy.run(lambda call=call: call() and None)
        with self.assertRaisesRegex(libdist.FailedPrecondition, "outside of replica functions"):
            strategy.run(lambda: tf.distribute.get_replica_context().merge_call(lambda _: handler.run(print)))
        self.assertEqual(handler.total_run_calls, 0)
        strategy.close()
        with self.assertRaisesRegex(libdist.FailedPrecondition, "closed"):
            handler.run(print)

    def test_sigterm_is_the_main_threads(self):
        errors = []

        def make():
            try:
                self.start()
            except ValueError as error:
                errors.append(str(error))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        self.assertRegex(errors[0], r"the main thread alone watch SIGTERM.*termination_watcher_fn=")


class Processes(unittest.TestCase):
    """What SIGTERM does to a process when nobody listens any more."""

    def play(self, body):
        program = """
        import gc, os, signal, tempfile
        import libdist, libdist.tf as tf
        folder = tempfile.TemporaryDirectory()
        handler = tf.distribute.experimental.PreemptionCheckpointHandler(
            None, tf.train.Checkpoint(v=tf.Variable(1.0)), folder.name)
        """
        program = textwrap.dedent(program) + textwrap.dedent(body)
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=GUARD_S)

    def test_a_handler_that_is_gone_does_not_keep_the_process(self):
        result = self.play("""
        folder.cleanup()
        del handler
        gc.collect()
        signal.raise_signal(signal.SIGTERM)
        print("still here")
        """)
        self.assertEqual((result.returncode, result.stdout), (-signal.SIGTERM, ""), result.stderr)

    def test_a_forked_child_ends(self):
        result = self.play("""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, b"x")
            while True:
                signal.pause()
        os.read(read, 1)
        os.kill(child, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        try:
            signal.raise_signal(signal.SIGTERM)
            handler.run(print)
        except libdist.Cancelled:
            print("cancelled")
        """)
        self.assertEqual((result.returncode, result.stdout), (0, f"{-signal.SIGTERM}\ncancelled\n"), result.stderr)

    def test_an_uncaught_end_is_a_failure_of_the_program(self):
        result = self.play("""
        os.kill(os.getpid(), signal.SIGTERM)
        handler.run(print, "a run")
        """)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertIn("start it again to go on", result.stderr)


if __name__ == "__main__":
    unittest.main()
