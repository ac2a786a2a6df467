# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: strategies, contexts, runs; which objects come back; what raises."""

import threading
import unittest

import numpy as np

import libdist
import libdist.tf as tf


def replica_id():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


class Strategies(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(self.strategy.close)

    def local(self, value):
        return self.strategy.experimental_local_results(value)

    def test_contexts(self):
        outside = tf.distribute.get_replica_context()
        self.assertEqual(
            (outside.replica_id_in_sync_group, outside.num_replicas_in_sync, outside.devices), (0, 1, ("",))
        )
        self.assertFalse(tf.distribute.has_strategy())
        self.assertIs(tf.distribute.get_strategy(), tf.distribute.get_strategy())
        with self.strategy.scope() as entered:
            self.assertIs(entered, self.strategy)
            self.assertIs(tf.distribute.get_strategy(), self.strategy)
            self.assertTrue(tf.distribute.in_cross_replica_context())
            self.assertIsNone(tf.distribute.get_replica_context())
        tf.distribute.experimental_set_strategy(self.strategy)
        self.assertTrue(tf.distribute.in_cross_replica_context())
        tf.distribute.experimental_set_strategy(None)
        self.assertFalse(tf.distribute.has_strategy())

        def inside():
            context = tf.distribute.get_replica_context()
            same = context is tf.distribute.get_replica_context()
            return same, context.strategy is self.strategy, tf.distribute.in_cross_replica_context(), context.devices[0]

        same, known, cross, devices = self.strategy.run(inside)
        self.assertEqual((same, known, cross), (True, True, False))
        self.assertEqual(devices.values, self.strategy.extended.worker_devices)

    def test_a_scope_is_entered_again(self):
        scope = self.strategy.scope()
        for _ in range(2):
            with scope, scope:
                self.assertTrue(tf.distribute.has_strategy())
            self.assertFalse(tf.distribute.has_strategy())

    def test_the_very_objects(self):
        thing, array = object(), np.ones(3)
        seen = []

        def fn(given, nest, *, word):
            seen.append((given is thing, nest["a"][0] is array, word))
            return thing, array, None, "text", [given, 7], {"own": np.zeros(2)}

        result = self.strategy.run(fn, args=(thing, {"a": [array]}), kwargs={"word": "w"})
        self.assertEqual(seen, [(True, True, "w")] * 2)
        self.assertIs(result[0], thing)
        self.assertIs(result[1], array)
        self.assertEqual(result[2:4], (None, "text"))
        self.assertIs(result[4][0], thing)
        self.assertEqual(result[4][1], 7)
        own = result[5]["own"]
        self.assertIsInstance(own, tf.distribute.PerReplica)
        self.assertIsInstance(own, tf.distribute.DistributedValues)
        self.assertIsNot(own.values[0], own.values[1])

    def test_the_same_object_in_a_merge_call(self):
        thing = np.ones(1)

        def merge(strategy, shared, own, *, named):
            self.assertIs(strategy, self.strategy)
            self.assertIs(shared, thing)
            self.assertEqual(own.values, (0, 10))
            self.assertEqual(named, None)
            return shared, own

        def fn():
            return tf.distribute.get_replica_context().merge_call(merge, (thing, replica_id() * 10), {"named": None})

        shared, own = self.strategy.run(fn)
        self.assertIs(shared, thing)
        self.assertEqual(own.values, (0, 10))

    def test_per_replica_arguments(self):
        value = self.strategy.experimental_distribute_values_from_function(
            lambda context: [context.replica_id_in_sync_group]
        )
        self.assertEqual(value[0].values, (0, 1))
        doubled = self.strategy.run(lambda given: given[0] * 2, args=(value,))
        self.assertEqual(doubled.values, (0, 2))
        self.assertIn("PerReplica:{\n  0: 0,\n  1: 2\n}", repr(doubled))

    def test_reduce(self):
        value = self.strategy.run(lambda: tf.ones([2, 2]) * (replica_id() + 1))
        total = self.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)
        np.testing.assert_array_equal(total, [[3, 3], [3, 3]])
        self.assertEqual(total.dtype, np.float32)
        self.assertEqual(self.strategy.reduce("mean", value, axis=(0, 1)), 1.5)
        self.assertEqual(self.strategy.reduce("SUM", self.strategy.run(replica_id), axis=None), 1)
        everywhere = self.strategy.extended.reduce_to("SUM", value, self.strategy.extended.worker_devices[1])
        np.testing.assert_array_equal(everywhere, total)
        mirrored = self.strategy.extended.broadcast_to(tf.constant(2.0), None)
        self.assertIsInstance(mirrored, tf.distribute.Mirrored)
        self.assertEqual(float(mirrored.numpy()), 2)

    def test_indexed_slices_are_joined(self):
        def fn():
            return tf.IndexedSlices(tf.ones([1, 2]), [replica_id()], [4, 2])

        joined = self.strategy.reduce("SUM", self.strategy.run(fn), axis=None)
        np.testing.assert_array_equal(joined.indices, [0, 1])
        np.testing.assert_array_equal(joined.values, np.ones((2, 2)))

    def test_collectives_of_nests(self):
        def fn():
            context = tf.distribute.get_replica_context()
            options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=8, timeout_seconds=60)
            total = context.all_reduce("SUM", {"a": tf.ones([2]), "b": (1.0, [tf.constant(2)])}, options=options)
            rows = context.all_gather(tf.zeros([replica_id() + 1, 1]), axis=0)
            return [total["a"].tolist()], total["b"][0], total["b"][1][0], rows.shape

        total, one, two, shape = self.strategy.run(fn)
        self.assertEqual(self.local(total), ([[2, 2]], [[2, 2]]))
        self.assertEqual((self.local(one), self.local(two), self.local(shape)), ((2, 2), (4, 4), ((3, 1), (3, 1))))

    def test_errors(self):
        strategy = self.strategy
        with self.assertRaisesRegex(ValueError, "positional args must be a list or tuple, got <class 'int'>"):
            strategy.run(lambda x: x, args=5)
        with self.assertRaisesRegex(ValueError, "MAX"):
            strategy.reduce("MAX", strategy.run(replica_id), axis=None)
        with self.assertRaises(TypeError):
            strategy.reduce(None, strategy.run(replica_id), axis=None)
        with self.assertRaises(ValueError):
            strategy.reduce("SUM", 1.0, axis=None)
        with self.assertRaises(ValueError):
            strategy.reduce("SUM", strategy.run(object), axis=None)
        with self.assertRaises(RuntimeError):
            strategy.run(lambda: strategy.reduce("SUM", 1.0, axis=None))
        with self.assertRaises(RuntimeError), strategy.scope():
            tf.distribute.experimental_set_strategy(strategy)
        with self.assertRaisesRegex(ValueError, "empty `devices`"):
            tf.distribute.MirroredStrategy([])
        other = tf.distribute.OneDeviceStrategy("CPU:0")
        with self.assertRaises(RuntimeError), strategy.scope(), other.scope():
            pass
        with self.assertRaisesRegex(KeyError, "own"):
            strategy.run(
                lambda: {}["own"] if replica_id() else tf.distribute.get_replica_context().all_reduce("SUM", 1.0)
            )
        contexts = strategy.run(tf.distribute.get_replica_context)
        with self.assertRaises(RuntimeError):
            contexts.values[0].all_reduce("SUM", 1.0)
        self.assertEqual(strategy.run(replica_id).values, (0, 1))

    def test_a_missing_replica(self):
        def fn():
            if replica_id() == 0:
                tf.distribute.get_replica_context().merge_call(lambda strategy: None)

        with self.assertRaises(RuntimeError):
            self.strategy.run(fn)

    def test_what_replicas_raise(self):
        def deep(n):
            return deep(n + 1)

        for fn, kind in ((lambda: deep(0), RecursionError), (lambda: 1 / replica_id(), ZeroDivisionError)):
            with self.assertRaises(kind):
                self.strategy.run(fn)
            self.assertEqual(self.strategy.run(replica_id).values, (0, 1))
        for bad in (5, None):
            with self.assertRaises(TypeError):
                self.strategy.run(bad)
        with self.assertRaises(AttributeError):
            self.strategy.run(lambda: tf.distribute.get_replica_context().merge_call(lambda strategy: strategy.no_such))
        with self.assertRaises(ValueError):
            self.strategy.run(lambda: (1,) * (replica_id() + 1))

    def test_one_replica_is_not_wrapped(self):
        one = tf.distribute.OneDeviceStrategy("CPU:0")
        array = np.ones(2)
        self.assertIs(one.run(lambda: array), array)
        self.assertIs(one.experimental_distribute_values_from_function(lambda context: array), array)
        self.assertEqual(one.experimental_local_results(3), (3,))
        default = tf.distribute.get_strategy()
        self.assertIs(default.run(lambda x: x, args=(array,)), array)
        self.assertEqual(default.num_replicas_in_sync, 1)

    def test_extended(self):
        extended = self.strategy.extended
        self.assertEqual(extended.parameter_devices, extended.worker_devices)
        self.assertEqual(extended.non_slot_devices([]), extended.worker_devices)
        self.assertTrue(
            extended.should_checkpoint and extended.should_save_summary and extended.experimental_should_init
        )
        self.assertFalse(extended.experimental_require_static_shapes or extended.experimental_between_graph)
        self.assertIsNone(self.strategy.cluster_resolver)
        self.assertEqual(extended.call_for_each_replica(lambda x: x + replica_id(), (1,)).values, (1, 2))
        self.assertEqual(extended.update_non_slot(None, lambda x: x, (5,), group=False), (5,))

    def test_threads_have_strategies_of_their_own(self):
        found = []
        with self.strategy.scope():
            thread = threading.Thread(target=lambda: found.append(tf.distribute.has_strategy()))
            thread.start()
            thread.join()
        self.assertEqual(found, [False])

    def test_all_devices_of_the_host(self):
        strategy = tf.distribute.MirroredStrategy()
        self.addCleanup(strategy.close)
        self.assertEqual(len(self.strategy.experimental_local_results(strategy.run(object)) or [0]) >= 1, True)
        self.assertGreaterEqual(strategy.num_replicas_in_sync, 1)

    def test_use_after_close(self):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        values = strategy.run(lambda: np.full(2, replica_id()))
        strategy.close()
        np.testing.assert_array_equal(values.values[1], [1, 1])
        with self.assertRaises(libdist.FailedPrecondition):
            strategy.run(object)


