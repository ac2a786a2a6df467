# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: PreemptionCheckpointHandler over several workers, which save between the same two runs."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import libdist
import libdist.tf as tf

experimental = tf.distribute.experimental
GUARD_S = 240


class Boom(Exception):
    pass


def on_workers(count, program):
    """program(worker) on a thread each: what they returned, or raised."""
    results = [None] * count

    def play(w):
        try:
            results[w] = program(w)
        except BaseException as error:
            results[w] = error

    threads = [threading.Thread(target=play, args=(w,)) for w in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Workers(unittest.TestCase):
    """Workers that are strategies of this process, a thread each, with one replica."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "kept")

    def worker(self, w, network, folder=None, **options):
        """A start of the job, whose steps add one for each replica to the checkpoint's variable "steps"."""
        spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=w)
        strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver, network=network)
        with strategy.scope():
            steps = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        config = experimental.TerminationConfig(**{"termination_watcher_fn": lambda: False, **options})
        checkpoint = tf.train.Checkpoint(steps=steps)
        handler = experimental.PreemptionCheckpointHandler(resolver, checkpoint, folder or self.folder, config)
        return handler, lambda: strategy.run(lambda: steps.assign_add(tf.constant(1.0)) and None), steps

    def on_workers(self, program):
        network = libdist.Network(2)
        with mock.patch.dict(os.environ, {"DIST_REPLICAS": "1"}):
            return on_workers(2, lambda w: program(w, network))

    def test_they_save_between_the_same_two_runs(self):
        before = 0
        for told in (1, 0):

            def play(w, network, told=told):
                handler, step, steps = self.worker(w, network, termination_watcher_fn=lambda: w == told)
                begun = handler.total_run_calls, float(steps)
                with self.assertRaises(libdist.Cancelled):
                    while True:
                        handler.run(step)
                return begun, handler.total_run_calls, float(steps)

            first, second = self.on_workers(play)
            self.assertEqual(first, second)
            begun, runs, total = first
            self.assertEqual((begun, total), ((before, 2 * before), 2 * runs))
            self.assertGreater(runs, before)
            self.assertEqual(tf.train.load_variable(self.folder, "checkpointed_runs"), runs)
            before = runs

    def test_they_may_not_restore_different_files(self):
        def play(w, network):
            return self.worker(w, network, folder=os.path.join(self.folder, str(w)))

        checkpoint = tf.train.Checkpoint(steps=tf.Variable(1.0))
        checkpoint.save(os.path.join(self.folder, "1", "ckpt"))
        for error in self.on_workers(play):
            self.assertIsInstance(error, libdist.FailedPrecondition)
            self.assertRegex(str(error), "the latest checkpoint is '.*' on this worker, .* give all workers one folder")
        checkpoint.checkpointed_runs = tf.Variable(np.int64(3))
        checkpoint.save(os.path.join(self.folder, "0", "ckpt"))
        os.rename(os.path.join(self.folder, "0", "ckpt-2"), os.path.join(self.folder, "0", "ckpt-1"))
        with open(os.path.join(self.folder, "0", "checkpoint"), "w") as file:
            file.write('model_checkpoint_path: "ckpt-1"\nall_model_checkpoint_paths: "ckpt-1"\n')
        for error, runs in zip(self.on_workers(play), (3, 0)):
            self.assertIsInstance(error, libdist.FailedPrecondition)
            self.assertIn(f"'ckpt-1' says {runs} runs", str(error))

    def test_what_one_cannot_restore_all_are_told_of(self):
        checkpoint = tf.train.Checkpoint(steps=tf.Variable(1.0))
        for w in range(2):
            path = tf.train.Checkpoint(steps=checkpoint.steps).save(os.path.join(self.folder, str(w), "ckpt"))
        with open(path, "wb") as file:
            file.write(b"nothing")
        told, own = self.on_workers(lambda w, network: self.worker(w, network, folder=os.path.join(self.folder, str(w))))
        self.assertIsInstance(own, libdist.DataLoss)
        self.assertIsInstance(told, libdist.FailedPrecondition)

    def test_a_save_that_fails_on_one_is_tried_again_by_it_alone(self):
        """The others have saved: whoever raises says so, and nobody waits for ever."""

        def play(w, network):
            tries = []

            def save():
                tries.append(1)
                if w == 1 and len(tries) == 1:
                    raise Boom

            handler, step, _ = self.worker(w, network, termination_watcher_fn=lambda: True, save_fn=save)
            raised = []
            while not raised or raised[-1] is not libdist.Cancelled:
                try:
                    handler.run(step)
                except (Boom, libdist.Cancelled) as error:
                    raised.append(type(error))
            return raised, handler.total_run_calls

        first, second = self.on_workers(play)
        self.assertEqual((first[0], second[0]), ([libdist.Cancelled], [Boom, libdist.Cancelled]))
        self.assertEqual(first[1], second[1])

    def test_one_worker_keeps_the_folder(self):
        """Of a path for all, others neither list nor remove, nor look at what is removed: they would be in its way."""
        touched, workers, guard = [], {}, threading.Lock()

        def noted(do):
            def call(*args):
                with guard:
                    touched.append((do.__name__, workers.get(threading.get_ident())))
                return do(*args)

            return call

        def play(w, network):
            workers[threading.get_ident()] = w
            handler, step, _ = self.worker(w, network)
            for _ in range(3):
                handler._manager.save()
                handler._checkpoint.save(os.path.join(self.folder, "other"))
            return handler._manager.checkpoints

        with contextlib.ExitStack() as stack:
            for module, do in (os, os.replace), (os, os.remove), (os.path, os.path.getmtime):
                stack.enter_context(mock.patch.object(module, do.__name__, noted(do)))
            first, second = self.on_workers(play)
        self.assertEqual((first, second), ([os.path.join(self.folder, "ckpt-5")],) * 2)
        self.assertEqual(sorted(touched), [("getmtime", 0)] * 2 + [("remove", 0)] * 2 + [("replace", 0)] * 8)


