# SPDX-License-Identifier: Apache-2.0
"""Values and tensors: in and out of Python without a copy, kept by who needs them."""

import gc
import unittest
import weakref

import numpy as np

from libdist import DType, InvalidArgument, ReduceOp, Strategy, Tensor, ValueKind, dtype_of, numpy_dtype

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class Foreign:
    """Another library's tensor: nothing but __dlpack__."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Values(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.strategy = Strategy(2)

    @classmethod
    def tearDownClass(cls):
        cls.strategy.close()

    def test_kinds(self):
        s = self.strategy
        for thing, kind in (
            (np.ones(2), ValueKind.TENSOR),
            (3, ValueKind.TENSOR),
            (True, ValueKind.TENSOR),
            (None, ValueKind.NONE),
            ("text", ValueKind.TEXT),
            ([1], ValueKind.LIST),
            ((1,), ValueKind.TUPLE),
            ({"a": 1}, ValueKind.DICT),
            (object(), ValueKind.OBJECT),
        ):
            self.assertEqual(s.value(thing).kind, kind, thing)
        self.assertEqual(s.value(True).dtype, DType.BOOL)

    def test_nests_come_back(self):
        thing = object()
        nest = {"b": [1.5, ("x", None)], "a": thing}
        back = self.strategy.value(nest).python()
        self.assertEqual(list(back), ["a", "b"])
        self.assertIs(back["a"], thing)
        self.assertEqual((back["b"][0].item(), back["b"][1]), (1.5, ("x", None)))
        value = self.strategy.value(nest)
        self.assertEqual(value.keys(), ["a", "b"])
        self.assertEqual(value.get("b").item(1).item(0).text, "x")
        self.assertEqual(value["b"][1], ("x", None))
        with self.assertRaises(KeyError):
            value.get("c")
        with self.assertRaises(IndexError):
            value.item(2)

    def test_wrap_shares_and_tensor_copies(self):
        array = np.arange(6.0).reshape(2, 3)
        wrapped, copied = self.strategy.value(array.T), self.strategy.tensor(array.T)
        array[0, 0] = 9
        self.assertEqual(wrapped.numpy()[0, 0], 9)
        self.assertEqual(copied.numpy()[0, 0], 0)
        self.assertEqual(wrapped.shape, (3, 2))
        self.assertFalse(wrapped.numpy().flags.writeable)

    def test_owners_are_kept_as_long_as_needed(self):
        class Owned(np.ndarray):
            pass

        array = np.zeros(3).view(Owned)
        gone = weakref.ref(array)
        value = self.strategy.value(array)
        view = value.numpy()
        del array, value
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual(view.tolist(), [0, 0, 0])
        del view
        gc.collect()
        self.assertIsNone(gone())

    def test_an_object_is_let_go(self):
        class Thing:
            pass

        thing = Thing()
        gone = weakref.ref(thing)
        value = self.strategy.value([thing])
        del thing
        gc.collect()
        self.assertIsNotNone(gone())
        del value
        gc.collect()
        self.assertIsNone(gone())

    def test_a_view_given_back_is_the_same_value(self):
        view = self.strategy.tensor(np.arange(4.0).reshape(2, 2)).numpy()
        self.assertIs(self.strategy.value(view), self.strategy.value(view))
        for other in (view[1:], view.T, view.view(np.int64), view.reshape(4)):
            self.assertIsNot(self.strategy.value(other), self.strategy.value(view))
            np.testing.assert_array_equal(self.strategy.value(other).numpy(), other)

    def test_empty_and_scalar(self):
        for array in (np.zeros((0, 3), np.float32), np.zeros((2, 0)), np.float16(2), np.array(True)):
            back = self.strategy.value(array).numpy()
            self.assertEqual((back.dtype, back.shape), (array.dtype, array.shape))
            np.testing.assert_array_equal(back, array)

    def test_bfloat16(self):
        raw = np.array([0x3F80, 0xC000], np.uint16)
        out = self.strategy.value(Tensor(raw, DType.BF16)).numpy()
        self.assertEqual(dtype_of(out), DType.BF16)
        if ml_dtypes:
            self.assertEqual(out.dtype, np.dtype(ml_dtypes.bfloat16))
            self.assertEqual(out.astype(np.float32).tolist(), [1.0, -2.0])
            back = self.strategy.value(out.copy())
            self.assertEqual(back.dtype, DType.BF16)
            self.assertEqual(numpy_dtype(DType.BF16), out.dtype)
        else:
            self.assertEqual(out.array.tolist(), raw.tolist())
            self.assertIs(self.strategy.value(out), self.strategy.value(out))
        self.assertIn("bf16[2] [1, -2]", self.strategy.value(Tensor(raw, DType.BF16)).describe())
        with self.assertRaises(InvalidArgument):
            Tensor(np.zeros(2), DType.BF16)

    def test_dlpack_without_a_capsule(self):
        class Broken:
            def __dlpack__(self, stream=None):
                return None

            def __dlpack_device__(self):
                return (1, 0)

        with self.assertRaises(ValueError):
            self.strategy.tensor(Broken())

    def test_dlpack_both_ways(self):
        array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
        value = self.strategy.value(Foreign(array))
        self.assertTrue(np.shares_memory(value.numpy(), array))
        back = np.from_dlpack(value)
        self.assertTrue(np.shares_memory(back, array))
        np.testing.assert_array_equal(back, array)
        del value
        gc.collect()
        np.testing.assert_array_equal(back, array)
        self.strategy.value(array).__dlpack__()  # a capsule that nobody takes ends by itself

        def step(replica):
            x = Foreign(np.full(3, replica.id + 1.0))
            replica.all_reduce(ReduceOp.SUM, x, out=x)
            return x.array.tolist()

        self.assertEqual(self.strategy.run(step), [[3.0] * 3] * 2)

    def test_values_as_arrays(self):
        value = self.strategy.value(np.arange(3.0))
        self.assertEqual((np.asarray(value) + 1).tolist(), [1, 2, 3])
        self.assertEqual(np.asarray(value, dtype=np.int8).dtype, np.int8)
        self.assertEqual(str(value), "f64[3] [0, 1, 2]")
        self.assertIn("PerReplica", repr(self.strategy.per_replica([1, 2])))

    def test_what_is_no_tensor_is_refused(self):
        for bad in ("x", b"x", object(), {1, 2}, [object()]):
            with self.assertRaises((TypeError, InvalidArgument), msg=repr(bad)):
                self.strategy.tensor(bad)
        for bad in (np.zeros(2, "S3"), np.zeros(2, ">f4"), np.zeros(2, np.complex128), np.zeros(2, "M8[s]")):
            with self.assertRaises(ValueError, msg=repr(bad)):
                self.strategy.tensor(bad)
        with self.assertRaises(InvalidArgument):
            self.strategy.tensor(np.zeros((1,) * 17))
        with self.assertRaises(InvalidArgument):
            self.strategy.value([1]).numpy()

    def test_composites(self):
        slices = self.strategy.indexed_slices(np.ones((2, 3), "f"), np.array([0, 4]), np.array([5, 3]))
        self.assertEqual(slices.kind, ValueKind.INDEXED_SLICES)
        self.assertEqual([part.shape for part in slices], [(2, 3), (2,), (2,)])
        ragged = self.strategy.ragged(np.arange(3), np.array([0, 1, 3]))
        self.assertEqual(ragged.kind, ValueKind.RAGGED)
        sparse = self.strategy.sparse(np.array([[0, 1]]), np.array([5.0]), np.array([2, 2]))
        self.assertEqual(sparse[1].tolist(), [5.0])
        with self.assertRaises(InvalidArgument):
            self.strategy.sparse(np.array([0, 1]), np.array([5.0]), np.array([2, 2]))


class Outside(unittest.TestCase):
    def test_reductions(self):
        with Strategy(2) as s:
            x = s.per_replica([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
            self.assertEqual(s.reduce(ReduceOp.SUM, x).tolist(), [4, 6])
            self.assertEqual(s.reduce(ReduceOp.MEAN, x, axis=0).item(), 2.5)
            self.assertEqual(s.reduce(ReduceOp.MEAN, x, axis=[0]).item(), 2.5)
            mirrored = s.reduce_to(ReduceOp.SUM, x)
            self.assertEqual(mirrored.kind, ValueKind.MIRRORED)
            self.assertEqual(s.reduce_to(ReduceOp.SUM, x, "CPU:1").tolist(), [4, 6])
            both = s.batch_reduce_to(ReduceOp.SUM, [(x, "CPU:0"), (x, x)])
            self.assertEqual(both[0].tolist(), [4, 6])
            self.assertEqual(both[1].kind, ValueKind.MIRRORED)
            self.assertEqual(s.batch_reduce_to(ReduceOp.MEAN, [(x, None)])[0][1].tolist(), [2, 3])
            self.assertEqual(s.broadcast_to(np.ones(1)).kind, ValueKind.MIRRORED)
            self.assertEqual(s.gather(x).tolist(), [1, 2, 3, 4])
            self.assertEqual([part.tolist() for part in s.local_results(x)], [[1, 2], [3, 4]])
            self.assertTrue(s.destination_device("replica:1").endswith("CPU:1"))

    def test_values_from_function(self):
        with Strategy(3) as s:
            value = s.values_from_function(lambda context: {"id": context.replica_id, "of": context.num_replicas})
            self.assertEqual([part.item() for part in value["id"]], [0, 1, 2])

            def fails(context):
                if context.replica_id == 1:
                    raise RuntimeError("no value for 1")
                return 0

            with self.assertRaisesRegex(RuntimeError, "no value for 1"):
                s.values_from_function(fails)


if __name__ == "__main__":
    unittest.main()
