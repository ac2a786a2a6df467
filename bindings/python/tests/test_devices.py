# SPDX-License-Identifier: Apache-2.0
"""Replicas of logical devices: divided tensors, functions on all devices, what moves between them, and failures."""

import gc
import threading
import unittest

import numpy as np

import libdist
from libdist import (
    Aborted,
    Collective,
    DeadlineExceeded,
    DeviceAssignment,
    DeviceOrder,
    Edge,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Partition,
    PartitionKind,
    ReduceOp,
    Strategy,
    StrategyKind,
    Topology,
    Value,
    ValueKind,
)


class Mine(Exception):
    """A program's own exception."""


def assignment_of(replicas, y, z):
    """Replicas of y * z logical devices each."""
    devices = [[(x, j, k, 0) for x in range(replicas) for j in range(y) for k in range(z)]]
    topology = Topology([replicas, y, z, 1], devices)
    return DeviceAssignment.build(topology, [1, y, z, 1], num_replicas=replicas, device_order=DeviceOrder.MESH)


def mesh(replicas=1, y=2, z=2, **options):
    return Strategy(kind=StrategyKind.MESH, device_assignment=assignment_of(replicas, y, z), **options)


class Devices(unittest.TestCase):
    def setUp(self):
        self.strategy = mesh(axes={"rows": 2, "columns": 2})
        self.addCleanup(self.strategy.close)
        self.addCleanup(self.still_usable)  # runs first

    def still_usable(self):
        total = self.on_devices(lambda device: device.all_reduce(ReduceOp.SUM, np.ones(2)))
        self.assertEqual(total.numpy().tolist(), [4.0, 4.0])

    def on_replica(self, fn):
        return self.strategy.run(fn)[0]

    def on_devices(self, fn, *args, **options):
        return self.on_replica(lambda replica: replica.run_on_devices(fn, args, **options))


class Values(Devices):
    def test_a_split_tensor_is_the_tensor_and_its_parts(self):
        x = np.arange(24.0).reshape(4, 6)
        value = self.on_replica(lambda replica: replica.split_to_logical_devices(x, [2, 2]))
        self.assertIsInstance(value, Value)
        self.assertEqual((value.kind, value.shape, len(value)), (ValueKind.SHARDED, (4, 6), 4))
        self.assertTrue(np.shares_memory(value.numpy(), x))
        self.assertEqual(value.partition, Partition.split((4, 6), (2, 2)))
        for d in range(4):
            part, (row, column) = value.shard(d), value.shard_begin(d)
            np.testing.assert_array_equal(part, x[row : row + 2, column : column + 3])
            self.assertTrue(np.shares_memory(part, x))
            self.assertFalse(part.flags.writeable)
        with self.assertRaises(InvalidArgument):
            value.shard(4)

    def test_a_part_keeps_the_whole(self):
        part = self.on_replica(lambda replica: replica.split_to_logical_devices(np.full((4, 4), 7.0), [2, 2])).shard(3)
        gc.collect()
        self.assertEqual(part.tolist(), [[7.0, 7.0], [7.0, 7.0]])

    def test_assigned_and_replicated(self):
        x = np.arange(3.0)
        assigned = self.on_replica(lambda replica: replica.assign_to_logical_device(x, 2))
        self.assertEqual(assigned.partition.kind, PartitionKind.ASSIGN)
        self.assertEqual(assigned.shard(2).tolist(), [0.0, 1.0, 2.0])
        with self.assertRaises(NotFound):
            assigned.shard(0)
        replicated = self.on_replica(lambda replica: replica.replicate_to_logical_devices({"a": [x, None]}))
        self.assertEqual(replicated["a"][0].shard(3).tolist(), [0.0, 1.0, 2.0])
        self.assertIsNone(replicated["a"][1])

    def test_uneven_parts(self):
        def step(replica):
            with self.assertRaises(ValueError):
                replica.split_to_logical_devices(np.arange(5), [4])
            return replica.split_to_logical_devices(np.arange(5), [4], uneven=True)

        value = self.on_replica(step)
        self.assertEqual([value.shard(d).tolist() for d in range(4)], [[0, 1], [2], [3], [4]])

    def test_a_variable_is_split_as_the_replicas_copy(self):
        variable = self.strategy.variable(np.arange(4.0))
        value = self.on_replica(lambda replica: replica.split_to_logical_devices(variable, [4]))
        self.assertEqual(value.shard(3).tolist(), [3.0])

    def test_spmd_refuses_assignment(self):
        with mesh(use_spmd_partitioning=True) as strategy, self.assertRaises(InvalidArgument):
            strategy.run(lambda replica: replica.assign_to_logical_device(np.ones(2), 0))

    def test_what_is_not_divided_has_no_parts(self):
        value = self.strategy.value(np.ones(3))
        for ask in (lambda: value.partition, lambda: value.shard(0)):
            with self.assertRaises(InvalidArgument):
                ask()