class OwnOperations(unittest.TestCase):
    def test_builtin(self):
        with self.assertLogs("libdist.tf", "WARNING") as logged:
            hierarchical = tf.distribute.HierarchicalCopyAllReduce(num_packs=2)
            nccl = tf.distribute.NcclAllReduce()
        self.assertIn("HierarchicalCopyAllReduce has no effect", logged.output[0])
        self.assertEqual((hierarchical.num_packs, nccl.num_packs), (2, 1))
        for ops in (tf.distribute.ReductionToOneDevice("CPU:0"), hierarchical, nccl):
            strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
            value = strategy.run(lambda: tf.constant([1.0, 2.0]) * (replica_id() + 1))
            np.testing.assert_array_equal(strategy.reduce("SUM", value, axis=None), [3, 6])
            for result in (ops.reduce("SUM", value, value), *ops.batch_reduce("SUM", [(value, value)])):
                np.testing.assert_array_equal(result.values[1], [3, 6])
            np.testing.assert_array_equal(ops.broadcast(tf.constant(1.0), value).values, [1, 1])
            strategy.close()
        with self.assertRaises(ValueError):
            tf.distribute.NcclAllReduce(num_packs=-1)

    def test_an_accumulation_function(self):
        ops = tf.distribute.ReductionToOneDevice(accumulation_fn=lambda values: values[0] * values[1])
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
        value = strategy.run(lambda: tf.constant(3.0) + replica_id())
        [product] = strategy.extended.batch_reduce_to("SUM", [(value, value)])
        self.assertEqual(float(product.values[0]), 12)

    def test_a_subclass(self):
        class Largest(tf.distribute.CrossDeviceOps):
            def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
                return np.maximum(*per_replica_value.values)

        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=Largest())
        value = strategy.run(lambda: tf.constant([1.0, -1.0]) * (1 - 2 * replica_id()))
        np.testing.assert_array_equal(strategy.extended.reduce_to("SUM", value, value).values[0], [1, 1])
        with self.assertRaises(NotImplementedError):
            tf.distribute.CrossDeviceOps().reduce("SUM", value, value)


