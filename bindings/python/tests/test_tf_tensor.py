# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: tensors, mirrored values, composites and nests, as TensorFlow 2.21 has them."""

import collections
import unittest

import numpy as np

import libdist
import libdist.tf as tf

Point = collections.namedtuple("Point", "x y")


def replica_id():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


class WithStrategy(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(self.strategy.close)

    def context(self):
        return tf.distribute.get_replica_context()


class Tensors(WithStrategy):
    def test_printing(self):
        for tensor, shown, printed in (
            (
                tf.constant(1.0),
                "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>",
                "tf.Tensor(1.0, shape=(), dtype=float32)",
            ),
            (
                tf.constant([1.0, 2.0]),
                "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>",
                "tf.Tensor([1. 2.], shape=(2,), dtype=float32)",
            ),
            (
                tf.zeros([2, 1]),
                "<tf.Tensor: shape=(2, 1), dtype=float32, numpy=\narray([[0.],\n       [0.]], dtype=float32)>",
                "tf.Tensor(\n[[0.]\n [0.]], shape=(2, 1), dtype=float32)",
            ),
        ):
            self.assertEqual((repr(tensor), str(tensor)), (shown, printed))
        self.assertEqual(f"{tf.constant(1.5):.2f}", "1.50")
        per_replica = self.strategy.run(lambda: tf.identity(1.0))
        self.assertEqual(
            repr(per_replica),
            "PerReplica:{\n  0: <tf.Tensor: shape=(), dtype=float32, numpy=1.0>,\n"
            "  1: <tf.Tensor: shape=(), dtype=float32, numpy=1.0>\n}",
        )
        self.assertEqual(
            str(per_replica),
            "PerReplica:{\n  0: tf.Tensor(1.0, shape=(), dtype=float32),\n  1: tf.Tensor(1.0, shape=(), dtype=float32)\n}",
        )

    def test_replica_ids(self):
        """As on the pages of ReplicaContext and DistributedValues."""

        def func():
            replica_context = tf.distribute.get_replica_context()
            return replica_context.replica_id_in_sync_group

        ids = self.strategy.run(func)
        shown = "".join(f"  {i}: <tf.Tensor: shape=(), dtype=int32, numpy={i}>,\n" for i in range(2))
        for result in (ids, self.strategy.run(tf.function(func))):
            self.assertEqual(repr(result), f"PerReplica:{{\n{shown[:-2]}\n}}")
        one = ids.values[1]
        self.assertEqual((one.numpy(), [7, 8][one], {1: 5}[one], f"{one}", str(one)), (1, 8, 5, "1", "1"))
        self.assertEqual(tf.identity(one).dtype, np.int32)
        self.assertEqual(self.strategy.reduce("SUM", ids, axis=None).dtype, np.int32)

    def test_pages_of_distributed_values(self):
        dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
        distributed_values = next(iter(self.strategy.experimental_distribute_dataset(dataset)))
        self.assertEqual(
            repr(distributed_values),
            "PerReplica:{\n"
            "  0: <tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>,\n"
            "  1: <tf.Tensor: shape=(1,), dtype=float32, numpy=array([6.], dtype=float32)>\n}",
        )
        updated_value = self.strategy.run(tf.function(lambda x: x + 1.0), args=(distributed_values,))
        self.assertEqual([x.numpy().tolist() for x in updated_value.values], [[6], [7]])
        reduced_value = self.strategy.reduce(tf.distribute.ReduceOp.SUM, distributed_values, axis=0)
        self.assertEqual(repr(reduced_value), "<tf.Tensor: shape=(), dtype=float32, numpy=11.0>")

    def test_every_result_has_numpy(self):
        strategy = self.strategy
        per_replica = strategy.run(lambda: self.context().all_reduce("SUM", tf.constant(2.0)))
        results = [
            strategy.reduce("SUM", per_replica, axis=None),
            strategy.gather(strategy.run(lambda: tf.identity([1.0])), axis=0),
            *strategy.experimental_local_results(per_replica),
            tf.constant(1.0) + 1,
            tf.constant([1.0, 2.0])[0],
            next(iter(tf.constant([1.0]))),
            np.add(tf.constant(1.0), 1),
            np.mean(tf.constant([1.0])),
            tf.Variable(1.0) * 2,
            tf.Variable([1.0])[0],
            tf.Variable(1.0).read_value(),
            next(iter(tf.data.Dataset.range(3))),
            tf.function(lambda: 3)(),
        ]
        for result in results:
            self.assertIsInstance(result, tf.Tensor)
            self.assertNotIsInstance(result.numpy(), tf.Tensor)
        self.assertIsInstance(tf.constant(1.0).numpy(), np.float32)
        self.assertIs(type(tf.constant([1.0]).numpy()), np.ndarray)

    def test_arithmetic(self):
        one = kept = tf.constant(1.0)
        one += 1
        self.assertEqual((float(one), float(kept)), (2, 1))  # tensors are not changed by operators
        for result in (one * 2, 2 - one, one / 3, one**2, np.sqrt(one), -one, abs(one), one * np.float32(3)):
            self.assertEqual(result.dtype, np.float32)
        self.assertTrue(one > 1 and one == 2)
        out = tf.zeros([2])
        self.assertIs(np.add(out, 1, out=out), out)
        self.assertEqual(out.numpy().tolist(), [1, 1])
        self.assertEqual((tf.zeros([2, 3]).shape.as_list(), tf.zeros([2, 3]).shape.rank), ([2, 3], 2))

    def test_mirrored_values(self):
        with self.strategy.scope():
            v = tf.Variable([1.0, 2.0])
        m = self.strategy.extended.reduce_to("SUM", self.strategy.run(lambda: tf.identity([1.0, 2.0])), v)
        self.assertIsInstance(m, tf.distribute.Mirrored)
        self.assertTrue(repr(m).startswith("Mirrored:{\n  0: <tf.Tensor: shape=(2,)"))
        for result in (m + 1, 1 + m, tf.constant(1.0) + m, m * 2 - 1, v + m + tf.constant([0.0, -1.0])):
            self.assertEqual(result.numpy().tolist()[0], 3)
        self.assertEqual((m.shape, m.dtype, m[1].numpy(), (-m).numpy().tolist()), ((2,), np.float32, 4, [-2, -4]))
        self.assertEqual((len(m), float(m[0]), [float(x) for x in m]), (2, 2, [2, 4]))
        self.assertEqual(tf.reduce_sum(m), 6)
        self.assertIsInstance(hash(m), int)


class Composites(WithStrategy):
    def setUp(self):
        super().setUp()
        self.ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
        self.sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
        self.slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([0]), tf.constant([3, 2]))

    def test_what_they_are(self):
        self.assertEqual(repr(self.ragged), "<tf.RaggedTensor [[1.0, 2.0], [3.0]]>")
        self.assertEqual((self.ragged.shape, self.ragged.dtype, self.ragged.nrows()), ((2, None), np.float32, 2))
        self.assertEqual(self.ragged.row_lengths().numpy().tolist(), [2, 1])
        self.assertEqual(self.ragged.to_tensor().numpy().tolist(), [[1, 2], [3, 0]])
        self.assertEqual(self.ragged[1].numpy().tolist(), [3])
        self.assertEqual(self.ragged[:1].to_list(), [[1, 2]])
        self.assertEqual([row.tolist() for row in self.ragged.numpy()], [[1, 2], [3]])
        deep = tf.ragged.constant([[[1], []], [[2, 3]]])
        self.assertEqual((deep.to_list(), deep.shape), ([[[1], []], [[2, 3]]], (2, None, None)))
        self.assertEqual((self.sparse.shape, self.sparse.dtype), ((2, 2), np.float32))
        self.assertEqual(tf.sparse.to_dense(self.sparse).numpy().tolist(), [[0, 5], [0, 0]])
        self.assertEqual(tf.sparse.from_dense([[0, 7]]).values.numpy().tolist(), [7])
        self.assertEqual(tf.convert_to_tensor(self.slices).numpy().tolist(), [[1, 2], [0, 0], [0, 0]])
        for thing in (self.ragged, self.sparse):
            for call in (tf.convert_to_tensor, tf.Variable, np.asarray):
                with self.assertRaises(ValueError):
                    call(thing)

    def test_they_travel(self):
        for thing in (self.ragged, self.sparse, self.slices):
            with self.subTest(type(thing)):
                self.assertIs(self.strategy.run(lambda given: given, (thing,)), thing)
                copies = self.strategy.run(tf.identity, (thing,)).values
                self.assertEqual([repr(copy) for copy in copies], [repr(thing)] * 2)
                self.assertIsNot(copies[0], copies[1])
                self.assertEqual(repr(self.strategy.extended.broadcast_to(thing, None).values[1]), repr(thing))
                self.assertEqual(len(list(tf.data.Dataset.from_tensors(thing))), 1)

    def test_datasets_are_cut_by_rows(self):
        for thing, rows in ((self.ragged, [[[1, 2]], [[3]]]), (self.sparse, [[[0, 5]], [[0, 0]]])):
            dataset = tf.data.Dataset.from_tensor_slices(thing).batch(2)
            (batch,) = list(self.strategy.experimental_distribute_dataset(dataset))
            parts = batch.values
            read = [part.to_list() if thing is self.ragged else tf.sparse.to_dense(part).tolist() for part in parts]
            self.assertEqual(read, rows)
        with self.assertRaises(NotImplementedError):
            tf.data.Dataset.from_tensor_slices(self.slices)

    def test_gather(self):
        with self.assertRaises(NotImplementedError):
            self.strategy.gather(self.slices, 0)
        with self.strategy.scope():
            mirrored = tf.Variable([1.0, 2.0])
            on_read = tf.Variable(
                [1.0, 2.0], synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
            )
        total = self.strategy.extended.reduce_to("MEAN", self.strategy.run(lambda: tf.identity([1.0, 2.0])), mirrored)
        for value in (mirrored, on_read, total):
            self.assertEqual(self.strategy.gather(value, 0).numpy().tolist(), [1, 2, 1, 2])
        self.assertEqual(self.strategy.gather(tf.constant([1.0]), 0).numpy().tolist(), [1])
        one = tf.distribute.OneDeviceStrategy("CPU:0")
        with one.scope():
            v = tf.Variable([1.0])
        self.assertIs(one.gather(v, 0), v)
        with self.assertRaises(NotImplementedError):
            one.gather(self.slices, 0)