class Running(Devices):
    def test_each_device_gets_its_own(self):
        x = np.arange(16.0).reshape(4, 4)
        seen = {}

        def on_device(device, part, one, same, *, scale):
            seen[device.id] = (device.device_replica, device.num_replicas, part.tolist(), one is None, same)
            self.assertIs(libdist.get_replica(), device)
            return {"twice": part * scale, "sum": device.all_reduce(ReduceOp.SUM, part.sum())}

        def step(replica):
            self.assertEqual(replica.device_replica, -1)
            split = replica.split_to_logical_devices(x, [2, 2])
            one = replica.assign_to_logical_device(np.ones(1), 3)
            return replica.run_on_devices(on_device, (split, one, "text"), {"scale": 2.0})

        result = self.on_replica(step)
        np.testing.assert_array_equal(result["twice"].numpy(), 2 * x)
        self.assertEqual(result["twice"].partition.dimensions, (2, 2))
        self.assertEqual(result["sum"].numpy().tolist(), 120.0)
        self.assertEqual(result["sum"].partition.kind, PartitionKind.REPLICATE)
        self.assertEqual(seen[1], (0, 4, [[2.0, 3.0], [6.0, 7.0]], True, "text"))
        self.assertFalse(seen[3][3])

    def test_how_results_belong_together(self):
        def on_device(device):
            return np.full(2, device.id), np.full((1, 2), device.id)

        partitions = [Partition.assign((), 2, 4), Partition.split((4, 2), (4, 1))]
        one, tiles = self.on_devices(on_device, results=partitions)
        self.assertEqual(one.shard(2).tolist(), [2, 2])
        self.assertEqual(tiles.numpy().tolist(), [[d, d] for d in range(4)])
        with self.assertRaises(InvalidArgument):
            self.on_devices(on_device)
        with self.assertRaises(InvalidArgument):
            self.on_devices(on_device, results=Partition(9, (), (), 4))

    def test_nothing_and_the_programs_own_objects_come_back(self):
        thing = Mine("an object")
        self.assertIsNone(self.on_devices(lambda device: None))
        self.assertIs(self.on_devices(lambda device, given: given, thing), thing)

    def test_where_a_device_is(self):
        places = {}

        def on_device(device):
            rows = device.device_axis_group("rows")
            total = device.all_reduce(ReduceOp.SUM, np.array([float(device.id)]), group=rows)
            place = (device.device_axis("rows"), device.device_axis("columns"))
            places[device.id] = (place, device.device_coordinates, rows.size, rows.rank(device.id), total[0])
            self.assertEqual(device.device, "/job:localhost/replica:0/task:0/device:CPU:0")

        self.on_devices(on_device)
        self.assertEqual(places[1][0], ((0, 2), (1, 2)))
        self.assertEqual(places[2][0], ((1, 2), (0, 2)))
        self.assertEqual([places[d][2:] for d in range(4)], [(2, 0, 2.0), (2, 0, 4.0), (2, 1, 2.0), (2, 1, 4.0)])
        assigned = self.strategy.device_assignment
        self.assertEqual([places[d][1] for d in range(4)], [assigned.coordinates(0, d) for d in range(4)])

        def wrong(device):
            with self.assertRaisesRegex(InvalidArgument, "columns"):
                device.device_axis("depth")

        self.on_devices(wrong)

    def test_several_replicas(self):
        with mesh(replicas=2) as strategy:
            self.assertEqual((strategy.num_replicas, strategy.num_logical_devices), (2, 4))

            def on_device(device, part):
                return device.all_reduce(ReduceOp.SUM, part)

            def step(replica, x):
                split = replica.split_to_logical_devices(x, [4])
                return replica.all_reduce(ReduceOp.SUM, replica.run_on_devices(on_device, (split,)).numpy())

            given = strategy.per_replica([np.arange(4.0), np.ones(4)])
            self.assertEqual([one.tolist() for one in strategy.run_values(step, (given,))], [[10.0] * 4] * 2)

    def test_other_strategies_have_no_logical_devices(self):
        with Strategy(2) as strategy:
            self.assertEqual((strategy.num_logical_devices, strategy.device_assignment), (1, None))
            with self.assertRaises(FailedPrecondition):
                strategy.run(lambda replica: replica.run_on_devices(lambda device: None))
        with self.assertRaises(InvalidArgument):
            mesh(axes={"rows": 3})


