# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: computing with a tensor that is split over logical devices, without a decorator."""

import contextlib
import threading
import unittest
from unittest import mock

import numpy as np

import libdist
import libdist.tf as tf
from libdist.tf import _split

IMAGES = np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype(np.float32)
CHANNELS = np.arange(3, dtype=np.float32)
ROWS = np.arange(8, dtype=np.float32)[:, None, None]


def split_strategy(devices, num_replicas=1):
    """The strategy of the page, with so many replicas of so many devices."""
    mesh = [1, 2, 2, 2 * num_replicas] if devices == 8 else [1, 1, 1, devices * num_replicas]
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="", mesh_shape=mesh)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    shape = [1, 2, 2, 2] if devices == 8 else [1, 1, 1, devices]
    assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=shape, num_replicas=num_replicas
    )
    return tf.distribute.TPUStrategy(
        resolver, experimental_device_assignment=assignment, experimental_spmd_xla_partitioning=True
    )


ON_PARTS = {
    "multiply": lambda x: x * 2,
    "reflected": lambda x: 2 - x,
    "itself twice": lambda x: x + x * x,
    "an array of the unsplit axis": lambda x: x * CHANNELS,
    "an array on the left": lambda x: CHANNELS * x,
    "a tensor on the left": lambda x: tf.constant(CHANNELS) / (1 + abs(x)),
    "an array of a split axis": lambda x: x + ROWS,
    "an array of its shape": lambda x: IMAGES - x,
    "a list": lambda x: x * [1, 2, 3],
    "in place": lambda x: x.__iadd__(1),
    "comparison": lambda x: x > 0,
    "tanh": lambda x: np.tanh(x),
    "relu": lambda x: np.maximum(x, 0),
    "two results": lambda x: np.divmod(x, 2)[1],
    "where, a keyword": lambda x: np.where(x > 0, x, 0),
    "clip": lambda x: np.clip(x, -1, 1).clip(0, 1),
    "round": lambda x: x.round(1),
    "like": lambda x: tf.zeros_like(x) + np.ones_like(x) + np.full_like(x, 3),
    "identity": lambda x: tf.identity(x),
    "copy": lambda x: x.copy(),
    "cast": lambda x: tf.cast(x * 10, tf.int32),
    "astype": lambda x: x.astype(np.float64),
    "square": lambda x: tf.square(x),
    "add": lambda x: tf.add_n([x, tf.add(x, x)]),
    "sum over the unsplit axis": lambda x: tf.reduce_sum(x, axis=3),
    "mean over the batch": lambda x: tf.reduce_mean(x, axis=0, keepdims=True),
    "any reduction of unsplit axes": lambda x: np.subtract.reduce(x, axis=3),
    "a whole model": lambda x: np.tanh(tf.cast(x, tf.float32) * CHANNELS + 1) ** 2,
}
REDUCED = {
    "tf.reduce_sum": lambda x: tf.reduce_sum(x),
    "tf.reduce_mean": lambda x: tf.reduce_mean(x),
    "np.sum": lambda x: np.sum(x, axis=(1, -2)),
    "np.mean": lambda x: np.mean(x, axis=1, keepdims=True),
    "mean of integers": lambda x: np.mean(tf.cast(x * 10, tf.int32)),
    "np.max": lambda x: np.max(x),
    "min": lambda x: x.min(2),
    "prod": lambda x: x.prod(axis=1),
    "any": lambda x: np.any(x > 2),
    "all": lambda x: (x < 100).all(),
    "initial": lambda x: np.sum(x, initial=5.0),
    "of a result": lambda x: tf.reduce_sum(np.maximum(x, 0), axis=1),
}
READ = {
    "an index": lambda x: x[0],
    "a slice": lambda x: x[:, 1:3, ..., -1],
    "numpy()": lambda x: x.numpy(),
    "an array": lambda x: np.asarray(x),
    "tolist()": lambda x: x.tolist(),
    "its length": lambda x: len(x),
    "its shape": lambda x: tf.shape(x),
    "its size": lambda x: np.size(x),
    "a number": lambda x: float(x[0, 0, 0, 0]),
    "iteration": lambda x: [row + 1 for row in x],
    "repr": lambda x: repr(x),
    "str": lambda x: str(x),
    "equality": lambda x: np.array_equal(x, IMAGES),
}
NEEDS_THE_MODEL = {
    "tf.reshape": ("reshape()", lambda x: tf.reshape(x, [2, -1])),
    "a transposed tensor": ("T ", lambda x: x.T),
    "tf.matmul": ("numpy.matmul()", lambda x: tf.matmul(x, np.ones((3, 3), np.float32))),
    "np.concatenate": ("numpy.concatenate()", lambda x: np.concatenate([x, x])),
    "np.sort": ("numpy.sort()", lambda x: np.sort(x)),
    "an accumulation": ("numpy.add.accumulate()", lambda x: np.add.accumulate(x)),
    "a larger result": ("shape (4, 2, 8, 8, 3)", lambda x: x + np.ones((4, 1, 1, 1, 1))),
    "a difference over a split axis": ("numpy.subtract.reduce()", lambda x: np.subtract.reduce(x, axis=1)),
    "where without values": ("numpy.where()", lambda x: np.where(x > 0)),
}


