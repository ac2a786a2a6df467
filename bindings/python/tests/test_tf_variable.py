# SPDX-License-Identifier: Apache-2.0
"""libdist.tf.Variable: where it is made, how it is read and assigned, arithmetic with it, its copies."""

import copy
import gc
import os
import tempfile
import unittest

import numpy as np

import libdist
import libdist.tf as tf

SUM = tf.VariableAggregation.SUM
MEAN = tf.VariableAggregation.MEAN
ON_READ = tf.VariableSynchronization.ON_READ


def replica_id():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


class Variables(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
        self.addCleanup(self.strategy.close)

    def variable(self, *args, **kwargs):
        with self.strategy.scope():
            return tf.Variable(*args, **kwargs)

    def test_what_it_is(self):
        v = self.variable([1.0, 2.0], name="w", aggregation=SUM)
        self.assertEqual((v.name, v.dtype, v.shape, v.trainable), ("w:0", np.float32, (2,), True))
        self.assertEqual((v.synchronization, v.aggregation), (tf.VariableSynchronization.ON_WRITE, SUM))
        self.assertIs(v.distribute_strategy, self.strategy)
        self.assertEqual([copy.name for copy in v.values], ["w:0", "w/replica_1:0", "w/replica_2:0"])
        self.assertEqual([copy.device for copy in v.values], list(self.strategy.extended.worker_devices))
        self.assertEqual(self.variable(1).dtype, np.int32)
        self.assertEqual(self.variable(np.ones(1)).dtype, np.float64)
        self.assertEqual(self.variable(lambda: tf.zeros([2]), dtype=tf.float16).dtype, np.float16)
        self.assertFalse(self.variable(1.0, synchronization=ON_READ, aggregation=SUM).trainable)
        self.assertTrue(self.strategy.extended.variable_created_in_scope(v))
        self.assertTrue(self.strategy.extended.variable_created_in_scope(v.values[1]))
        self.assertIs(self.strategy.extended.value_container(v.values[1]), v)
        self.assertFalse(self.strategy.extended.variable_created_in_scope(tf.Variable(1.0)))

    def test_bad_arguments(self):
        for kwargs in (
            {"initial_value": None},
            {"initial_value": 1.0, "aggregation": "SUM"},
            {"initial_value": 1.0, "synchronization": 2},
            {"initial_value": 1.0, "synchronization": tf.VariableSynchronization.NONE},
            {"initial_value": 1, "aggregation": MEAN},
            {"initial_value": object()},
        ):
            with self.subTest(str(kwargs)), self.assertRaises(ValueError):
                self.variable(**kwargs)
        v = self.variable([1.0, 2.0])
        with self.assertRaisesRegex(RuntimeError, r"copy.deepcopy\(\) of a tf.Variable: .* inside a replica function"):
            self.strategy.run(lambda: copy.deepcopy(v))
        with self.assertRaises(ValueError):
            v.assign([1.0, 2.0, 3.0])
        with self.assertRaises(TypeError):
            v.scatter_add([1.0])
        with self.assertRaises(TypeError):
            self.strategy.extended.update(np.ones(2), lambda v: None)
        with self.assertRaises(ZeroDivisionError):
            self.variable(lambda: 1 / 0)
        np.testing.assert_array_equal(v, [1, 2])

    def test_arithmetic_outside_and_inside(self):
        v = self.variable(3.0)
        for result in (v * 2, 2 * v, v + v, 18 / v, np.add(v, 3), 3.0 + v, 9 - v, v * v - v, np.float32(9) - v):
            self.assertEqual((float(result), np.asarray(result).dtype), (6.0, np.float32))
        self.assertTrue(v == 3 and v < 4 and v)
        w = v
        w += 1
        self.assertIsInstance(w, (np.ndarray, np.generic))
        self.assertEqual((float(w), float(v)), (4, 3))
        m = self.variable(tf.ones([2, 3]))
        np.testing.assert_array_equal(tf.ones([1, 2]) @ m, [[2, 2, 2]])
        self.assertEqual((len(m), m[0].tolist()), (2, [1, 1, 1]))
        result = self.strategy.run(lambda: v * 2 + replica_id())
        self.assertEqual([float(x) for x in result.values], [6, 7, 8])

    def test_assign_inside(self):
        for aggregation, expected in (("NONE", [1, 2, 3]), ("SUM", [6, 6, 6]), ("MEAN", [2, 2, 2])):
            v = self.variable(0.0, aggregation=tf.VariableAggregation[aggregation])
            result = self.strategy.run(lambda: v.assign_add(tf.constant(1.0) + replica_id()))  # noqa: B023
            self.assertEqual([float(copy) for copy in v.values], expected)
            self.assertEqual([float(copy) for copy in result.values], expected)
        v = self.variable(0.0, aggregation=SUM)
        with self.assertRaises(ValueError):  # the same number on all replicas: no sum, as in TensorFlow
            self.strategy.run(lambda: v.assign_add(1.0))
        self.strategy.run(lambda: v.assign_sub(float(replica_id() + 1.5)))
        self.assertEqual(float(v), -7.5)

    def test_assign_outside(self):
        v = self.variable(0.0, aggregation=SUM)
        self.assertIs(v.assign(2.5), v)
        with self.strategy.scope():
            v.assign_add(1)
            v.assign_sub(np.float64(0.5))
        self.assertEqual([float(copy) for copy in v.values], [3, 3, 3])
        own = self.strategy.experimental_distribute_values_from_function(lambda c: float(c.replica_id_in_sync_group))
        v.assign(own)
        self.assertEqual([float(copy) for copy in v.values], [0, 1, 2])

    def test_on_read(self):
        v = self.variable(0.0, synchronization=ON_READ, aggregation=SUM)

        def fn():
            for _ in range(replica_id() + 1):  # as often as it likes: nobody waits
                v.assign_add(1.0)
            return v.read_value()

        self.assertEqual([float(x) for x in self.strategy.run(fn).values], [1, 2, 3])
        self.assertEqual(float(v), 6)
        with self.strategy.scope():
            self.assertEqual(v * 2, 12)

    def test_made_inside_replicas(self):
        made = []

        def fn():
            v = tf.Variable(tf.constant(1.0) + replica_id(), aggregation=SUM, name="inside")
            made.append(v)
            v.assign_add(tf.constant(1.0))
            return v

        v = self.strategy.run(fn)
        self.assertTrue(all(one is v for one in made) and len(made) == 3)
        self.assertEqual([float(copy) for copy in v.values], [4, 4, 4])

    def test_made_where_there_is_one_replica(self):
        one = tf.distribute.OneDeviceStrategy("CPU:0")
        self.assertIs(one.run(lambda: tf.Variable(1.0)).distribute_strategy, one)
        self.assertEqual(tf.distribute.get_strategy().run(lambda: tf.Variable(1.0) + 1), 2)

    def test_outside_of_scopes(self):
        plain = tf.Variable([1.0, 2.0])
        self.assertEqual(len(plain.values), 1)
        plain.assign_add([1.0, 1.0])
        plain.scatter_sub(tf.IndexedSlices([[2.0][0]], [0]))
        np.testing.assert_array_equal(plain, [0, 3])
        result = self.strategy.run(lambda: plain * replica_id())
        np.testing.assert_array_equal(result.values[2], [0, 6])
        with self.strategy.scope():
            np.testing.assert_array_equal(plain.assign([5.0, 5.0]), [5, 5])
        with self.assertRaises(ValueError):
            plain.assign([1.0])
        with self.assertRaises(ValueError):
            plain.scatter_add(tf.IndexedSlices([1.0], [2]))

    def test_scatter(self):
        v = self.variable(tf.zeros([3]), aggregation=SUM)
        self.strategy.run(lambda: v.scatter_add(tf.IndexedSlices([1.0], [replica_id()])))
        np.testing.assert_array_equal(v, [1, 1, 1])
        v.scatter_mul(tf.IndexedSlices([4.0, 2.0], [1, 1]))
        np.testing.assert_array_equal(v, [1, 8, 1])
        with self.assertRaises(NotImplementedError):
            v.scatter_update(tf.IndexedSlices([4.0], [0]))

    def test_update(self):
        v = self.variable(1.0)
        order = []

        def fn(copy, value, *, factor):
            order.append(copy.name)
            copy.assign_add(value * factor)
            return copy.read_value()

        own = self.strategy.run(lambda: tf.constant(1.0) * replica_id())
        result = self.strategy.extended.update(v, fn, (own,), {"factor": 2})
        self.assertEqual([float(x) for x in result.values], [1, 3, 5])
        self.assertEqual([float(copy) for copy in v.values], [1, 3, 5])
        self.assertEqual(len(order), 3)
        ungrouped = self.strategy.extended.update(v, lambda copy: copy.name, group=False)
        self.assertEqual(ungrouped, tuple(copy.name for copy in v.values))

        def inside():
            return tf.distribute.get_strategy().extended.update(v, lambda copy, x: copy.assign(x), (tf.constant(9.0),))

        result = self.strategy.run(inside)
        self.assertEqual([float(x) for x in self.strategy.experimental_local_results(result)], [9, 9, 9])
        with self.assertRaisesRegex(KeyError, "own"):
            self.strategy.extended.update(v, lambda copy: {}["own"])

    def test_update_gets_the_variable(self):
        one = tf.distribute.OneDeviceStrategy("CPU:0")
        central = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
        for strategy in (tf.distribute.get_strategy(), one, central):
            with strategy.scope():
                v = tf.Variable(1.0)
            update = strategy.extended.update
            self.assertTrue(update(v, lambda given: given is v))  # noqa: B023
            self.assertEqual(float(update(v, lambda given, x: given.assign(x), (2.0,))), 2)
            result = strategy.run(lambda: update(v, lambda given, x: given.assign(x), (5.0,)))  # noqa: B023
            self.assertEqual((float(v), float(strategy.experimental_local_results(result)[0])), (5, 5))
            ungrouped = strategy.run(lambda: update(v, lambda given: [given.numpy()], group=False))  # noqa: B023
            self.assertEqual(ungrouped, [(5,)])
        v = self.variable(1.0)
        self.assertTrue(all(self.strategy.extended.update(v, lambda copy: isinstance(copy, tf.Variable), group=False)))

    def test_replicas_make_the_same_variable(self):
        for what, options in (
            ("name", lambda: {"name": f"v{replica_id()}"}),
            ("dtype", lambda: {"dtype": (tf.float32, tf.float64, tf.float32)[replica_id()]}),
            ("aggregation", lambda: {"aggregation": SUM if replica_id() == 2 else MEAN}),
            ("trainable", lambda: {"trainable": replica_id() == 0}),
        ):
            with self.subTest(what), self.assertRaisesRegex(RuntimeError, f"with mismatching {what} on replica [12]"):
                self.strategy.run(lambda: tf.Variable(1.0, **options()))  # noqa: B023
        with self.assertRaises(RuntimeError):
            self.strategy.run(lambda: tf.Variable(1.0) if replica_id() == 0 else None)

    def test_printing(self):
        self.assertEqual(
            repr(self.variable([1.0, 2.0], name="w")),
            "MirroredVariable:{\n"
            "  0: <tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>,\n"
            "  1: <tf.Variable 'w/replica_1:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>,\n"
            "  2: <tf.Variable 'w/replica_2:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>\n}",
        )
        on_read = self.variable(0.0, synchronization=ON_READ, aggregation=SUM)
        self.assertTrue(str(on_read).startswith("SyncOnReadVariable:{\n  0: <tf.Variable 'Variable:0' shape=() "))
        self.assertEqual(repr(tf.Variable(3)), "<tf.Variable 'Variable:0' shape=() dtype=int32, numpy=3>")

    def test_copies(self):
        for v in (self.variable([1.0, 2.0], name="w", aggregation=SUM), tf.Variable([1.0, 2.0], name="w")):
            v.values[-1].assign([5.0, 5.0])
            for twin in (copy.deepcopy(v), copy.copy(v), copy.deepcopy({"v": v})["v"]):
                self.assertEqual(repr(twin), repr(v))
                self.assertEqual((twin.aggregation, twin.trainable), (v.aggregation, v.trainable))
                twin.assign([7.0, 7.0])
                self.assertNotEqual(float(v.values[0][0]), 7)
        self.assertIs(copy.deepcopy(self.strategy), self.strategy)

    def test_every_argument(self):
        v = self.variable(
            lambda: [1.0, 2.0],
            True,
            True,
            "CPU:0",
            "w",
            None,
            tf.float64,
            import_scope="x",
            constraint=abs,
            shape=[None],
            synchronization=None,
            aggregation=None,
            experimental_enable_variable_lifting=False,
        )
        self.assertEqual((v.name, v.dtype, v.constraint, v.trainable), ("w:0", np.float64, abs, True))
        self.assertEqual((v.aggregation, v.get_shape().as_list()), (tf.VariableAggregation.NONE, [2]))
        self.assertEqual(float(self.variable(self.variable(2.0))), 2)
        for bad in ({"shape": [3]}, {"shape": [1, 2]}, {"constraint": 5}):
            with self.subTest(str(bad)), self.assertRaises(ValueError):
                self.variable([1.0, 2.0], **bad)

    def test_methods(self):
        for v in (self.variable([1.0, 2.0]), tf.Variable([1.0, 2.0])):
            self.assertIsNone(v.assign([3.0, 4.0], read_value=False))
            v[0].assign(9.0)
            v[1:].assign_add([1.0])
            v[1].assign_sub(2.0)
            self.assertEqual([x.numpy().tolist() for x in v.values], [[9, 3]] * len(v.values))
            self.assertEqual(v.sparse_read([1, 1]).numpy().tolist(), [3, 3])
            self.assertEqual(v.gather_nd([[0]]).numpy().tolist(), [9])
            self.assertTrue(v.is_initialized())
            self.assertIsNone(v.initializer)
            self.assertEqual(v.value().numpy().tolist(), [9, 3])
            v.load([1.0, 2.0])
            v.set_shape([2])
            with self.assertRaisesRegex(ValueError, "not compatible"):
                v.set_shape([3])
            with self.assertRaises(RuntimeError):
                v.initial_value  # noqa: B018
            with self.assertRaisesRegex(TypeError, r"Variable is unhashable. Instead, use variable.ref\(\)"):
                hash(v)
            reference = v.ref()
            self.assertEqual({v.ref(): 1}[reference], 1)
            self.assertIs(reference.deref(), v)
            self.assertNotEqual(reference, tf.Variable([1.0, 2.0]).ref())
            self.assertEqual([float(x) for x in v], [1, 2])
            self.assertIn(2.0, v)

    def test_another_strategy_reads_it_as_a_tensor(self):
        v = self.variable([1.0, 2.0])
        one, two = tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(two.close)
        for call in (lambda: v + 1, lambda: tf.constant(1.0) + v, lambda: tf.reduce_sum(v) - [1.0, 0.0]):
            for value in one.experimental_local_results(one.run(call)) + two.run(call).values:
                self.assertEqual(value.numpy().tolist(), [2, 3])
        with one.scope():
            self.assertEqual((v * 2).numpy().tolist(), [2, 4])
        self.assertEqual(one.run(lambda x: x[1], (v,)).numpy(), 2)
        for strategy in (one, two):
            for call in (v.read_value, lambda: v.assign([1.0, 1.0])):
                with self.assertRaises(RuntimeError):
                    strategy.run(call)

    def test_colocate(self):
        v = self.variable(1.0)
        with self.strategy.scope(), self.strategy.extended.colocate_vars_with(v):
            w = tf.Variable(2.0)
        self.assertEqual([copy.device for copy in w.values], [copy.device for copy in v.values])
        with self.assertRaises(RuntimeError), self.strategy.extended.colocate_vars_with(v):
            pass

    def test_central_storage(self):
        central = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
        with central.scope():
            v = tf.Variable(1.0, aggregation=SUM)
        result = central.run(lambda: v.assign_add(tf.constant(1.0) * (1 + replica_id())))
        self.assertEqual((len(v.values), float(v)), (1, 4))
        self.assertEqual([float(x) for x in central.experimental_local_results(result)], [4, 4])
        self.assertEqual(central.experimental_local_results(v), (v,))
        self.assertEqual(float(central.extended.update(v, lambda one: one.assign_sub(1.0))), 3)

    def test_checkpoint(self):
        v, w = self.variable([1.0, 2.0]), self.variable(0.0, synchronization=ON_READ, aggregation=SUM)
        self.strategy.run(lambda: w.assign_add(1.0))
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(v=v, w=w).save(os.path.join(folder, "ckpt"))
            other = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            with other.scope():
                restored = tf.Variable([0.0, 0.0])
                count = tf.Variable(0.0, synchronization=ON_READ, aggregation=SUM)
            tf.train.Checkpoint(v=restored, w=count).restore(path)
        np.testing.assert_array_equal(restored, [1, 2])
        self.assertEqual(float(count), 3)
        with self.assertRaises(ValueError):
            tf.train.Checkpoint(v=3)

    def test_many_replicas_and_collections(self):
        strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(64)])
        self.addCleanup(strategy.close)
        with strategy.scope():
            v = tf.Variable(tf.zeros([100]), aggregation=SUM)

        def fn(x):
            v.assign_add(np.full(100, x, np.float32))
            if replica_id() % 8 == 0:
                gc.collect()
            return v.read_value()

        for _ in range(5):
            strategy.run(fn, args=(1.5,))
        self.assertEqual(float(v[99]), 5 * 64 * 1.5)

    def test_kept_by_its_copies(self):
        copies = self.variable([7.0]).values
        gc.collect()
        np.testing.assert_array_equal(copies[1], [7])
        v = self.variable([8.0])
        self.assertIs(self.strategy.run(lambda given: given, args=(v,)), v)

    def test_use_after_close(self):
        v = self.variable(1.0)
        self.strategy.close()
        with self.assertRaises(libdist.FailedPrecondition):
            v.assign(2.0)


if __name__ == "__main__":
    unittest.main()
