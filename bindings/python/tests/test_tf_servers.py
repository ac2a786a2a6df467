# SPDX-License-Identifier: Apache-2.0
"""libdist.tf with parameter servers: TensorFlow's checks, warnings and exception classes."""

import logging
import os
import socket
import unittest
import unittest.mock

from servers_together import TfCluster

import libdist
import libdist.tf as tf
from libdist.tf._job import reporting_losses

SPEC = {"worker": ["localhost:1"], "ps": ["localhost:2"], "chief": ["localhost:3"]}


def resolver_of(jobs, task_type=None, task_id=0):
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(jobs), rpc_layer="grpc", task_type=task_type, task_id=task_id
    )


class Checks(unittest.TestCase):
    def test_clusters(self):
        for words, jobs, task in (
            ("must be non-empty", {}, ("chief", 0)),
            ("Disallowed task type found", {**SPEC, "other": ["localhost:4"]}, ("chief", 0)),
            ("Unrecognized task_type: foobar", SPEC, ("foobar", 0)),
            ("'chief' not found in cluster_spec", {"worker": SPEC["worker"], "ps": SPEC["ps"]}, ("chief", 0)),
            ("at most one 'chief' job", {**SPEC, "chief": ["localhost:3", "localhost:4"]}, ("chief", 0)),
            ("at most one 'evaluator' job", {**SPEC, "evaluator": ["localhost:4", "localhost:5"]}, ("chief", 0)),
            ("`task_id` 1 exceeds the maximum id of worker", SPEC, ("worker", 1)),
            ("at least one ps", {"worker": SPEC["worker"], "chief": SPEC["chief"]}, ("chief", 0)),
            ("at least one worker", {"ps": SPEC["ps"], "chief": SPEC["chief"]}, ("chief", 0)),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                tf.distribute.ParameterServerStrategy(resolver_of(jobs, *task))
        for task_type in ("chief", None, "evaluator"):
            tf.distribute.ParameterServerStrategy(resolver_of(SPEC, task_type)).close()

    def test_variables_of_each_worker(self):
        with self.assertRaisesRegex(NotImplementedError, "create_per_worker_value"):
            tf.Variable(1.0, per_worker_variable=True)


class Listening(unittest.TestCase):
    def test_a_name_that_does_not_resolve(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {"DIST_PLAINTEXT": "1", "DIST_JOB_SECRET": "of this job"}
        with unittest.mock.patch.dict(os.environ, environment):
            server = tf.distribute.Server({"worker": [f"not..a.name:{port}"]}, job_name="worker", task_index=0)
        self.addCleanup(server.close)
        for host in ("127.0.0.1", "127.0.0.2"):
            socket.create_connection((host, port)).close()


class Servers(unittest.TestCase):
    def setUp(self):
        self.cluster = TfCluster(2, 1)
        self.addCleanup(self.cluster.close)
        partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
        self.strategy = tf.distribute.ParameterServerStrategy(self.cluster.resolver, partitioner)
        self.addCleanup(self.strategy.close)
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)

    def test_colocated_with_one_part(self):
        with self.strategy.scope():
            divided = tf.Variable([0.0, 1.0, 2.0, 3.0])
            for part in divided.variables:
                with self.strategy.extended.colocate_vars_with(part):
                    beside = tf.Variable([4.0, 5.0, 6.0])
                    scalar = tf.Variable(7.0)
                self.assertEqual((beside.device, scalar.device), (part.device, part.device))
                self.assertEqual((beside.numpy().tolist(), float(scalar)), ([4.0, 5.0, 6.0], 7.0))
            with self.strategy.extended.colocate_vars_with(divided):
                twin = tf.Variable([4.0, 5.0, 6.0, 7.0])
            self.assertEqual([one.device for one in twin.variables], [one.device for one in divided.variables])

    def test_a_warning_if_the_coordinator_computes(self):
        @tf.function
        def step():
            value = self.strategy.run(lambda: tf.constant(2.0))
            return self.strategy.reduce("SUM", value, axis=None)

        with self.assertLogs("libdist.tf", logging.WARNING) as seen:
            self.assertEqual(float(self.strategy.run(lambda: tf.constant(1.0))), 1.0)
            self.strategy.reduce("SUM", tf.constant([1.0]), axis=0)
        self.assertEqual(len(seen.output), 2)
        for line in seen.output:
            self.assertIn("is executed locally on the coordinator", line)
        with self.assertNoLogs("libdist.tf", logging.WARNING):
            remote = self.coordinator.schedule(step)
            self.coordinator.join()
        self.assertEqual(float(remote.fetch()), 2.0)

    def test_exceptions_of_functions_keep_their_class(self):
        def of(error):
            def fails():
                raise error

            return tf.function(fails)

        for error, kind in (
            (ValueError("own"), tf.errors.InvalidArgumentError),
            (TypeError("own"), tf.errors.InvalidArgumentError),
            (NotImplementedError("own"), tf.errors.UnimplementedError),
            (FileNotFoundError("own"), tf.errors.NotFoundError),
            (PermissionError("own"), tf.errors.PermissionDeniedError),
            (libdist.DataLoss("own"), tf.errors.DataLossError),
            (KeyError("own"), tf.errors.UnknownError),
        ):
            with self.subTest(error):
                remote = self.coordinator.schedule(of(error))
                for call in (self.coordinator.join, remote.fetch):
                    with self.assertRaisesRegex(kind, "own") as raised:
                        call()
                    if isinstance(error, ValueError):
                        self.assertIsInstance(raised.exception, ValueError)
        self.coordinator.join()

    def test_all_reports_of_a_lost_parameter_server_are_recognized(self):
        for text in (
            "parameter server 0 at 127.0.0.1:7 is lost, and its variables with it: restore from a checkpoint (why)",
            "parameter server 1 at ps-1.local:7 is lost with its variables (why). Restore from a checkpoint.",
        ):
            with self.assertRaises(tf.errors.UnavailableError), reporting_losses():
                raise libdist.Aborted(text)
        with self.assertRaises(libdist.Aborted) as raised, reporting_losses():
            raise libdist.Aborted("the closure's own reason")
        self.assertNotIsInstance(raised.exception, libdist.Unavailable)

    def test_a_lost_parameter_server(self):
        with self.strategy.scope():
            variable = tf.Variable(1.0)

        @tf.function
        def step():
            variable.assign_add(1.0)

        self.coordinator.schedule(step)
        self.coordinator.join()
        self.cluster.servers[0].close()

        def until_lost():
            while True:  # the loss is noticed a moment later
                self.coordinator.schedule(step)
                self.coordinator.join()

        for call in (until_lost, variable.read_value, lambda: variable.assign(2.0)):
            with self.assertRaisesRegex(tf.errors.UnavailableError, "parameter server 0 .* is lost") as raised:
                call()
            self.assertIsInstance(raised.exception, libdist.Aborted)
            self.assertEqual(raised.exception.status, libdist.Status.UNAVAILABLE)


if __name__ == "__main__":
    unittest.main()
