# SPDX-License-Identifier: Apache-2.0
"""Variables on parameter servers: where they lie, how they are read, changed, saved and restored."""

import os
import tempfile
import unittest

import numpy as np
from servers_together import Together

import libdist
from libdist import (
    AlreadyExists,
    Assign,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    Scatter,
)

F32 = np.float32


def add_and_double(closure, x):
    closure.assign_add("v", x)
    return 2 * x


class Variables(unittest.TestCase):
    def together(self, *args, **options):
        cluster = Together(*args, **options)
        self.addCleanup(cluster.close)
        return cluster.coordinator

    def test_they_take_turns_on_the_servers(self):
        coordinator = self.together(2, 1)
        for i in range(5):
            coordinator.create_variable(f"s{i}", F32(i))
        coordinator.create_variable("divided", np.arange(14, dtype=F32).reshape(7, 2), partitions=[3, 1])
        coordinator.create_variable("after", F32(0))
        place = "/job:ps/replica:0/task:{}/device:CPU:0".format
        devices = [coordinator.variable_part(f"s{i}", 0).device for i in range(5)]
        self.assertEqual(devices, [place(i % 2) for i in range(5)])
        parts = [coordinator.variable_part("divided", i) for i in range(3)]
        self.assertEqual(parts, [(place(1), 0, 3), (place(0), 3, 2), (place(1), 5, 2)])
        self.assertEqual(coordinator.variable_part("after", 0).device, place(0))
        self.assertEqual(coordinator.variables[4:], ["s4", "divided", "after"])
        self.assertEqual(coordinator.variable_spec("divided"), (libdist.DType.F32, (7, 2), 3))
        divided, s3 = coordinator.read(["divided", "s3"])
        self.assertEqual((divided.tolist(), s3), (np.arange(14).reshape(7, 2).tolist(), 3))
        rows = coordinator.read_rows("divided", np.array([6, 0, 3, 6], np.int32))
        self.assertEqual(rows[:, 0].tolist(), [12, 0, 6, 12])
        coordinator.scatter("divided", Scatter.ADD, (rows, np.array([6, 0, 3, 6])))
        self.assertEqual(coordinator.read("divided")[6].tolist(), [36, 39])
        whole = np.arange(14, dtype=F32).reshape(2, 7).T  # strided
        coordinator.assign("divided", whole)
        coordinator.assign_add("divided", whole)
        coordinator.assign("divided", whole, Assign.SUB)
        self.assertEqual(coordinator.read("divided").tolist(), whole.tolist())
        with self.assertRaises(AlreadyExists):
            coordinator.create_variable("s0", F32(0))
        for name, initial, options in (
            ("", F32(0), {}),
            ("x", np.zeros(2, F32), {"partitions": [0]}),
            ("x", np.zeros(2, F32), {"partitions": [3]}),
            ("x", np.zeros((2, 2), F32), {"partitions": [1, 2]}),
        ):
            with self.subTest(str(options)), self.assertRaises(InvalidArgument):
                coordinator.create_variable(name, initial, **options)
        with self.assertRaises(InvalidArgument):
            coordinator.assign("s0", np.zeros(2, F32))
        with self.assertRaises(NotFound):
            coordinator.read("x")
        with self.assertRaises(InvalidArgument):
            coordinator.read_rows("divided", np.array([7]))
        with self.assertRaisesRegex(TypeError, "slices are a pair"):
            coordinator.scatter("divided", Scatter.ADD, np.zeros(3))

    def test_a_list_is_a_tensor_wherever_one_is_wanted(self):
        def change(closure):
            closure.assign_add("v", [[1, 1], (1, 1), [1, 1]])
            closure.scatter("v", Scatter.ADD, ([[10, 10]], [2]))
            return closure.read_rows("v", [2])

        coordinator = self.together(1, 1, closures={"change": change})
        coordinator.create_variable("v", [[1, 2], (3, 4), [5, 6]])
        coordinator.assign_add("v", [[1, 1], (1, 1), [1, 1]])
        coordinator.assign("v", ((1, 2), (3, 4), (5, 6)))
        coordinator.scatter("v", Scatter.ADD, ([[10, 10]], [1]))
        self.assertEqual(coordinator.read_rows("v", (1, 0)).tolist(), [[13, 14], [1, 2]])
        self.assertEqual(coordinator.schedule("change").result().tolist(), [[5, 6]])
        self.assertEqual(coordinator.read_rows("v", [2]).tolist(), [[16, 17]])
        for change in (coordinator.create_variable, coordinator.assign):
            with self.assertRaisesRegex(OverflowError, "^0x400000000000000000 does not fit 64 bits"):
                change("w", [1, 2**70])

    def test_a_partitioner_of_the_programs_own(self):
        seen = []

        def partitioner(shape, dtype):
            seen.append((shape, dtype))
            if shape == (9,):
                raise KeyError("nine")
            return [1] if shape == (8, 8) else libdist.min_size_shards(shape, 0, dtype.itemsize, 8, 2)

        coordinator = self.together(2, 1, partitioner=partitioner)
        coordinator.create_variable("scalar", F32(0))
        coordinator.create_variable("x", np.zeros((4, 3), np.int64))
        self.assertEqual(seen, [((4, 3), np.dtype(np.int64))])
        self.assertEqual(coordinator.variable_spec("x").num_parts, 2)
        with self.assertRaisesRegex(KeyError, "nine"):  # the very exception
            coordinator.create_variable("y", np.zeros(9))
        with self.assertRaisesRegex(InvalidArgument, "must return one number per dimension"):
            coordinator.create_variable("y", np.zeros((8, 8)))
        coordinator.create_variable("y", np.zeros(9), partitions=[1])
        self.assertEqual(coordinator.variables, ["scalar", "x", "y"])

    def test_update_functions_change_what_lies_alike(self):
        def momentum(variables, gradient):
            w, m = variables
            m[...] = 0.5 * m + gradient
            w -= m

        def half_done(variables):
            variables[0][0] = 77
            raise OutOfRange("half done")

        def step(closure, gradient):
            closure.update("momentum", ["w", "m"], gradient)

        updates = {"momentum": momentum, "half_done": half_done}
        coordinator = self.together(2, 1, closures={"step": step}, updates=updates)
        coordinator.create_variable("w", np.zeros(3, F32), partitions=[2])
        coordinator.create_variable("m", np.zeros(3, F32), colocate_with="w")
        with self.assertRaises(NotFound):
            coordinator.create_variable("n", np.zeros(3, F32), colocate_with="nothing")
        gradient = np.array([1, 2, 3], F32)
        for _ in range(2):
            coordinator.schedule("step", gradient)
        coordinator.join()
        self.assertEqual(coordinator.read("w").tolist(), [-2.5, -5, -7.5])
        with self.assertRaisesRegex(OutOfRange, "half done"):
            coordinator.update("half_done", ["w"])
        with self.assertRaises(NotFound):
            coordinator.update("nowhere", ["w"])
        self.assertEqual(coordinator.read("w")[0], -2.5)

    def test_closures_read_and_scatter_rows(self):
        def step(closure, indices):
            rows, scale = closure.read_rows("table", indices), closure.read("scale")
            closure.scatter("table", Scatter.SUB, (rows * scale, indices))
            closure.assign_sub("scale", F32(1))
            return closure.read("scale")  # does not see the closure's own change

        coordinator = self.together(2, 1, closures={"step": step})
        coordinator.create_variable("table", np.ones((5, 2), F32), partitions=[2, 1])
        coordinator.create_variable("scale", F32(0.5))
        self.assertEqual(coordinator.schedule("step", np.array([4, 0])).result(), 0.5)
        self.assertEqual(coordinator.read("table")[:, 0].tolist(), [0.5, 1, 1, 1, 0.5])
        self.assertEqual(coordinator.read("scale"), -0.5)

    def test_a_checkpoint_goes_on_from_its_mark(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "variables")
            for part in range(2):
                coordinator = self.together(2 - part, 1, closures={"add_and_double": add_and_double})  # the second time on other servers
                coordinator.create_variable("v", F32(0))
                first = coordinator.restore(path) if part else 0
                self.assertEqual((first, coordinator.read("v")), (3, 6) if part else (0, 0))
                for x in range(first, first + 3):
                    coordinator.schedule("add_and_double", F32(x + 1))
                coordinator.join()
                with self.assertRaisesRegex(FailedPrecondition, "before the first closure"):
                    coordinator.restore(path)
                coordinator.save(path)
            self.assertEqual(coordinator.read("v"), 21)


if __name__ == "__main__":
    unittest.main()
