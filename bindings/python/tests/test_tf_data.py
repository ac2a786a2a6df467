# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: datasets and how they are distributed, metrics, losses, options."""

import unittest

import numpy as np

import libdist
import libdist.tf as tf

Dataset = tf.data.Dataset


def replica_id():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def listed(dataset):
    return [np.asarray(element).tolist() for element in dataset]


class Datasets(unittest.TestCase):
    def test_transformations(self):
        numbers = Dataset.range(6)
        for dataset, expected in (
            (numbers.batch(4), [[0, 1, 2, 3], [4, 5]]),
            (numbers.batch(4, drop_remainder=True), [[0, 1, 2, 3]]),
            (numbers.batch(4).unbatch(), [0, 1, 2, 3, 4, 5]),
            (numbers.map(lambda x: x * 2).filter(lambda x: x > 4), [6, 8, 10]),
            (numbers.take(2).repeat(2), [0, 1, 0, 1]),
            (numbers.repeat().skip(4).take(4), [4, 5, 0, 1]),
            (numbers.shard(3, 1), [1, 4]),
            (numbers.take(1).concatenate(Dataset.range(3, 9, 3)), [0, 3, 6]),
            (numbers.skip(4).enumerate().map(lambda i, x: i * 10 + x), [4, 15]),
            (Dataset.zip((numbers, numbers.skip(1))).map(lambda a, b: a * b).cache().prefetch(1), [0, 2, 6, 12, 20]),
            (numbers.take(2).flat_map(lambda x: Dataset.range(int(x) + 1)), [0, 0, 1]),
            (Dataset.from_tensors([1.0, 2.0]), [[1.0, 2.0]]),
            (Dataset.from_generator(lambda: (i * i for i in range(3))), [0, 1, 4]),
        ):
            for _ in range(2):  # each pass is a new one
                self.assertEqual(listed(dataset), expected)
        self.assertEqual(int(numbers.reduce(np.int64(0), lambda total, x: total + x)), 15)

    def test_structures(self):
        rows = list(Dataset.from_tensor_slices(({"x": np.arange(4.0)}, [1, 2, 3, 4])).batch(2))
        self.assertEqual((rows[1][0]["x"].tolist(), rows[1][1].tolist(), rows[1][1].dtype), ([2, 3], [3, 4], np.int32))
        with self.assertRaises(ValueError):
            Dataset.from_tensor_slices((np.ones(2), np.ones(3)))
        with self.assertRaises(ValueError):
            Dataset.range(2).batch(0)
        with self.assertRaises(ValueError):
            Dataset.range(2).shard(2, 2)

    def test_shuffle(self):
        shuffled = Dataset.range(20).shuffle(20, seed=7)
        first, second = listed(shuffled), listed(shuffled)
        self.assertEqual(sorted(first), list(range(20)))
        self.assertNotEqual(first, second)
        self.assertEqual(first, listed(Dataset.range(20).shuffle(20, seed=7)))
        same = Dataset.range(20).shuffle(5, seed=7, reshuffle_each_iteration=False)
        self.assertEqual(listed(same), listed(same))


