# SPDX-License-Identifier: Apache-2.0
"""devices.c in Python: one replica with 2 x 2 logical devices. A matrix is split over them, and each row of devices
adds up its tiles."""

import numpy as np

import libdist
from libdist import DeviceAssignment, ReduceOp, StrategyKind, Topology


def add_rows(device, tile):
    """Runs on each device at the same time, with this device's tile."""
    row, column = device.device_axis("row")[0], device.device_axis("column")[0]
    print(f"device {device.id} in row {row}, column {column}: {tile.sum():g}\n", end="")  # one write
    group = device.device_axis_group("column")  # the devices of a row differ in their column
    return device.all_reduce(ReduceOp.SUM, tile.sum(keepdims=True), group=group)


def step(replica, matrix):
    """Runs on the replica: splits the matrix, and joins the results of the devices."""
    split = replica.split_to_logical_devices(matrix, [2, 2])
    return replica.run_on_devices(add_rows, (split,))


# Four devices in a line; Topology.from_host() would return the CPUs of this machine.
topology = Topology([4, 1, 1, 1], [[(x, 0, 0, 0) for x in range(4)]])
assignment = DeviceAssignment.build(topology, computation_shape=[4, 1, 1, 1], num_replicas=1)
axes = {"row": 2, "column": 2}
with libdist.Strategy(kind=StrategyKind.MESH, device_assignment=assignment, axes=axes) as strategy:
    result = strategy.run_values(step, (np.arange(16.0).reshape(4, 4),))
    print("result:", result.numpy().astype(int).tolist())  # the tiles of all devices together
