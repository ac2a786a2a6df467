# SPDX-License-Identifier: Apache-2.0
"""The example of TPUStrategy with logical devices from the tf.distribute documentation.

One replica has eight logical devices. A batch of images is split over them, 2 ways in height and 4 ways in width. The
model of this example inverts the images. The program prints each device's part of the output, like
examples/tpu_split.c.
"""

import numpy as np

import libdist
from libdist import DeviceAssignment, StrategyKind, Topology

WHITE = 1000


def model(device, images):
    """Runs on all eight devices at the same time. `images` is this device's part, a view."""
    return WHITE - images


def step(replica, images):
    """Runs on the replica. The output can still be read as one array of all images."""
    split = replica.split_to_logical_devices(images, [1, 2, 4, 1])
    return replica.run_on_devices(model, (split,))


# Topology.from_host() would return a topology with this machine's CPUs.
topology = Topology([1, 2, 2, 2], [[(0, y, z, core) for y in (0, 1) for z in (0, 1) for core in (0, 1)]])
assignment = DeviceAssignment.build(topology, computation_shape=[1, 2, 2, 2], num_replicas=1)
images = np.arange(4 * 4 * 8 * 3, dtype=np.int32).reshape(4, 4, 8, 3)

with libdist.Strategy(kind=StrategyKind.MESH, device_assignment=assignment, use_spmd_partitioning=True) as strategy:
    for batch in strategy.dataset_from_tensors(images, global_batch_size=4):
        output = strategy.run_values(step, (batch,))
        for d in range(strategy.num_logical_devices):
            part, (_, row, column, _) = output.shard(d), output.shard_begin(d)
            rows, columns = part.shape[1:3]
            print(
                f"logical device {d}: rows {row}-{row + rows - 1}, columns {column}-{column + columns - 1}, "
                f"first pixel {part[0, 0, 0, 0]}"
            )
        wrong = np.count_nonzero(output.numpy() != WHITE - images)
        print(f"all {images.size} pixels: {wrong} wrong")