class Moving(Devices):
    def test_halo(self):
        x = np.arange(8.0)

        def on_device(device, part):
            given = device.halo_exchange(part, [4], low=1, high=[2], edges=Edge.WRAP)
            out = np.empty(3 if device.id in (0, 3) else 4)
            ends = device.halo_exchange(part, [4], low=1, high=1, edges=Edge.NONE, out=out)
            self.assertIs(ends, out)
            with self.assertRaises(InvalidArgument):
                device.halo_exchange(part, [4], low=1, edges=Edge.NONE)
            with self.assertRaises(InvalidArgument):
                device.halo_exchange(part, [4], low=[1, 1])
            return given.tolist(), ends.tolist()

        rows = {}

        def keep(device, part):
            rows[device.id] = on_device(device, part)

        self.on_replica(lambda replica: replica.run_on_devices(keep, (replica.split_to_logical_devices(x, [4]),)))
        self.assertEqual(rows[0], ([7.0, 0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0]))
        self.assertEqual(rows[3], ([5.0, 6.0, 7.0, 0.0, 1.0], [5.0, 6.0, 7.0]))

    def test_reshard(self):
        x = np.arange(16, dtype=np.int32).reshape(4, 4)
        rows, columns = Partition.split((4, 4), (4, 1)), Partition.split((4, 4), (1, 4))
        assigned = Partition.assign((4, 4), 1, 4)
        got = {}

        def on_device(device, part):
            column = device.reshard(rows, columns, part)
            whole = device.reshard(columns, assigned, column)
            back = device.reshard(assigned, rows, whole, dtype=libdist.DType.I32)
            got[device.id] = (column.ravel().tolist(), whole is None, back.tolist() == part.tolist())

        self.on_replica(
            lambda replica: replica.run_on_devices(on_device, (replica.split_to_logical_devices(x, [4, 1]),))
        )
        self.assertEqual(got, {d: (x[:, d].tolist(), d != 1, True) for d in range(4)})

    def test_between_replicas(self):
        with Strategy(3) as strategy:
            wide = strategy.run(lambda replica: replica.halo_exchange(np.array([replica.id]), [3], low=1).tolist())
        self.assertEqual(wide, [[0, 0], [0, 1], [1, 2]])


class Failures(Devices):
    def test_the_programs_own_exception_comes_back(self):
        error, told = Mine("tile 2"), {}

        def on_device(device):
            if device.id == 2:
                raise error
            try:
                device.all_reduce(ReduceOp.SUM, np.ones(2), tag="halo")
            except Aborted as report:
                told[device.id] = (report.replica, report.logical_device)
                raise

        with self.assertRaises(Mine) as caught:
            self.on_devices(on_device)
        self.assertIs(caught.exception, error)
        self.assertEqual(set(told.values()), {(0, 2)})

    def test_a_replica_may_go_on(self):
        def step(replica):
            with self.assertRaises(Mine):
                replica.run_on_devices(lambda device: self.fail_on(device, 1))
            return replica.run_on_devices(lambda device: device.all_reduce(ReduceOp.SUM, 1.0)).numpy().item()

        self.assertEqual(self.on_replica(step), 4.0)

    @staticmethod
    def fail_on(device, which):
        if device.id == which:
            raise Mine("here")
        device.barrier()

    def test_a_report_names_the_logical_device(self):
        def on_device(device):
            device.all_reduce(ReduceOp.SUM, np.ones(3 if device.id == 3 else 2), tag="grads")

        with self.assertRaises(InvalidArgument) as caught:
            self.on_devices(on_device)
        report = caught.exception
        self.assertEqual((report.logical_device, report.tag), (3, "grads"))
        self.assertEqual(report.collective, Collective.ALL_REDUCE)
        self.assertEqual(libdist.InvalidArgument("mine").logical_device, -1)

    def test_what_is_over_is_over(self):
        kept = []
        self.on_devices(kept.append)
        for call in (
            lambda: kept[0].barrier(),
            lambda: kept[0].device_axis("rows"),
            lambda: kept[0].device_coordinates,
            lambda: kept[0].halo_exchange(np.ones(1), [4]),
        ):
            with self.assertRaises(FailedPrecondition):
                call()

    def test_what_is_a_replicas_alone_is_refused(self):
        def on_device(device):
            for call in (
                lambda: device.merge_call(lambda strategy: None),
                lambda: device.run_on_devices(lambda inner: None),
                lambda: device.split_to_logical_devices(np.ones(4), [4]),
            ):
                with self.assertRaises(FailedPrecondition):
                    call()

        self.on_devices(on_device)

        def step(replica):
            for call in (lambda: replica.device_axis("rows"), lambda: replica.device_coordinates):
                with self.assertRaises(FailedPrecondition):
                    call()
            with self.assertRaises(TypeError):
                replica.run_on_devices(None)
            with self.assertRaises(TypeError):
                replica.run_on_devices(lambda device: None, "args")

        self.on_replica(step)

    def test_a_deadline(self):
        def step(replica):
            def on_device(device):
                if device.id != 1:
                    device.barrier(timeout=-1)
                else:
                    released.wait(60)

            try:
                replica.run_on_devices(on_device, timeout=0.01)
            finally:
                released.set()

        released = threading.Event()
        with self.assertRaises(DeadlineExceeded):
            self.strategy.run(step)
        for _ in range(1000):  # until the late one is out
            try:
                self.on_devices(lambda device: None)
                return
            except FailedPrecondition:
                threading.Event().wait(0.01)
        self.fail("the devices refuse runs still")

    def test_the_axis_group_ends_with_the_strategy(self):
        groups = []
        with mesh() as strategy:
            strategy.run(lambda replica: replica.run_on_devices(lambda d: groups.append(d.device_axis_group("y"))))
            self.assertEqual(groups[0].size, 2)
        with self.assertRaises(FailedPrecondition):
            groups[0].size


if __name__ == "__main__":
    unittest.main()