class Nests(WithStrategy):
    def test_keys_that_are_no_texts_and_names(self):
        def fn(given, point):
            return {key: tf.identity(item) + replica_id() for key, item in given.items()}, Point(point.y, point.x)

        given, point = self.strategy.run(fn, ({2: 1.0, (3, "a"): 2.0}, Point(1, "text")))
        self.assertEqual(
            {key: [float(x) for x in item.values] for key, item in given.items()}, {2: [1, 2], (3, "a"): [2, 3]}
        )
        self.assertEqual(point, Point("text", 1))
        with self.assertRaisesRegex(ValueError, 'has the key "0", but replica 1 does not'):
            self.strategy.run(lambda: {replica_id(): 1.0})

    def test_in_collectives_and_merge_calls(self):
        def fn():
            total = self.context().all_reduce("SUM", {1: tf.constant(1.0), 2: Point(tf.constant(2.0), [3.0])})
            merged = self.context().merge_call(lambda strategy, nest: nest, ({5: replica_id()},))
            return [float(total[1]), float(total[2].x), float(total[2].y[0])], merged[5]

        self.assertEqual(self.strategy.experimental_local_results(self.strategy.run(fn)[0][1]), (4.0, 4.0))
        per_replica = self.strategy.run(lambda: {7: tf.identity(1.0)})
        self.assertEqual(
            {key: float(x) for key, x in self.strategy.reduce("SUM", per_replica, axis=None).items()}, {7: 2}
        )

    def test_in_datasets(self):
        dataset = tf.data.Dataset.range(4).map(lambda i: {1: i, 2: Point(i, -i)}).batch(4)
        (batch,) = list(self.strategy.experimental_distribute_dataset(dataset))
        self.assertEqual(batch[2].y.values[1].numpy().tolist(), [-2, -3])
        self.assertEqual(set(batch), {1, 2})