class Split(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.strategy = split_strategy(8)
        cls.addClassCleanup(cls.strategy.close)

    def run_with(self, function):
        """function(split images) inside a replica: its result, and where NumPy computed with what."""
        seen, calculate = [], _split.calculate

        def watched(ufunc, method, inputs, kwargs):
            seen.append((threading.get_ident(), [np.shape(one) for one in inputs]))
            return calculate(ufunc, method, inputs, kwargs)

        def step(images):
            images = self.strategy.experimental_split_to_logical_devices(images, [1, 2, 4, 1])
            return type(images), function(images)

        with mock.patch.object(_split, "calculate", watched):
            kind, result = self.strategy.run(step, args=(IMAGES,))
        self.assertIs(kind, _split.SplitTensor)
        return result, seen

    def equal(self, result, expected, rtol=0.0):
        result, expected = np.asarray(result), np.asarray(expected)
        self.assertEqual((result.shape, result.dtype), (expected.shape, expected.dtype))
        np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol)

    def test_element_wise_work_stays_split(self):
        for name, function in ON_PARTS.items():
            with self.subTest(name):
                result, _ = self.run_with(function)
                self.assertIsInstance(result, _split.SplitTensor)
                self.equal(result, function(tf.constant(IMAGES)))

    def test_every_device_computes_with_its_part(self):
        _, seen = self.run_with(lambda x: np.tanh(x * CHANNELS + ROWS))
        self.assertEqual(len({thread for thread, _ in seen}), 8)
        part = (2, 4, 2, 3)
        calls = [[part, (3,)], [part, (4, 1, 1)], [part]]
        self.assertEqual(sorted(shapes for _, shapes in seen), sorted(calls * 8))

    def test_reductions(self):
        for name, function in REDUCED.items():
            with self.subTest(name):
                result, _ = self.run_with(function)
                self.assertNotIsInstance(result, _split.SplitTensor)
                self.equal(result, function(tf.constant(IMAGES)), rtol=1e-4)
                again, _ = self.run_with(function)
                self.equal(again, result)

    def test_reading_reads_the_whole(self):
        for name, function in READ.items():
            with self.subTest(name):
                result, seen = self.run_with(function)
                expected = function(tf.constant(IMAGES))
                if isinstance(expected, str):
                    self.assertEqual(result, expected)
                else:
                    self.equal(result, expected)
                self.assertEqual(seen, [])

    def test_what_needs_the_whole_model_says_so(self):
        for name, (what, function) in NEEDS_THE_MODEL.items():
            with self.subTest(name), self.assertRaises(libdist.FailedPrecondition) as raised:
                self.run_with(function)
            self.assertIn(what, str(raised.exception))
            self.assertIn("@tf.distribute.on_logical_devices", str(raised.exception))

    def test_mistakes(self):
        for error, words, function in (
            (ValueError, "shape mismatch", lambda x: x + np.ones(5)),
            (ValueError, "axis 7 is out of bounds", lambda x: np.sum(x, axis=7)),
            (ValueError, "duplicate", lambda x: np.sum(x, axis=(0, 0))),
            (AttributeError, "no_such_name", lambda x: x.no_such_name),
            (TypeError, "bitwise_and", lambda x: x & 1),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                self.run_with(function)

    def test_dimensions_that_are_no_integers(self):
        for error, dimensions in (
            (ValueError, [[1], [2], [4], [1]]),
            (TypeError, [1.0, 2.0, 4.0, 1.0]),
            (TypeError, [None, 2, 4, 1]),
            (TypeError, None),
        ):
            with self.subTest(dimensions), self.assertRaises(error):
                self.strategy.run(
                    lambda x: self.strategy.experimental_split_to_logical_devices(x, dimensions),  # noqa: B023
                    args=(IMAGES,),
                )

    def test_outside_of_the_replica_it_is_a_tensor(self):
        result, _ = self.run_with(lambda x: x)
        for function in (*ON_PARTS.values(), *REDUCED.values(), *READ.values()):
            expected = function(tf.constant(IMAGES))
            if not isinstance(expected, str):
                self.equal(function(result), expected, rtol=1e-6)
        self.assertEqual(repr(result), repr(tf.constant(IMAGES)))
        self.assertEqual(result.reshape(2, -1).shape, (2, 192))
        self.equal(np.concatenate([result, result]), np.concatenate([IMAGES, IMAGES]))

    def test_with_variables_and_collectives(self):
        with contextlib.closing(split_strategy(2, num_replicas=2)) as strategy:
            with strategy.scope():
                weight = tf.Variable([1.0, 2.0, 3.0, 4.0])

            def step(x):
                x = strategy.experimental_split_to_logical_devices(x, [2]) * weight
                return tf.distribute.get_replica_context().all_reduce("SUM", x), tf.reduce_sum(x)

            x = strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant([1.0, 1.0, 1.0, 1.0]) * (1 + context.replica_id_in_sync_group)
            )
            total, sums = strategy.run(step, args=(x,))
            for one in strategy.experimental_local_results(total):
                self.assertEqual(one.numpy().tolist(), [3.0, 6.0, 9.0, 12.0])
            self.assertEqual([float(one) for one in strategy.experimental_local_results(sums)], [10.0, 20.0])


if __name__ == "__main__":
    unittest.main()