class Distributed(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(self.strategy.close)

    def parts(self, dataset):
        return [tuple(np.asarray(part).tolist() for part in batch.values) for batch in dataset]

    def test_partial_batches(self):
        distributed = self.strategy.experimental_distribute_dataset(Dataset.range(10).batch(8))
        expected = [([0, 1, 2, 3], [4, 5, 6, 7]), ([8], [9])]
        self.assertEqual(self.parts(distributed), expected)
        self.assertEqual(self.parts(distributed), expected)
        dropped = self.strategy.experimental_distribute_dataset(Dataset.range(10).batch(8, drop_remainder=True))
        self.assertEqual(self.parts(dropped), expected[:1])
        few = self.strategy.experimental_distribute_dataset(Dataset.range(1).batch(4))
        self.assertEqual(self.parts(few), [([0], [])])

    def test_structures_reach_the_replicas(self):
        dataset = Dataset.from_tensor_slices((np.ones((4, 3), np.float32), {"label": [0, 1, 2, 3]})).batch(4)

        def step(batch):
            features, labels = batch
            return features.sum() + labels["label"][0]

        [batch] = self.strategy.experimental_distribute_dataset(dataset)
        self.assertEqual([float(x) for x in self.strategy.run(step, args=(batch,)).values], [6, 8])
        [batch] = self.strategy.experimental_distribute_dataset(dataset)
        self.assertIsInstance(batch[1]["label"], tf.distribute.PerReplica)

    def test_iterators(self):
        distributed = self.strategy.experimental_distribute_dataset(Dataset.range(2).batch(2))
        self.assertIsInstance(distributed, tf.distribute.DistributedDataset)
        iterator = iter(distributed)
        self.assertIsInstance(iterator, tf.distribute.DistributedIterator)
        self.assertEqual([int(x[0]) for x in iterator.get_next().values], [0, 1])
        with self.assertRaises(libdist.OutOfRange):
            iterator.get_next()
        end = iterator.get_next_as_optional()
        self.assertFalse(end.has_value())
        with self.assertRaises(ValueError):
            end.get_value()
        self.assertTrue(iter(distributed).get_next_as_optional().get_value().values[1][0] == 1)
        self.assertEqual(list(iterator), [])
        self.assertEqual(list(distributed.element_spec.values), [tf.TensorSpec([None], tf.int64)] * 2)
        total = distributed.reduce(0, lambda state, batch: state + self.strategy.reduce("SUM", batch, axis=0))
        self.assertEqual(int(total), 1)

    def test_from_function(self):
        seen = []

        def dataset_fn(context):
            seen.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
            return Dataset.range(5).batch(context.get_per_replica_batch_size(4))

        distributed = self.strategy.distribute_datasets_from_function(dataset_fn)
        self.assertEqual(self.parts(distributed), [([0, 1], [2, 3]), ([4], [])])
        self.assertEqual(seen, [(1, 0, 2)])
        options = tf.distribute.InputOptions(
            experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
            experimental_fetch_to_device=False,
            experimental_per_replica_buffer_size=0,
        )
        distributed = self.strategy.distribute_datasets_from_function(dataset_fn, options)
        self.assertEqual(self.parts(distributed), [([0, 1], [0, 1]), ([2, 3], [2, 3]), ([4], [4])])
        with self.assertRaises(NotImplementedError):
            self.strategy.experimental_distribute_dataset(Dataset.range(2).batch(2), options)
        per_replica = tf.distribute.InputReplicationMode.PER_REPLICA
        for mode, fetch, fits in (("PER_WORKER", False, False), (per_replica, None, False), (per_replica, True, False), (per_replica, False, True)):
            options = tf.distribute.InputOptions(
                experimental_replication_mode=tf.distribute.InputReplicationMode(mode),
                experimental_fetch_to_device=fetch,
                experimental_place_dataset_on_device=True,
            )
            with self.subTest(mode=mode, fetch=fetch):
                if fits:
                    distributed = self.strategy.distribute_datasets_from_function(dataset_fn, options)
                    self.assertEqual(self.parts(distributed), [([0, 1], [0, 1]), ([2, 3], [2, 3]), ([4], [4])])
                else:
                    with self.assertRaises(ValueError):
                        self.strategy.distribute_datasets_from_function(dataset_fn, options)
        with self.assertRaisesRegex(ValueError, "divisible|multiple"):
            tf.distribute.InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(3)

    def test_a_last_step_that_lacks_a_batch(self):
        def dataset_fn(context):
            return Dataset.from_tensor_slices(np.arange(20.0).reshape(20, 1)).batch(4, drop_remainder=True)

        distributed = self.strategy.distribute_datasets_from_function(dataset_fn)
        # As in TensorFlow: with shapes that are all equal, next() omits the fifth batch, and the others deliver it.
        self.assertEqual(len(list(distributed)), 2)
        iterator, shapes, total = iter(distributed), [], 0.0
        while (batch := iterator.get_next_as_optional()).has_value():
            shapes.append([part.shape for part in batch.get_value().values])
            total += float(
                self.strategy.reduce("SUM", self.strategy.run(tf.reduce_sum, (batch.get_value(),)), axis=None)
            )
        self.assertEqual(shapes, [[(4, 1), (4, 1)]] * 2 + [[(4, 1), (0, 1)]])
        self.assertEqual(total, 190.0)
        reduced = distributed.reduce(0.0, lambda state, batch: state + self.strategy.reduce("SUM", batch, axis=[0, 1]))
        self.assertEqual(float(reduced), 190.0)

    def test_errors_of_the_program(self):
        def broken():
            yield np.ones(2)
            raise LookupError("own")

        with self.assertRaisesRegex(LookupError, "own"):
            list(self.strategy.experimental_distribute_dataset(Dataset.from_generator(broken)))
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            self.strategy.distribute_datasets_from_function(lambda context: 1 / 0)
        with self.assertRaises(TypeError):
            self.strategy.distribute_datasets_from_function(lambda context: [1])
        with self.assertRaises(TypeError):
            self.strategy.experimental_distribute_dataset([1])

    def test_options_travel(self):
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        dataset = Dataset.range(4).with_options(options).batch(4)
        self.assertIs(dataset.options(), options)
        self.assertEqual(self.parts(self.strategy.experimental_distribute_dataset(dataset)), [([0, 1], [2, 3])])


class MetricsAndLosses(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(self.strategy.close)

    def test_metrics(self):
        with self.strategy.scope():
            total, mean = tf.metrics.Sum(), tf.keras.metrics.Mean(name="loss")
            exact, classes = tf.metrics.Accuracy(), tf.metrics.SparseCategoricalAccuracy()
        self.assertEqual([m.name for m in (total, mean, exact, classes)][1:3], ["loss", "accuracy"])
        self.assertEqual(classes.name, "sparse_categorical_accuracy")

        def step():
            total.update_state([1.0, 2.0])
            mean.update_state(tf.constant(1.0) + replica_id(), sample_weight=3.0 - 2 * replica_id())
            exact.update_state([1, 2], [1, replica_id()])
            classes([0, 1], [[0.9, 0.1], [0.8, 0.2]])

        self.strategy.run(step)
        results = [float(m.result()) for m in (total, mean, exact, classes)]
        self.assertEqual(results, [6.0, 1.25, 0.5, 0.5])
        self.assertEqual(mean.result().dtype, np.float32)
        mean.reset_state()
        self.assertEqual(mean.result(), 0)
        with self.assertRaises(RuntimeError), self.strategy.scope():
            mean.update_state(1.0)

    def test_a_metric_without_a_strategy(self):
        mean = tf.metrics.Mean()
        mean.update_state([1.0, 2.0])
        self.assertEqual(mean.result(), 1.5)

    def test_losses(self):
        loss = np.float32([1, 2, 3])
        shares = self.strategy.run(lambda: tf.nn.compute_average_loss(loss, global_batch_size=12))
        self.assertEqual([float(x) for x in shares.values], [0.5, 0.5])
        shares = self.strategy.run(lambda: tf.nn.compute_average_loss([1.0, 2.0], sample_weight=[0.0, 4.0]))
        self.assertEqual([float(x) for x in shares.values], [2, 2])
        shares = self.strategy.run(lambda: tf.nn.scale_regularization_loss(tf.constant([2.0, 4.0])))
        self.assertEqual([float(x) for x in shares.values], [3, 3])
        with self.strategy.scope():
            for call in (tf.nn.compute_average_loss, tf.nn.scale_regularization_loss):
                with self.assertRaises(RuntimeError):
                    call(loss)


class Options(unittest.TestCase):
    def test_communication(self):
        with self.assertLogs("libdist.tf", "WARNING") as logged:
            options = tf.distribute.experimental.CommunicationOptions(1, 2.5, "ring")
        self.assertIn("CommunicationImplementation.RING has no effect", logged.output[0])
        implementation = tf.distribute.experimental.CommunicationImplementation
        self.assertEqual(options.implementation, implementation.RING)
        self.assertEqual(
            repr(options),
            "Options(bytes_per_pack=1,timeout_seconds=2.5, implementation=CommunicationImplementation.RING)",
        )
        self.assertEqual(tf.distribute.experimental.CollectiveHints(4).bytes_per_pack, 4)
        with self.assertRaises(ValueError):
            tf.distribute.experimental.CommunicationOptions(bytes_per_pack=-1)
        with self.assertRaises(ValueError):
            tf.distribute.experimental.CommunicationOptions(implementation="gloo")

    def test_numbers_of_enums(self):
        policies = tf.data.experimental.AutoShardPolicy
        self.assertEqual({one.name: one.value for one in policies}, {"OFF": -1, "AUTO": 0, "FILE": 1, "DATA": 2, "HINT": 3})
        for names, enum in (
            (["AUTO", "NONE", "ON_WRITE", "ON_READ"], tf.VariableSynchronization),
            (["NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"], tf.VariableAggregation),
            (["AUTO", "RING", "MESH"], tf.tpu.experimental.DeviceOrderMode),
        ):
            self.assertEqual([enum[name].value for name in names], list(range(len(names))))

    def test_enums(self):
        op = tf.distribute.ReduceOp
        self.assertIs(op.from_variable_aggregation(tf.VariableAggregation.MEAN), op.MEAN)
        for aggregation in (tf.VariableAggregation.NONE, tf.VariableAggregation.ONLY_FIRST_REPLICA):
            with self.assertRaises(ValueError):
                op.from_variable_aggregation(aggregation)

    def test_run_options(self):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        options = tf.distribute.RunOptions(experimental_bucketizing_dynamic_shape=True)
        self.assertEqual(strategy.run(replica_id, options=options).values, (0, 1))

    def test_tensors(self):
        self.assertEqual(tf.constant([1, 2]).dtype, np.int32)
        self.assertEqual(tf.constant(2**40).dtype, np.int64)
        self.assertEqual(tf.constant(1.0).dtype, np.float32)
        self.assertEqual(tf.constant(1, tf.float64, shape=[2]).tolist(), [1, 1])
        self.assertEqual(tf.convert_to_tensor(np.float64(1)).dtype, np.float64)
        with self.assertRaises(ValueError):
            tf.convert_to_tensor(np.ones(1), tf.int32)
        self.assertEqual(float(tf.reduce_mean([1.0, 2.0])), 1.5)

        @tf.function(jit_compile=True)
        def decorated(x):
            return x

        self.assertEqual(decorated(3), 3)


if __name__ == "__main__":
    unittest.main()
