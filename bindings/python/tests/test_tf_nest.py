# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: nests keep their types and the order of their keys, as in tf.nest."""

import collections
import types
import unittest

import numpy as np

import libdist
import libdist.tf as tf

Point = collections.namedtuple("Point", "x y")


class Pair:
    """Has what tf.nest looks for in a class made by attrs."""

    __attrs_attrs__ = (types.SimpleNamespace(name="first"), types.SimpleNamespace(name="second"))

    def __init__(self, first, second):
        self.first = first
        self.second = second


class Frozen(collections.abc.Mapping):
    """A mapping that cannot be changed."""

    def __init__(self, pairs=()):
        self._items = [(key, item) for key, item in pairs]

    def __getitem__(self, key):
        return dict(self._items)[key]

    def __iter__(self):
        return (key for key, _ in self._items)

    def __len__(self):
        return len(self._items)


class Titled(dict):
    """A dictionary whose constructor wants something else."""

    def __init__(self, title):
        super().__init__()
        self.title = title


def titled(**items):
    made = Titled("of two")
    made.update(items)
    return made


def replica_id():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def one():
    return tf.constant(1.0)


NESTS = {
    "a dictionary": lambda: {"b": one(), "a": one()},
    "an OrderedDict": lambda: collections.OrderedDict([("b", one()), ("a", one())]),
    "a defaultdict": lambda: collections.defaultdict(list, b=one(), a=one()),
    "a Counter": lambda: collections.Counter(b=one(), a=one()),
    "a dictionary with its own constructor": lambda: titled(b=one(), a=one()),
    "a mapping proxy": lambda: types.MappingProxyType({"b": one(), "a": one()}),
    "a mapping that cannot be changed": lambda: Frozen([("b", one()), ("a", one())]),
    "keys that are no texts": lambda: {2: one(), "2": one(), (1, "a"): one(), None: one()},
    "a named tuple": lambda: Point(one(), one()),
    "an attrs object": lambda: Pair(one(), one()),
    "nests of nests": lambda: [{"b": Point((), {}), "a": (collections.OrderedDict(z=one(), y=[one()]),)}],
}


def shape_of(nest):
    """The types, keys and order of a nest, comparable."""
    if isinstance(nest, collections.abc.Mapping):
        return type(nest), [(key, shape_of(nest[key])) for key in nest]
    if isinstance(nest, Pair):
        return Pair, shape_of(nest.first), shape_of(nest.second)
    if isinstance(nest, (list, tuple)):
        return type(nest), [shape_of(item) for item in nest]
    return None