class OneReplica(tf.distribute.StrategyExtended):
    """A program's own strategy: the function is called where run() is, and values are what they are."""

    def __init__(self, container):
        super().__init__(container)
        self.calls = []
        self._cluster_resolver = Resolver()

    def _call_for_each_replica(self, fn, args, kwargs):
        self.calls.append(fn)
        return fn(*args, **kwargs)

    def _reduce_to(self, reduce_op, value, destinations, options):
        self.calls.append(reduce_op)
        return value

    def _local_results(self, value):
        self.calls.append(value)
        return super()._local_results(value)


class ThreeReplicas(tf.distribute.StrategyExtended):
    _num_replicas_in_sync = 3


class Resolver(tf.distribute.cluster_resolver.ClusterResolver):
    def cluster_spec(self):
        return tf.train.ClusterSpec({"worker": ["localhost:1"]})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return "localhost:1"


class OfAProgram(unittest.TestCase):
    def test_extended_of_ones_own(self):
        class Own(tf.distribute.Strategy):
            def __init__(self):
                super().__init__(OneReplica(self))

        strategy = Own()
        self.addCleanup(strategy.close)
        self.assertEqual((strategy.num_replicas_in_sync, strategy.run(lambda x: x + 1, (2,))), (1, 3))
        self.assertEqual(strategy.reduce("SUM", 5.0, axis=None), 5.0)
        self.assertEqual(strategy.extended.batch_reduce_to("MEAN", [(1, None), (2, None)]), [1, 2])
        expected = [tf.distribute.ReduceOp.SUM, 5.0, *[tf.distribute.ReduceOp.MEAN] * 2]
        self.assertEqual(strategy.extended.calls[1:], expected)
        resolver = strategy.cluster_resolver
        self.assertEqual((resolver.master(), resolver.cluster_spec().jobs), ("localhost:1", ["worker"]))
        self.assertEqual((resolver.environment, resolver.task_type, resolver.num_accelerators()), ("", None, {}))
        self.assertIsNone(tf.config.experimental_connect_to_cluster(resolver))
        with strategy.scope():
            self.assertIs(tf.distribute.get_strategy(), strategy)
            self.assertEqual(float(tf.Variable(2.0)), 2)

    def test_what_is_not_overridden_is_libdists(self):
        strategy = tf.distribute.Strategy(ThreeReplicas())
        self.addCleanup(strategy.close)
        self.assertEqual(strategy.num_replicas_in_sync, 3)
        self.assertEqual(strategy.run(replica_id).values, (0, 1, 2))
        self.assertEqual(strategy.reduce("SUM", strategy.run(replica_id), axis=None), 3)
        self.assertIsNone(strategy.cluster_resolver)
        with self.assertRaisesRegex(TypeError, r"Strategy\(\): extended is 3, but must be a tf.distribute.StrategyExtended or"):
            tf.distribute.Strategy(3)

    def test_clusters_of_several_processes_are_refused(self):
        spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"], "ps": {3: "c:1"}})
        self.assertEqual(
            (spec.num_tasks("worker"), spec.task_indices("ps"), spec.task_address("ps", 3)), (2, [3], "c:1")
        )
        self.assertEqual((spec.as_dict(), bool(spec)), ({"worker": ["a:1", "b:1"], "ps": {3: "c:1"}}, True))
        self.assertEqual((spec.job_tasks("ps"), spec), ([None, None, None, "c:1"], tf.train.ClusterSpec(spec)))
        for bad in (spec, "grpc://x"):
            with self.assertRaises(ValueError):
                tf.config.experimental_connect_to_cluster(bad)
        for call in (lambda: spec.num_tasks("chief"), lambda: spec.task_address("worker", 5)):
            self.assertRaises(ValueError, call)

    def test_options_for_a_compiler(self):
        strategy = tf.distribute.OneDeviceStrategy("CPU:0")
        with self.assertLogs("libdist.tf", "WARNING") as logged:
            options = tf.distribute.RunOptions(experimental_xla_options=tf.tpu.XLAOptions())
        self.assertEqual(len(logged.output), 1)
        self.assertIn("experimental_xla_options has no effect", logged.output[0])
        self.assertEqual(strategy.run(lambda: 1, options=options), 1)
        self.assertIn("RunOptions(experimental_enable_dynamic_batch_size=True", repr(options))

    def test_communication_options(self):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(strategy.close)
        options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=8, timeout_seconds=1)
        value = strategy.run(lambda: tf.identity(1.0))
        self.assertEqual(float(strategy.extended.reduce_to("SUM", value, "CPU:0", options)), 2)
        self.assertEqual(float(strategy.extended.batch_reduce_to("SUM", [(value, "CPU:0")], options)[0]), 2)
        # As in TensorFlow, 0 is no limit.
        options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=0)
        self.assertEqual(float(strategy.extended.reduce_to("SUM", value, "CPU:0", options)), 2)
        total = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(1.0), options))
        self.assertEqual(float(total.values[0]), 2)

    def test_metrics_of_ones_own(self):
        class Largest(tf.keras.metrics.Metric):
            def __init__(self, **options):
                super().__init__(**options)
                self.total = self.add_weight("total")
                self.count = self.add_variable(shape=(2,), initializer="zeros", aggregation="sum")

            def update_state(self, values):
                self.total.assign_add(tf.reduce_sum(values))
                self.count.assign_add([len(values), 1])

            def result(self):
                return self.total

        strategies = {
            "mirrored": tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
            "central": tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]),
            "one": tf.distribute.OneDeviceStrategy("CPU:0"),
            "default": tf.distribute.get_strategy(),
        }
        for name, strategy in strategies.items():
            with self.subTest(name):
                with strategy.scope():
                    metric = Largest(name="own")
                replicas = strategy.num_replicas_in_sync
                strategy.run(lambda: metric.update_state(tf.ones([3])))  # noqa: B023
                self.assertEqual((float(metric.result()), metric.name), (3 * replicas, "own"))
                self.assertEqual(metric.count.numpy().tolist(), [3 * replicas, replicas])
                self.assertEqual(len(metric.variables), 2)
                metric.reset_state()
                self.assertEqual(float(metric.result()), 0)
        self.assertEqual(float(metric(tf.ones([2]))), 2)
        for method in ("result", "update_state"):
            self.assertRaises(NotImplementedError, getattr(tf.keras.metrics.Metric(), method))
        with self.assertRaisesRegex(ValueError, "initializer"):
            metric.add_weight(initializer="uniform")


