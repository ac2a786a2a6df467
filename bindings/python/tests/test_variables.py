# SPDX-License-Identifier: Apache-2.0
"""Variables, updates, cross-device operations, strategies of the program's own."""

import gc
import math
import unittest

import numpy as np

from libdist import (
    Aggregation,
    Assign,
    CommunicationOptions,
    CrossDevice,
    CrossDeviceKind,
    DataLoss,
    Destination,
    HostFunctions,
    InvalidArgument,
    ReduceOp,
    Scatter,
    Strategy,
    StrategyKind,
    Synchronization,
    Value,
    ValueKind,
    Variable,
)


class Variables(unittest.TestCase):
    def setUp(self):
        self.strategy = Strategy(2)
        self.addCleanup(self.strategy.close)

    def test_what_a_variable_is(self):
        with self.strategy.variable(np.zeros((2, 3), np.float32), name="w") as w:
            self.assertEqual((w.name, w.class_name, w.num_copies), ("w", "MirroredVariable", 2))
            self.assertEqual(w.synchronization, Synchronization.ON_WRITE)
            self.assertEqual(w.aggregation, Aggregation.NONE)
            self.assertEqual(w.copy_name(1), "w/replica_1")
            self.assertTrue(w.device(1).endswith("CPU:1"))
            self.assertIn('MirroredVariable: 0: "w"', w.describe())
            self.assertTrue(self.strategy.variable_created_in_scope(w))
        with self.assertRaisesRegex(RuntimeError, "closed"):
            w.read()

    def test_reading_and_assigning(self):
        v = self.strategy.variable(lambda: np.ones(2), name="v")
        v.assign(np.array([3.0, 4.0]))
        v.assign_add(np.ones(2))
        v.assign_sub(np.array([0.0, 1.0]))
        self.assertEqual(v.read().tolist(), [4, 4])
        self.assertEqual(np.asarray(v).tolist(), [4, 4])
        v.assign(self.strategy.per_replica([np.zeros(2), np.ones(2)]))
        self.assertEqual(v.component(1).tolist(), [1, 1])
        with self.assertRaises(DataLoss) as caught:
            v.check_drift()
        self.assertEqual((caught.exception.replica, caught.exception.tag), (1, "v"))
        v.component(1)[:] = 0
        self.assertEqual(v.check_drift().replica, -1)

    def test_a_component_outlives_the_variable(self):
        v = self.strategy.variable(np.arange(3.0))
        view = v.component(0)
        v.close()
        del v
        gc.collect()
        view += 1
        self.assertEqual(view.tolist(), [1, 2, 3])

    def test_inside_replicas(self):
        v = self.strategy.variable(np.zeros(2), aggregation=Aggregation.SUM)
        own = self.strategy.variable(np.zeros(()), synchronization=Synchronization.ON_READ, aggregation=Aggregation.SUM)

        def step(replica, given):
            self.assertIs(given, v)
            replica.assign(v, np.full(2, replica.id + 1.0))
            before = replica.read(v).tolist()
            replica.assign(own, np.float64(replica.id + 1), Assign.ADD)
            slices = replica.strategy.indexed_slices(np.ones((1,)), np.array([replica.id]))
            replica.scatter(v, Scatter.ADD, slices)
            return before, given

        out = self.strategy.run_values(step, (v,))
        self.assertEqual([part.item() for part in out[0][0]], [3, 3])
        self.assertIs(out[1], v)
        self.assertEqual(v.read().tolist(), [4, 4])
        self.assertEqual(own.read(), 3)

    def test_one_object_from_all_replicas_is_one_number(self):
        v = self.strategy.variable(np.zeros(2), aggregation=Aggregation.MEAN)
        ours = np.array([2.0, 4.0])
        self.strategy.run(lambda replica: replica.assign_value(v, ours))
        self.assertEqual(v.read().tolist(), [2, 4])
        w = self.strategy.variable(np.zeros(2), aggregation=Aggregation.SUM)
        with self.assertRaises(InvalidArgument):
            self.strategy.run(lambda replica: replica.assign_value(w, ours))
        self.strategy.run(lambda replica: replica.assign_value(w, ours.copy()))
        self.assertEqual(w.read().tolist(), [4, 8])

    def test_a_variable_by_name(self):
        def step(replica):
            w = replica.variable("w", np.ones(2) * (replica.id + 5))
            w.component(replica.id)[:] += 1
            return w

        first, second = self.strategy.run(step)
        self.assertIs(first, second)
        self.assertEqual(first.read().tolist(), [6, 6])
        self.assertIs(self.strategy.run(step)[0], first)
        self.strategy.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            first.read()

    def test_updates(self):
        v = self.strategy.variable(np.zeros(2))
        x = self.strategy.per_replica([np.ones(2), np.full(2, 2.0)])

        def add(place, x):
            place.copy += x

        self.strategy.update(v, add, (x,), parallel=True)
        self.assertEqual(v.component(1).tolist(), [2, 2])
        places = []

        def put(place, x, *, scale):
            places.append((place.replica, place.device[-5:]))
            place.copy[:] = x * scale
            return place.copy[0]

        out = self.strategy.update(v, put, (x,), {"scale": 10})
        self.assertEqual(places, [(0, "CPU:0"), (1, "CPU:1")])
        self.assertEqual([part.item() for part in out], [10, 20])
        loose = self.strategy.update(v, put, (x,), {"scale": 1}, group=False)
        self.assertIsInstance(loose, tuple)
        rows = self.strategy.update_non_slot(lambda place, x: x.sum(), (x,))
        self.assertEqual([part.item() for part in rows], [2, 4])

        def inside(replica):
            return replica.update(v, put, (np.float64(replica.id),), {"scale": 3}).item()

        self.assertEqual(self.strategy.run(inside), [0, 3])

    def test_an_update_that_raises(self):
        v = self.strategy.variable(np.zeros(2))

        class Mine(Exception):
            pass

        def broken(copy):
            raise Mine("update")

        for call in (
            lambda: self.strategy.update(v, broken),
            lambda: self.strategy.update(v, broken, parallel=True),
            lambda: self.strategy.update_non_slot(broken),
            lambda: self.strategy.run(lambda replica: replica.update(v, broken)),
            lambda: self.strategy.variable(lambda: broken(None)),
            lambda: self.strategy.run(lambda replica: replica.variable("x", lambda: broken(None))),
        ):
            with self.assertRaises(Mine):
                call()

    def test_containers_and_scatter(self):
        v = self.strategy.variable(np.zeros((3, 2)))
        v.scatter(Scatter.ADD, self.strategy.indexed_slices(np.ones((1, 2)), np.array([2])))
        self.assertEqual(v.read()[2].tolist(), [1, 1])
        copies = self.strategy.local_results(v)
        self.assertEqual(len(copies), 2)
        self.assertIs(self.strategy.value_container(copies[1]), v)
        self.assertIsNone(self.strategy.value_container(np.ones(1)))
        with self.strategy.scope(), self.strategy.colocate(v):
            self.strategy.variable(np.zeros(1)).close()

    def test_destinations(self):
        v = self.strategy.variable(np.zeros(2))
        x = self.strategy.per_replica([np.ones(2), np.ones(2)])
        self.assertEqual(self.strategy.reduce_to(ReduceOp.SUM, x, v).kind, ValueKind.MIRRORED)
        self.assertEqual(self.strategy.reduce_to(ReduceOp.SUM, x, Destination(device="CPU:0")).tolist(), [2, 2])
        for bad in (Destination(), Destination(device="CPU:0", variable=v)):
            with self.assertRaises(InvalidArgument):
                self.strategy.reduce_to(ReduceOp.SUM, x, bad)


