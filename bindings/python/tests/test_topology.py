# SPDX-License-Identifier: Apache-2.0
"""Topologies, device assignments, partitions: arithmetic without a strategy, and what Python gives wrongly."""

import gc
import os
import unittest

import numpy as np

import libdist
from libdist import (
    DeviceAssignment,
    DeviceOrder,
    DType,
    FailedPrecondition,
    InvalidArgument,
    Partition,
    PartitionKind,
    Topology,
    reshard_bytes,
)

# 2 x 2 x 1 x 2, the devices of the last position left out.
COORDINATES = [[(x, y, 0, core) for x in (0, 1) for y in (0, 1) for core in (0, 1)][:7]]


class Topologies(unittest.TestCase):
    def setUp(self):
        self.topology = Topology([2, 2, 1, 2], COORDINATES)

    def test_what_it_is(self):
        topology = self.topology
        self.assertEqual((topology.mesh_rank, topology.mesh_shape), (4, (2, 2, 1, 2)))
        self.assertEqual((topology.num_tasks, topology.num_devices_per_task), (1, 7))
        self.assertEqual(topology.device_coordinates.tolist(), [[list(at) for at in COORDINATES[0]]])
        self.assertEqual(topology.missing_devices.tolist(), [[1, 1, 0, 1]])
        self.assertEqual((topology.device_at((1, 0, 0, 1)), topology.task_at([1, 0, 0, 1])), (5, 0))
        self.assertEqual((topology.device_at((-1, -1, 0, 1)), topology.task_at(np.array([1, 1, 0, 1]))), (-1, -1))
        self.assertEqual(topology.device_name_at((0, 0, 0, 1), "worker"), "/job:worker/task:0/device:TPU:1")
        self.assertEqual(topology.host_name_at((0, 0, 0, 1)), "/task:0/device:CPU:0")
        self.assertIn("2", topology.explain())
        with self.assertRaises(FailedPrecondition):
            topology.cpu_at((0, 0, 0, 0))

    def test_the_host(self):
        topology = Topology.from_host()
        cpus = {topology.cpu_at(at) for at in topology.device_coordinates[0]}
        self.assertEqual(cpus, os.sched_getaffinity(0))
        self.assertTrue(topology.explain().splitlines())

    def test_wrong_ones_are_refused(self):
        for mesh, coordinates in (
            ([2, 2, 1], [[(0, 0, 0)]]),
            ([2, 2, 1, 2], [[(0, 0, 0)]]),
            ([2, 2, 1, 2], [(0, 0, 0, 0)]),
            ([2, 2, 1, 2], [[(0, 0, 0, 2)]]),
            ([2, 2, 1, 2**32 + 2], [[(0, 0, 0, 0)]]),
            ([0, 2, 1, 2], [[(0, 0, 0, 0)]]),
        ):
            with self.subTest(mesh=mesh), self.assertRaises(InvalidArgument):
                Topology(mesh, coordinates)
        with self.assertRaises(TypeError):
            Topology([2.0, 2, 1, 2], COORDINATES)
        for at in ((0, 0, 0), (0,) * 5, (0, 0, 0, 9), ()):
            with self.subTest(at=at), self.assertRaises(InvalidArgument):
                self.topology.device_at(at)