class OneContext(unittest.TestCase):
    def test_outside_of_scopes_it_is_one_object(self):
        outside = tf.distribute.get_replica_context()
        self.assertIs(tf.distribute.get_replica_context(), outside)
        default = tf.distribute.get_strategy()
        inside = default.run(lambda: tf.distribute.get_replica_context() is tf.distribute.get_replica_context())
        self.assertTrue(inside)
        with default.scope():
            pass
        self.assertIs(tf.distribute.get_replica_context(), outside)
        self.assertEqual(outside.merge_call(lambda strategy: strategy is default), True)


class Options(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(self.strategy.close)

    def test_wrong_options(self):
        options = tf.distribute.experimental.CommunicationOptions
        with self.assertRaisesRegex(ValueError, "timeout_seconds is nan, but must be a number of seconds or None"):
            options(timeout_seconds=float("nan"))
        with self.assertRaisesRegex(TypeError, "bytes_per_pack is 1.9, but must be an integer"):
            options(bytes_per_pack=1.9)

    def test_options_of_another_type(self):
        strategy, x = self.strategy, self.strategy.run(lambda: tf.identity(1.0))
        context = tf.distribute.get_replica_context
        dataset = tf.data.Dataset.range(2)
        communication, run, read = "experimental.CommunicationOptions", "RunOptions", "InputOptions"
        for wanted, call in (
            (communication, lambda: strategy.extended.reduce_to("SUM", x, "CPU:0", options=5)),
            (communication, lambda: strategy.extended.batch_reduce_to("SUM", [(x, "CPU:0")], options=5)),
            (communication, lambda: strategy.run(lambda: context().all_reduce("SUM", x, options=5))),
            (communication, lambda: strategy.run(lambda: context().all_gather(np.ones(1), 0, options=5))),
            (communication, lambda: tf.distribute.MultiWorkerMirroredStrategy(communication_options=5)),
            (run, lambda: strategy.run(lambda: 1, options=5)),
            (read, lambda: strategy.experimental_distribute_dataset(dataset, options=5)),
            (read, lambda: strategy.distribute_datasets_from_function(lambda _: dataset, options=5)),
        ):
            with (
                self.subTest(wanted),
                self.assertRaisesRegex(TypeError, rf"options is 5, but must be a tf\.distribute\.{wanted} or None"),
            ):
                call()

    def test_names_with_the_numbers_of_replicas(self):
        def named(name):
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.Variable(1.0, name=name.format(number))

        for name, made in (("foo_{}", "foo_0:0"), ("a_{}/foo", "a_0/foo:0"), ("a_1/b_{}", "a_1/b_0:0")):
            variable = self.strategy.run(named, (name,))
            self.assertEqual(variable.name, made)
            self.assertEqual([copy.numpy() for copy in variable.values], [1.0, 1.0])
        for name in ("foo{}", "{}_foo"):
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "mismatching name"):
                self.strategy.run(named, (name,))


if __name__ == "__main__":
    unittest.main()