class Data(WithStrategy):
    def test_generators(self):
        make = tf.data.Dataset.from_generator
        self.assertEqual([x.dtype for x in make(lambda: iter([1, 2]), tf.uint8)], [np.uint8] * 2)
        self.assertEqual([float(x) for x in make(lambda n: iter(range(n)), tf.float32, None, (2,))], [0, 1])
        ((one, two),) = list(make(lambda: iter([(1, 2.0)]), (tf.int64, tf.float64), ((), ())))
        self.assertEqual((one.dtype, two.dtype), (np.int64, np.float64))
        signature = tf.TensorSpec(shape=(), dtype=tf.int32)
        self.assertEqual([int(x) for x in make(lambda: iter([4]), output_signature=signature)], [4])
        self.assertEqual(list(make(lambda: iter([{"a": 1}]), {"a": tf.uint8}))[0]["a"].dtype, np.uint8)
        with self.assertRaisesRegex(TypeError, "shape"):
            list(make(lambda: iter([[1, 2]]), tf.int64, [3]))
        with self.assertRaises(TypeError):
            make(lambda: iter([]), tf.int64, output_signature=signature)

    def test_specs(self):
        batches = tf.data.Dataset.range(4).batch(2)
        self.assertEqual(batches.element_spec, tf.TensorSpec([None], tf.int64))
        self.assertEqual(repr(batches.element_spec), "TensorSpec(shape=(None,), dtype=tf.int64, name=None)")
        optional = iter(self.strategy.experimental_distribute_dataset(batches)).get_next_as_optional()
        self.assertEqual(optional.element_spec.values, (tf.TensorSpec([None], tf.int64),) * 2)

    def test_batches_are_taken_outside(self):
        one = tf.distribute.OneDeviceStrategy("CPU:0")
        for strategy in (self.strategy, one):
            dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
            iterator = iter(dataset)
            for take in (iterator.__next__, iterator.get_next, iterator.get_next_as_optional, lambda: list(dataset)):  # noqa: B023
                with self.assertRaisesRegex(ValueError, "outside of replica_fn"):
                    strategy.run(take)
        default = tf.distribute.get_strategy()
        iterator = iter(default.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4)))
        self.assertEqual(default.run(lambda: next(iterator)).numpy().tolist(), [0, 1, 2, 3])


