# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: ParameterServerStrategy, ClusterCoordinator and Server, in one process."""

import gc
import os
import tempfile
import unittest
import weakref

import numpy as np
from servers_together import TfCluster, assert_equal

import libdist
import libdist.tf as tf


def module_level_dataset():
    """No tf.function: workers find it where this module has it."""
    return tf.data.Dataset.from_tensor_slices(np.arange(3))


class Programs(unittest.TestCase):
    def setUp(self):
        self.cluster = TfCluster(2, 2)
        self.addCleanup(self.cluster.close)
        self.strategy = tf.distribute.experimental.ParameterServerStrategy(
            self.cluster.resolver, variable_partitioner=lambda shape, dtype: [2 if shape[0] > 4 else 1] + [1] * (len(shape) - 1)
        )
        self.addCleanup(self.strategy.close)
        self.coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(self.strategy)

    def variables(self, *initial, **options):
        with self.strategy.scope():
            made = [tf.Variable(value, **options) for value in initial]
        return made[0] if len(made) == 1 else made

    def run_one(self, fn, *args, **kwargs):
        remote = self.coordinator.schedule(fn, args=args, kwargs=kwargs)
        self.coordinator.join()
        return remote.fetch()

    def test_the_documented_program_of_the_coordinator(self):
        @tf.function
        def worker_fn(iterator):
            return next(iterator)

        def per_worker_dataset_fn():
            return self.strategy.distribute_datasets_from_function(
                lambda x: tf.data.Dataset.from_tensor_slices([3] * 3)
            )

        per_worker_dataset = self.coordinator.create_per_worker_dataset(per_worker_dataset_fn)
        per_worker_iter = iter(per_worker_dataset)
        remote_value = self.coordinator.schedule(worker_fn, args=(per_worker_iter,))
        self.assertEqual(remote_value.fetch(), 3)
        self.assertIsInstance(remote_value, tf.distribute.coordinator.RemoteValue)
        self.assertIsInstance(remote_value.get(), tf.Tensor)
        with self.assertRaisesRegex(NotImplementedError, "not supported"):
            next(per_worker_iter)

    def test_a_function_reads_what_it_has_written(self):
        v, table = self.variables(1.0, np.zeros((6, 2), np.float32))

        @tf.function
        def step(x):
            v.assign_add(x)
            seen = [v.read_value(), v * 2]
            v.assign(10.0)
            v.assign_sub(1.0)
            rows = tf.IndexedSlices(tf.ones((2, 2)), tf.constant([1, 5]))
            table.scatter_add(rows)
            table.variables[1].scatter_update(tf.IndexedSlices(tf.ones((1, 2)) * 7, tf.constant([0])))
            table.variables[0].assign_add(tf.ones((3, 2)))
            return seen, v.numpy(), float(v), table.sparse_read([5, 3, 0]), table.variables[1].read_value()

        (first, doubled), number, as_float, rows, part = self.run_one(step, 2.0)
        self.assertEqual((first, doubled, number, as_float), (3, 6, 9, 9))
        self.assertEqual(rows.tolist(), [[1, 1], [7, 7], [1, 1]])
        self.assertEqual(part.tolist(), [[7, 7], [0, 0], [1, 1]])
        self.assertEqual(v.numpy(), 9)
        self.assertEqual(table.numpy()[:, 0].tolist(), [1, 2, 1, 7, 0, 1])
        self.assertEqual(type(table).__name__, "ShardedVariable")
        self.assertEqual([shard.shape for shard in table], [(3, 2), (3, 2)])

    def test_variables_outside_of_functions(self):
        w, same, e = self.variables(np.arange(4.0), np.arange(4.0), np.arange(12.0).reshape(6, 2), name="w", trainable=False)
        self.assertEqual([v.name for v in (w, same, e)], ["w:0"] * 3)
        self.assertEqual([shard.name for shard in e.variables], ["w/part_0:0", "w/part_1:0"])
        self.assertEqual((w.dtype, w.shape, w.trainable), (np.float64, (4,), False))
        self.assertIsInstance(w, tf.Variable)
        self.assertIsInstance(e, tf.Variable)
        self.assertIs(w.assign_add(np.ones(4)), w)
        self.assertEqual((w + 1).tolist(), [2, 3, 4, 5])
        self.assertEqual(same.numpy().tolist(), [0, 1, 2, 3])
        w[1].assign(9.0)
        self.assertEqual(tf.reduce_sum(w), 1 + 9 + 3 + 4)
        e.variables[1].assign(np.zeros((3, 2)))
        e.scatter_sub(tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([0])))
        self.assertEqual(e.numpy()[:, 0].tolist(), [-1, 2, 4, 0, 0, 0])
        self.assertEqual(e.sparse_read([[0, 1]]).shape, (1, 2, 2))
        for wrong in (lambda: w.assign(np.ones(3)), lambda: e.variables[0].assign(np.ones((2, 2)))):
            with self.assertRaises(libdist.InvalidArgument):
                wrong()
        with self.assertRaises(libdist.InvalidArgument):
            e.variables[0].scatter_add(tf.IndexedSlices(tf.ones((1, 2)), tf.constant([3])))
        self.assertRegex(repr(w), r"^<tf.Variable 'w:0' shape=\(4,\) dtype=float64, numpy=")
        self.assertTrue(self.strategy.extended.variable_created_in_scope(w))
        self.assertIs(self.strategy.extended.value_container(w), w)
        self.assertEqual(self.strategy.extended.update(w, lambda v, x: v.assign(x).numpy().tolist(), (np.ones(4),)), [1] * 4)
        with self.strategy.scope(), self.strategy.extended.colocate_vars_with(e):
            beside = tf.Variable(np.zeros((6, 3)))
        self.assertEqual([s.device for s in beside.variables], [s.device for s in e.variables])
        self.assertFalse(hasattr(tf.Variable(0.0), "_strategy"))  # outside of the scope it is a plain one

    def test_what_goes_over(self):
        v = self.variables(1.5)

        @tf.function
        def back(*args, **kwargs):
            return list(args), kwargs, v

        array = np.arange(3)
        remote = self.coordinator.schedule(back, args=(1, 2.5, "ä", None, [array, (True,)]), kwargs={"k": {"v": v}})
        array[:] = 9  # the function has what it was
        (one, two, text, none, (same, (true,))), kwargs, read = remote.get()
        self.assertEqual((one.dtype, two.dtype, text, none, true), (np.int32, np.float32, "ä", None, True))
        self.assertEqual(same.tolist(), [0, 1, 2])
        self.assertEqual((kwargs["k"]["v"], read), (1.5, 1.5))
        self.assertEqual(self.run_one(tf.function(lambda shard: shard.shape[0]), self.variables(np.ones(5)).variables[1]), 2)
        with self.assertRaisesRegex(libdist.InvalidArgument, "object is no tensor"):
            self.coordinator.schedule(back, args=(object(),))

    def test_inside_of_functions(self):
        v = self.variables(0.0, aggregation=tf.VariableAggregation.MEAN)

        @tf.function
        def look():
            def replica_fn(x):
                context = tf.distribute.get_replica_context()
                v.assign_add(x)
                return context.replica_id_in_sync_group, context.num_replicas_in_sync

            where = tf.distribute.coordinator.experimental_get_current_worker_index()
            inside = tf.distribute.get_strategy() is self.strategy and tf.distribute.in_cross_replica_context()
            ids, count = self.strategy.run(replica_fn, args=(tf.constant(2.0),))
            total = self.strategy.reduce("SUM", v.read_value(), axis=None)
            return where, inside, ids, count, total

        where, inside, ids, count, total = self.run_one(look)
        self.assertIn(where, (0, 1))
        self.assertEqual((inside, ids, count, total), (True, 0, 1, 2))
        with self.assertRaisesRegex(RuntimeError, "worker index"):
            tf.distribute.coordinator.experimental_get_current_worker_index()

    def test_what_functions_may_not(self):
        class Model(tf.Module):
            @tf.function
            def step(self):
                return 1

        def make():
            return tf.Variable(1.0)

        def ends():
            return next(iter(()))

        def unknown():
            raise KeyError("key")

        with self.assertRaisesRegex(TypeError, "schedule\\(\\) of a method"):
            self.coordinator.schedule(Model().step)
        for fn, kind, text in (
            (make, ValueError, "make.*: ValueError: .* makes no variables"),
            (unknown, libdist.Unknown, "unknown.*: KeyError: 'key'"),
            (ends, libdist.OutOfRange, "ends.*: End of sequence"),
            (object, libdist.InvalidArgument, "object: object is no tensor"),
        ):
            with self.assertRaisesRegex(kind, text):
                self.run_one(tf.function(fn))

    def test_what_each_worker_has_of_its_own(self):
        self.cluster.wait_for_workers(self.coordinator, 2)
        made = self.coordinator.create_per_worker_value(lambda start: {"count": int(start), "list": []}, (10,))

        @tf.function
        def count(own, rows):
            own["count"] += 1
            own["list"].append(int(next(rows)))
            return own["count"], list(own["list"]), tf.distribute.coordinator.experimental_get_current_worker_index()

        rows = iter(self.coordinator.create_per_worker_dataset(module_level_dataset))
        again = iter(self.coordinator.create_per_worker_dataset(tf.data.Dataset.range(3)))
        remotes = [self.coordinator.schedule(count, args=(made, rows)) for _ in range(4)]
        self.coordinator.join()
        seen = {}
        for number, listed, worker in self.coordinator.fetch(remotes):
            seen.setdefault(int(worker), []).append(int(number))
            self.assertEqual(listed, list(range(len(listed))))
        self.assertEqual(sum(map(len, seen.values())), 4)
        for numbers in seen.values():
            self.assertEqual(numbers, list(range(11, 11 + len(numbers))))
        for _ in range(4):
            self.coordinator.schedule(tf.function(lambda i: i.get_next()), args=(again,))
        self.coordinator.join()
        with self.assertRaisesRegex(libdist.OutOfRange, "End of sequence"):
            for _ in range(7):
                self.coordinator.schedule(tf.function(lambda i: next(i)), args=(again,))
            self.coordinator.join()
        with self.assertRaises(NotImplementedError):
            self.coordinator.fetch([made])
        with self.assertRaisesRegex(TypeError, "dataset_fn is 3, but must be a tf.data.Dataset or callable"):
            self.coordinator.create_per_worker_dataset(3)
        with self.assertRaisesRegex(libdist.DistError, "boom"):
            self.coordinator.create_per_worker_value(tf.function(lambda: assert_equal(1, 2, "boom")))

    def test_metrics(self):
        with self.strategy.scope():
            accuracy, mean, total = tf.keras.metrics.Accuracy(), tf.keras.metrics.Mean(), tf.keras.metrics.Sum()
            sparse = tf.keras.metrics.SparseCategoricalAccuracy()

        @tf.function
        def step(labels):
            def replica_fn(labels):
                accuracy.update_state(labels, [1, 1, 0], sample_weight=[1.0, 2.0, 1.0])
                mean.update_state(labels)
                total.update_state([[1.0, 2.0]], [3.0])
                sparse.update_state(labels, [[0.1, 0.9], [np.nan, 0.2], [0.5, 0.5]])

            self.strategy.run(replica_fn, args=(labels,))

        for _ in range(4):
            self.coordinator.schedule(step, args=([1, 0, 0],))
        self.coordinator.join()
        results = [metric.result().numpy() for metric in (accuracy, mean, total, sparse)]
        np.testing.assert_allclose(results, [0.5, 1 / 3, 36, 2 / 3], rtol=1e-6)
        self.assertEqual(len(accuracy.variables), 2)
        accuracy.reset_states()
        self.assertEqual(accuracy.result(), 0)
        self.coordinator.schedule(step, args=([1, 0],))
        with self.assertRaisesRegex(libdist.InvalidArgument, "labels"):
            self.coordinator.join()

    def test_checkpoints(self):
        module = tf.Module()
        module.w, module.e = self.variables(np.ones(3), np.arange(12.0).reshape(6, 2))
        checkpoint = tf.train.Checkpoint(module=module)
        with tempfile.TemporaryDirectory() as folder:
            path = checkpoint.save(os.path.join(folder, "model"))
            module.w.assign(np.zeros(3))
            module.e.assign(np.zeros((6, 2)))
            checkpoint.restore(path).assert_consumed()
        self.assertEqual(module.w.numpy().tolist(), [1, 1, 1])
        self.assertEqual(module.e.numpy()[5].tolist(), [10, 11])

    def test_who_is_forgotten_ends(self):
        cluster = TfCluster(1, 1)
        self.addCleanup(cluster.close)
        strategy = tf.distribute.ParameterServerStrategy(cluster.resolver)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            v = tf.Variable(0.0)
        coordinator.schedule(tf.function(lambda: v.assign_add(1.0)))
        coordinator.join()
        alive = weakref.ref(strategy), weakref.ref(v), weakref.ref(strategy._native)
        del strategy, coordinator, v
        gc.collect()
        self.assertEqual([one() for one in alive], [None] * 3)
        for server in cluster.servers:
            server.join()  # the coordinator has ended

    def test_what_is_wrong_is_said(self):
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver
        for jobs, text in (
            ({}, "Cluster spec must be non-empty"),
            ({"worker": ["a:1"]}, "at least one ps"),
            ({"ps": ["a:1"]}, "at least one worker"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                tf.distribute.ParameterServerStrategy(resolver(tf.train.ClusterSpec(jobs)))
        with self.assertRaisesRegex(TypeError, "cluster_resolver is 3, but must be a tf.distribute.cluster_resolver.ClusterResolver"):
            tf.distribute.ParameterServerStrategy(3)
        jobs = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}
        spec = tf.train.ClusterSpec(jobs)
        worker = tf.distribute.ParameterServerStrategy(resolver(spec, task_type="worker", task_id=0))
        with worker.scope():
            v, e = tf.Variable(1.0), tf.Variable(2.0)
        self.assertEqual((v.device, e.shape), ("/job:ps/replica:0/task:0/device:CPU:0", ()))
        self.assertEqual(repr(v), "<tf.Variable 'Variable:0' shape=() dtype=float32>")
        for call in (v.read_value, lambda: v.assign(1.0)):
            with self.assertRaisesRegex(libdist.FailedPrecondition, "this process is /job:worker/task:0"):
                call()
        coordinator = tf.distribute.coordinator.ClusterCoordinator(worker)
        with self.assertRaisesRegex(libdist.FailedPrecondition, "this process is /job:worker/task:0"):
            coordinator.schedule(tf.function(lambda: 1))

    def test_servers(self):
        spec = tf.train.ClusterSpec({"worker": ["127.0.0.1:0"]})
        server = tf.distribute.Server(spec, start=False)
        self.addCleanup(server.close)
        self.assertEqual((server.server_def.job_name, server.server_def.task_index), ("worker", 0))
        self.assertEqual((server.server_def.protocol, server.server_def.cluster), ("grpc", spec))
        server.start()
        server.start()
        self.assertRegex(server.target, r"^grpc://127\.0\.0\.1:[1-9]")
        again = tf.distribute.Server(server.server_def, start=False)
        self.assertEqual(repr(again), "<tf.distribute.Server /job:worker/task:0>")
        with self.assertRaisesRegex(ValueError, "job_name"):
            tf.distribute.Server({"ps": ["a:1"], "worker": ["b:1"]})
        with self.assertRaisesRegex(ValueError, "task_index"):
            tf.distribute.Server({"ps": ["a:1", "b:1"]}, "ps")
        with self.assertRaises(libdist.DistError):
            tf.distribute.Server({"ps": ["a:1"]}, "ps", 0, protocol="rdma")


if __name__ == "__main__":
    unittest.main()