class Nests(unittest.TestCase):
    def setUp(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.addCleanup(self.strategy.close)
        self.single = tf.distribute.OneDeviceStrategy("CPU:0")
        self.addCleanup(self.single.close)

    def context(self):
        return tf.distribute.get_replica_context()

    def test_results_and_arguments_of_a_run(self):
        for name, make in NESTS.items():
            for strategy in (self.strategy, self.single):
                with self.subTest(name, strategy=type(strategy).__name__):
                    given, seen = make(), []
                    result = strategy.run(lambda nest, named: seen.append(nest) or named, (given,), {"named": given})  # noqa: B023
                    self.assertEqual(shape_of(result), shape_of(given))
                    self.assertEqual([shape_of(nest) for nest in seen], [shape_of(given)] * len(seen))
                    made = strategy.run(make)
                    self.assertEqual(shape_of(made), shape_of(given))
                    for leaf in tf.nest.flatten(made):
                        self.assertEqual(isinstance(leaf, tf.distribute.PerReplica), strategy is self.strategy)

    def test_the_factory_of_a_defaultdict(self):
        self.assertIs(self.strategy.run(NESTS["a defaultdict"]).default_factory, list)

    def test_merge_calls_and_updates(self):
        with self.strategy.scope():
            variable = tf.Variable(1.0)
        for name, make in NESTS.items():
            with self.subTest(name):
                expected, seen = shape_of(make()), []

                def merge(strategy, nest, named):
                    seen.extend([shape_of(nest), shape_of(named)])  # noqa: B023
                    return nest

                def step():
                    nest = self.context().merge_call(merge, (make(),), {"named": make()})  # noqa: B023
                    return shape_of(nest) == expected  # noqa: B023

                # Both replicas return the one object True, which is not distributed.
                self.assertIs(self.strategy.run(step), True)
                self.assertEqual(seen, [expected] * 2)

                def change(copy, nest):
                    seen.append(shape_of(nest))  # noqa: B023
                    return nest

                self.assertEqual(shape_of(self.strategy.extended.update(variable, change, (make(),))), expected)
                self.assertEqual(seen, [expected] * 4)
                values = self.strategy.experimental_distribute_values_from_function(lambda _: make())  # noqa: B023
                self.assertEqual(shape_of(values), expected)
                local = self.strategy.experimental_local_results(values)
                self.assertEqual([shape_of(nest) for nest in local], [expected] * 2)

    def test_collectives(self):
        for name, make in NESTS.items():
            with self.subTest(name):
                expected = shape_of(make())

                def step():
                    reduced = self.context().all_reduce("SUM", make())  # noqa: B023
                    leaves = [float(leaf) for leaf in tf.nest.flatten(reduced)]
                    return shape_of(reduced) == expected and leaves == [2.0] * len(leaves)  # noqa: B023

                self.assertIs(self.strategy.run(step), True)
                total = self.strategy.reduce("SUM", self.strategy.run(make), axis=None)
                self.assertEqual(shape_of(total), expected)

    def test_replicas_may_use_equal_classes_and_orders(self):
        point = self.strategy.run(lambda: collections.namedtuple("P", "a b")(one(), one()))
        self.assertEqual(point._fields, ("a", "b"))

        def mixed():
            pairs = [("a", one()), ("b", one())]
            return collections.OrderedDict(pairs) if replica_id() == 0 else dict(reversed(pairs))

        self.assertEqual(shape_of(self.strategy.run(mixed)), (collections.OrderedDict, [("a", None), ("b", None)]))
        numbers = self.strategy.run(lambda: {(1.0, "a") if replica_id() else (np.int64(1), "a"): one()})
        self.assertEqual(list(numbers), [(1, "a")])

    def test_replicas_that_disagree(self):
        for first, second, words in (
            (Point(1.0, 2.0), collections.namedtuple("Point", "x z")(1.0, 2.0), 'has the key ".y"'),
            (Point(1.0, 2.0), (1.0, 2.0), "a dictionary of 2, but replica 1 has a tuple of 2"),
            ({1: 1.0}, {2: 1.0}, 'has the key "1"'),
            ([1.0], (1.0,), "a list of 1, but replica 1 has a tuple of 1"),
        ):
            with self.subTest(words), self.assertRaisesRegex(libdist.InvalidArgument, words):
                self.strategy.run(lambda: second if replica_id() else first)  # noqa: B023

    def test_datasets(self):
        for name, make in NESTS.items():
            if name == "nests of nests":
                continue  # in tf.data lists are tensors
            with self.subTest(name):
                expected = shape_of(make())
                dataset = tf.data.Dataset.from_tensors(make()).repeat(4).batch(2)
                self.assertEqual(shape_of(next(iter(dataset))), expected)
                distributed = self.strategy.experimental_distribute_dataset(dataset)
                self.assertEqual([shape_of(batch) for batch in distributed], [expected] * 2)
                self.assertEqual(shape_of(distributed.element_spec), expected)
                state = distributed.reduce(make(), lambda state, batch: state)
                self.assertEqual(shape_of(state), expected)
        signature = collections.OrderedDict([("b", tf.TensorSpec([])), ("a", tf.TensorSpec([]))])
        dataset = tf.data.Dataset.from_generator(lambda: iter([{"a": 1.0, "b": 2.0}]), output_signature=signature)
        self.assertEqual(shape_of(next(iter(dataset))), shape_of(signature))

    def test_tf_nest(self):
        for name, make in NESTS.items():
            with self.subTest(name):
                self.assertEqual(shape_of(tf.nest.map_structure(lambda leaf: leaf + 1, make())), shape_of(make()))
        # Leaves of a mapping come by sorted keys.
        self.assertEqual(tf.nest.flatten({"b": 1, "a": [2, Pair(3, None)]}), [2, 3, None, 1])
        order = []
        tf.nest.map_structure(order.append, collections.OrderedDict(b=1, a=2))
        self.assertEqual(order, [2, 1])

    def test_logical_devices(self):
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
        topology = tf.tpu.experimental.initialize_tpu_system(resolver)
        assignment = tf.tpu.experimental.DeviceAssignment.build(
            topology, computation_shape=[1, 1, 1, 2], num_replicas=1
        )
        strategy = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=assignment)
        self.addCleanup(strategy.close)

        @tf.distribute.on_logical_devices
        def double(nest):
            return tf.nest.map_structure(lambda leaf: leaf * 2, nest)

        for make in (NESTS["an OrderedDict"], NESTS["a named tuple"], NESTS["keys that are no texts"]):
            expected = shape_of(make())
            result = strategy.run(lambda: double(strategy.experimental_replicate_to_logical_devices(make())))  # noqa: B023
            self.assertEqual(shape_of(result), expected)
            self.assertEqual({float(leaf) for leaf in tf.nest.flatten(result)}, {2.0})


if __name__ == "__main__":
    unittest.main()