PROGRAM = """
import json, sys
import libdist.tf as tf

folder, steps, exits = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "exits"
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)


def tell(what):
    print(json.dumps([what, handler.total_run_calls, float(total)]), flush=True)


def leave():
    tell("leaves")
    sys.exit(42)


experimental = tf.distribute.experimental
handler = experimental.PreemptionCheckpointHandler(
    strategy.cluster_resolver, tf.train.Checkpoint(total=total), folder,
    experimental.TerminationConfig(exit_fn=leave) if exits else None)
tell("begins")
begun = handler.total_run_calls
while handler.total_run_calls < steps:
    try:
        handler.run(strategy.run, lambda: total.assign_add(tf.constant(1.0)) and None)
    except Exception as error:
        tell(type(error).__name__)
        raise
    if handler.total_run_calls == begun + 3:
        tell("has run")
tell("ends")
"""


@unittest.skipUnless("WORKERS_ARE_PROCESSES" in os.environ, "libdist-grpc is not built")
class WorkersThatAreProcesses(unittest.TestCase):
    def start(self, folder, steps, preempted=None, exits="exits"):
        """Each worker's exit status, and what it has said; SIGTERM goes to one of them when it has run."""
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
            addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
        with contextlib.ExitStack() as stack:
            workers = []
            for w in range(2):
                config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": w}}
                environment = {**os.environ, "TF_CONFIG": json.dumps(config), "DIST_REPLICAS": "2"}
                command = [sys.executable, "-c", PROGRAM, folder, str(steps), exits]
                workers.append(
                    subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                )
                guard = threading.Timer(GUARD_S, workers[-1].kill)
                guard.start()
                stack.callback(guard.cancel)
            early = ["", ""]
            if preempted is not None:
                for _ in range(2):
                    early[preempted] += workers[preempted].stdout.readline()
                workers[preempted].send_signal(signal.SIGTERM)
            said = [worker.communicate() for worker in workers]
        lines = [[json.loads(line) for line in (early[w] + said[w][0]).splitlines()] for w in range(2)]
        return [worker.returncode for worker in workers], lines, [error for _, error in said]

    def test_the_preempted_save_together_and_go_on(self):
        before = 0
        with tempfile.TemporaryDirectory() as folder:
            for preempted, exits, code, last in ((1, "exits", 42, "leaves"), (0, "raises", 1, "Cancelled")):
                codes, (first, second), errors = self.start(folder, 10**9, preempted, exits)
                self.assertEqual((codes, first), ([code] * 2, second), errors)
                runs = first[-1][1]
                self.assertGreaterEqual(runs, before + 3)
                # Each run adds one for each of four replicas: both have stopped after the same.
                self.assertEqual(
                    first,
                    [["begins", before, 4 * before], ["has run", before + 3, 4 * before + 12], [last, runs, 4 * runs]],
                )
                path = tf.train.latest_checkpoint(folder)
                self.assertEqual(sorted(os.listdir(folder)), ["checkpoint", os.path.basename(path)])
                with libdist.get_strategy().open_checkpoint(path) as file:
                    self.assertEqual(file.metadata["preemption.total_run_calls"], str(runs))
                    self.assertEqual(float(file["total"]), 4 * runs)
                before = runs
            codes, (first, second), errors = self.start(folder, before + 1)
            self.assertEqual((codes, first), ([0, 0], second), errors)
            self.assertEqual(first, [["begins", before, 4 * before], ["ends", before + 1, 4 * before + 4]])


if __name__ == "__main__":
    unittest.main()