class CrossDeviceOps(unittest.TestCase):
    def test_without_a_strategy(self):
        with Strategy(2) as s, CrossDevice(CrossDeviceKind.REDUCTION_TO_ONE_DEVICE, reduce_to_device="CPU:1") as ops:
            x = s.per_replica([np.ones(2), np.ones(2)])
            self.assertEqual(ops.kind, CrossDeviceKind.REDUCTION_TO_ONE_DEVICE)
            self.assertTrue(ops.device.endswith("CPU:1"))
            self.assertEqual(ops.reduce(ReduceOp.SUM, x, "CPU:0").tolist(), [2, 2])
            self.assertEqual(ops.batch_reduce(ReduceOp.SUM, [(x, x)])[0].kind, ValueKind.MIRRORED)
            self.assertEqual(ops.broadcast(np.ones(1), x).kind, ValueKind.MIRRORED)
            self.assertEqual(ops.gather(x).tolist(), [1] * 4)

    def test_an_operator(self):
        def largest(acc, values):
            np.maximum(acc, values, out=acc)

        ops = CrossDevice(CrossDeviceKind.REDUCTION_TO_ONE_DEVICE, accumulate=largest)
        with Strategy(2, cross_device=ops) as s:
            x = s.per_replica([np.array([1.0, 5.0]), np.array([3.0, 4.0])])
            self.assertEqual(s.batch_reduce_to(ReduceOp.SUM, [(x, "CPU:0")])[0].tolist(), [3, 5])

    def test_functions(self):
        def reduce(op, components, out):
            self.assertEqual(op, ReduceOp.SUM)
            out[...] = 100 + sum(components)

        def broadcast(value, copies):
            for r, copy in enumerate(copies):
                copy[...] = value + r

        def gather(components, axis, out):
            out[...] = np.concatenate(components[::-1], axis)

        with CrossDevice(CrossDeviceKind.HOST, functions=HostFunctions(reduce, broadcast, gather)) as ops:
            with Strategy(2, cross_device=ops) as s:
                x = s.per_replica([np.ones(2), np.full(2, 2.0)])
                self.assertEqual(s.reduce(ReduceOp.SUM, x).tolist(), [103, 103])
                self.assertEqual([part[0] for part in s.broadcast_to(np.ones(1))], [1, 2])
                self.assertEqual(s.gather(x).tolist(), [2, 2, 1, 1])

    def test_a_function_that_raises_comes_back(self):
        def broken(op, components, out):
            raise KeyError("mine")

        functions = HostFunctions(broken)
        with CrossDevice(CrossDeviceKind.HOST, functions=functions) as ops, Strategy(2, cross_device=ops) as s:
            x = s.per_replica([np.ones(2), np.ones(2)])
            with self.assertRaises(KeyError):
                s.reduce(ReduceOp.SUM, x)
            with self.assertRaises(KeyError):
                ops.reduce(ReduceOp.SUM, x, "CPU:0")
        with Strategy(2, devices=["CPU:0", "CPU:1"], functions=HostFunctions(broken, shared_copy=True)) as s:
            self.assertEqual(s.variable(np.zeros(1)).num_copies, 1)
            with self.assertRaises(KeyError):
                s.reduce(ReduceOp.SUM, s.per_replica([np.ones(2), np.ones(2)]))

    def test_communication_options(self):
        base = CommunicationOptions(bytes_per_pack=10, timeout=2.5)
        merged = base.merge(CommunicationOptions(bytes_per_pack=20))
        self.assertEqual((merged.bytes_per_pack, merged.timeout), (20, 2.5))
        self.assertEqual(base.merge(CommunicationOptions(timeout=math.inf)).timeout, math.inf)
        self.assertEqual(repr(CommunicationOptions().merge(None)), "CommunicationOptions(bytes_per_pack=0, timeout=None)")
        for size, error in ((-1, InvalidArgument), (2**63, InvalidArgument)):
            with self.assertRaisesRegex(error, "bytes_per_pack"):
                CommunicationOptions(bytes_per_pack=size).merge(None)
        with Strategy(2, communication=base) as s:
            s.run(lambda replica: replica.barrier())

    def test_central_storage(self):
        with Strategy(2, kind=StrategyKind.CENTRAL_STORAGE) as s:
            v = s.variable(np.zeros(1), aggregation=Aggregation.MEAN)
            self.assertEqual((v.class_name, v.num_copies), ("AggregatingVariable", 1))
            s.run(lambda replica: replica.assign(v, np.array([replica.id * 4.0])))
            self.assertEqual(v.read().item(), 2)
            self.assertIsInstance(v, Variable)


if __name__ == "__main__":
    unittest.main()