class Assignments(unittest.TestCase):
    def setUp(self):
        self.topology = Topology([1, 1, 2, 2], [[(0, 0, z, core) for z in (0, 1) for core in (0, 1)]])

    def test_built(self):
        assignment = DeviceAssignment.build(self.topology, [1, 1, 1, 2], num_replicas=2)
        self.assertEqual((assignment.num_replicas, assignment.num_logical_devices), (2, 2))
        self.assertEqual(assignment.core_assignment.shape, (2, 2, 4))
        at = assignment.coordinates(-1, -1)
        self.assertEqual(at, tuple(assignment.core_assignment[1, 1]))
        self.assertEqual(assignment.device(1, 1), self.topology.device_at(at))
        self.assertEqual(assignment.device_name(1, 1), self.topology.device_name_at(at))
        self.assertEqual(assignment.host_name(1, 1, "worker"), "/job:worker/task:0/device:CPU:0")
        self.assertEqual(assignment.lookup_replicas(0, 1), [0, 1])
        with self.assertRaises(InvalidArgument):
            assignment.lookup_replicas(3, 1)

    def test_by_hand(self):
        cores = [[(0, 0, 1, 1), (0, 0, 0, 0)]]
        assignment = DeviceAssignment(self.topology, cores)
        self.assertEqual(assignment.core_assignment.tolist(), [[list(at) for at in cores[0]]])
        single = DeviceAssignment.single(self.topology)
        self.assertEqual(single.core_assignment.tolist(), [[[0, 0, 0, 0]]])

    def test_its_topology_outlives_the_one_it_was_given(self):
        assignment = DeviceAssignment.build(self.topology, [1, 1, 2, 2])
        del self.topology
        gc.collect()
        topology = assignment.topology
        del assignment
        gc.collect()
        self.assertEqual(topology.mesh_shape, (1, 1, 2, 2))

    def test_wrong_ones_are_refused(self):
        for given in (
            {"computation_shape": [1, 1, 2]},
            {"computation_shape": [1, 1, 2, 2], "num_replicas": 2},
            {"computation_shape": [1, 1, 2, 2], "computation_stride": [1, 1, 1]},
            {"computation_shape": [1, 1, 2, 1], "device_order": DeviceOrder.RING},
            {"num_replicas": -1},
        ):
            with self.subTest(**given), self.assertRaises(InvalidArgument):
                DeviceAssignment.build(self.topology, **given)
        for cores in ([(0, 0, 0, 0)], [[(0, 0, 0)]], [[(0, 0, 0, 7)]]):
            with self.subTest(cores=cores), self.assertRaises(InvalidArgument):
                DeviceAssignment(self.topology, cores)


class Partitions(unittest.TestCase):
    def test_split(self):
        partition = Partition.split((4, 6), (2, 3))
        self.assertEqual(partition.num_logical_devices, 6)
        partition.check()
        shard = partition.shard(4)
        self.assertEqual(shard, libdist.Shard((1, 1), (2, 2), (2, 2), 4))
        uneven = Partition.split((5,), (3,), uneven=True)
        self.assertEqual([uneven.shard(d).size for d in range(3)], [(2,), (2,), (1,)])
        self.assertEqual(Partition.split((-1, 6), (2, 3)).shard(1).size, (-1, 2))

    def test_assign_and_replicate(self):
        assigned = Partition.assign((2, 2), 1, 3)
        self.assertEqual([assigned.shard(d).elements for d in range(3)], [0, 4, 0])
        self.assertEqual([Partition.replicate((2, 2), 3).shard(d).elements for d in range(3)], [4, 4, 4])
        with self.assertRaises(InvalidArgument):
            Partition(PartitionKind.ASSIGN, (2, 2), (), 3, 1, spmd=True).check()

    def test_wrong_ones_are_refused(self):
        for partition in (
            Partition.split((5,), (3,)),
            Partition.split((4, 4), (2,)),
            Partition(PartitionKind.SPLIT, (4,), (2,), 3),
            Partition(9, (4,), (2,), 2),
            Partition.assign((4,), 3, 3),
            Partition.split((2,) * 17, (1,) * 17),
        ):
            with self.subTest(partition), self.assertRaises(InvalidArgument):
                partition.check()
        with self.assertRaises(InvalidArgument):
            Partition.split((4,), (2,)).shard(2)

    def test_bytes_that_move(self):
        rows, columns = Partition.split((4, 4), (2, 1)), Partition.split((4, 4), (1, 2))
        self.assertEqual(reshard_bytes(rows, columns, DType.F32), 32)
        self.assertEqual(reshard_bytes(rows, columns, DType.F32, 1), 16)
        self.assertEqual(reshard_bytes(rows, rows, DType.F64), 0)
        with self.assertRaises(InvalidArgument):
            reshard_bytes(rows, columns, 0)


if __name__ == "__main__":
    unittest.main()
