#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records which part of an array each of 8 devices has under JAX's NamedSharding, for test_jax_layouts.c.

usage: record_jax_layouts.py > jax_layouts.txt      (requires the package jax; uses its CPU backend)

    mesh 2 x 2 y 4 devices 0 1 2 3 4 5 6 7     axes and their sizes; the mesh's devices, row-major
    array 2 4 8 over y -                       a shape, and the axes that split each dimension: "x,y" for both, "-" for none
    shard 0 begin 0 0 size 1 8                 the part of a device, one line for each
    refused                                    instead of shards: JAX does not support this layout
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

IN_ORDER = [0, 1, 2, 3, 4, 5, 6, 7]
MESHES = [
    ({"x": 8}, IN_ORDER, [([16], ["x"]), ([3, 8, 2], ["-", "x", "-"]), ([5, 7], ["-", "-"]), ([0], ["x"])]),
    (
        {"x": 2, "y": 4},
        IN_ORDER,
        [
            ([4, 4, 8, 3], ["-", "x", "y", "-"]),
            ([8, 8], ["y", "x"]),
            ([16, 3], ["x,y", "-"]),
            ([16, 3], ["y,x", "-"]),
            ([4, 8], ["x", "-"]),
            ([4, 8], ["-", "x"]),
            ([4, 8], ["y", "-"]),
            ([5, 7], ["-", "-"]),
            ([7, 4], ["x", "y"]),
            ([2, 6], ["x", "y"]),
            ([4, 3], ["-", "y"]),
            ([1], ["x"]),
            ([12], ["x,y"]),
        ],
    ),
    ({"x": 2, "y": 4}, IN_ORDER[::-1], [([4, 8], ["x", "y"]), ([8], ["y"]), ([8], ["x,y"])]),
    ({"x": 2, "y": 4}, [0, 1, 2, 3, 7, 6, 5, 4], [([4, 8], ["x", "y"]), ([4, 8], ["-", "y"])]),
    ({"x": 4, "y": 2}, [0, 4, 1, 5, 2, 6, 3, 7], [([4, 8], ["x", "y"]), ([8, 4], ["y", "x"])]),
    (
        {"x": 2, "y": 2, "z": 2},
        IN_ORDER,
        [
            ([2, 4, 6], ["x", "y", "z"]),
            ([2, 4, 6], ["z", "x", "y"]),
            ([8, 6], ["x,z", "y"]),
            ([8, 6], ["z,y", "-"]),
            ([4, 4], ["y", "-"]),
            ([4, 6], ["x,y", "z"]),
            ([8], ["z,y,x"]),
        ],
    ),
]


def numbers(values) -> str:
    return " ".join(str(value) for value in values)


def record(mesh: Mesh, shape: list[int], over: list[str]) -> None:
    print("array", len(shape), numbers(shape), "over", " ".join(over))
    spec = PartitionSpec(*[None if axes == "-" else tuple(axes.split(",")) for axes in over])
    try:
        layout = NamedSharding(mesh, spec).devices_indices_map(tuple(shape))
    except ValueError:
        print("refused")
        return
    for device in sorted(layout, key=lambda device: device.id):
        ranges = [part.indices(size)[:2] for part, size in zip(layout[device], shape)]
        begins, sizes = [begin for begin, _ in ranges], [end - begin for begin, end in ranges]
        print("shard", device.id, "begin", numbers(begins), "size", numbers(sizes))


def main() -> None:
    print("jax", jax.__version__)
    for axes, order, arrays in MESHES:
        print("mesh", len(axes), " ".join(f"{name} {size}" for name, size in axes.items()), "devices", numbers(order))
        devices = numpy.array([jax.devices()[i] for i in order]).reshape(list(axes.values()))
        for shape, over in arrays:
            record(Mesh(devices, tuple(axes)), shape, over)


if __name__ == "__main__":
    main()