class Native(unittest.TestCase):
    def test_operators_by_name(self):
        with libdist.Strategy(2) as strategy:
            value = strategy.per_replica([1.0, 2.0])
            self.assertEqual(float(strategy.reduce("SUM", value)), 3)
            self.assertEqual(float(strategy.reduce("mean", value)), 1.5)
            self.assertEqual(strategy.run(lambda replica: float(replica.all_reduce("MAX", np.ones(())))), [1, 1])
            with self.assertRaisesRegex(ValueError, "op is 'ADD', but must be a libdist.ReduceOp or one of the names SUM"):
                strategy.reduce("ADD", value)
            self.assertEqual(repr(strategy), "<libdist.Strategy MIRRORED of 2 replicas>")
        self.assertEqual(repr(strategy), "<libdist.Strategy, closed>")

    def test_hints_are_in_pythons_names(self):
        with libdist.Strategy(2) as strategy:

            def late(replica):
                if replica.id == 0:
                    replica.barrier(timeout=0.01)

            with self.assertRaises(libdist.DistError) as raised:
                strategy.run(late)
            error = raised.exception
            self.assertNotRegex(error.message + error.hint, r"timeout_ns|dist_\w|DIST_|NULL")
            for call in (
                lambda: libdist.Strategy(2, kind=77),
                lambda: libdist.Strategy(2, threads=99),
                lambda: strategy.reduce(libdist.ReduceOp.MAX, strategy.per_replica([1.0, 2.0])),
                lambda: strategy.variable(np.ones(2), aggregation=9),
                lambda: strategy.run(lambda replica: replica.split_to_logical_devices(np.ones(2), [2])),
                lambda: strategy.run(lambda replica: strategy.reduce("SUM", 1.0)),
                lambda: strategy.run(lambda replica: strategy.close()),
            ):
                with self.assertRaises(libdist.DistError) as raised:
                    call()
                self.assertNotRegex(str(raised.exception), r"timeout_ns|\bdist_\w|\bDIST_\w|\bNULL\b")


if __name__ == "__main__":
    unittest.main()
