# SPDX-License-Identifier: Apache-2.0
"""As calls.py, of topologies, device assignments, partitions, and tensors that are divided over logical devices."""

import numpy as np

from libdist import DeviceAssignment, Partition, Topology

from given import Answers, NotInPython
from lines import array_of


def numbers(g, key):
    """An array of numbers; None where there is none."""
    return [int(number) for number in array_of(g.fields[key])] if g.has(key) else None


def positions(g, key, *sizes):
    """A flat array as Python has it: of arrays of positions."""
    flat, shape = numbers(g, key) or [], (*(g.number(size) for size in sizes), g.number("ndim"))
    if min(shape) < 0 or np.prod(shape) != len(flat):
        raise NotInPython(f"{key} is an array, which has its own sizes")
    return np.array(flat, np.int64).reshape(shape)


def needed(g, key):
    given = numbers(g, key)
    if given is None:
        raise NotInPython(f"{key} that is None is no sequence")
    return given


def topology_create(g):
    return Topology(needed(g, "mesh_shape"), positions(g, "device_coordinates", "num_tasks", "num_devices_per_task"))


def kept(key):
    """The end of what Python leaves to the collector."""

    def call(g):
        g.needed(key)
        return Answers()

    return call


def build(g):
    shapes = (numbers(g, "computation_shape"), numbers(g, "computation_stride"))
    return DeviceAssignment.build(g.needed("topology"), *shapes, g.number("num_replicas"), g.number("device_order"))


def create(g):
    return DeviceAssignment(
        g.needed("topology"), positions(g, "core_assignment", "num_replicas", "num_logical_devices")
    )


def at(method, *others):
    """A question about a position of a topology."""

    def call(g):
        given = [g.text(key) for key in others]
        return getattr(g.needed("topology"), method)(needed(g, "coordinates"), *given)

    return call


def of_device(method, *others):
    """A question about a logical device of an assignment."""

    def call(g):
        given = [g.text(key) for key in others]
        return getattr(g.needed("assignment"), method)(g.number("replica"), g.number("logical_device"), *given)

    return call


NUMBERS = ("kind", "num_logical_devices", "logical_device", "uneven", "spmd")


def partition(g):
    if g.fields.get("partition") == "-":
        raise NotInPython("a partition is an object, which nothing stands for")
    return Partition(
        shape=numbers(g, "partition.shape") or (),
        dimensions=numbers(g, "partition.dimensions") or (),
        **{name: g.number(f"partition.{name}") for name in NUMBERS},
    )


def partition_check(g):
    partition(g).check()
    return Answers()


def partition_shard(g):
    shard = partition(g).shard(g.number("logical_device"))
    return Answers({f"out.{name}": answer for name, answer in shard._asdict().items()})


def a_value(g):
    if not g.has("value"):
        raise NotInPython("None is a value, of which nothing is divided")
    return g.object("value")


def split(g):
    return g.needed("replica").split_to_logical_devices(
        a_value(g), needed(g, "partition_dimensions"), uneven=bool(g.number("options.uneven"))
    )


def shard(g):
    value, device = a_value(g), g.number("logical_device")
    return Answers({"out.begin": value.shard_begin(device), "out": value.shard(device)})


CALLS = {
    "topology_create": topology_create,
    "topology_destroy": kept("topology"),
    "topology_mesh_rank": lambda g: g.needed("topology").mesh_rank,
    "topology_num_tasks": lambda g: g.needed("topology").num_tasks,
    "topology_num_devices_per_task": lambda g: g.needed("topology").num_devices_per_task,
    "topology_num_missing_devices": lambda g: len(g.needed("topology").missing_devices),
    "topology_mesh_shape": lambda g: g.needed("topology").mesh_shape,
    "topology_device_coordinates": lambda g: g.needed("topology").device_coordinates.ravel(),
    "topology_missing_devices": lambda g: g.needed("topology").missing_devices.ravel(),
    "topology_task_at": at("task_at"),
    "topology_device_at": at("device_at"),
    "topology_device_name_at": at("device_name_at", "job"),
    "topology_host_name_at": at("host_name_at", "job"),
    "device_assignment_build": build,
    "device_assignment_create": create,
    "device_assignment_create_single": lambda g: DeviceAssignment.single(g.needed("topology")),
    "device_assignment_destroy": kept("assignment"),
    "device_assignment_num_replicas": lambda g: g.needed("assignment").num_replicas,
    "device_assignment_num_logical_devices": lambda g: g.needed("assignment").num_logical_devices,
    "device_assignment_core_assignment": lambda g: g.needed("assignment").core_assignment.ravel(),
    "device_assignment_coordinates": of_device("coordinates"),
    "device_assignment_device": of_device("device"),
    "device_assignment_device_name": of_device("device_name", "job"),
    "device_assignment_host_name": of_device("host_name", "job"),
    "device_assignment_lookup_replicas": lambda g: g.needed("assignment").lookup_replicas(
        g.number("task"), g.number("logical_device")
    ),
    "partition_check": partition_check,
    "partition_shard": partition_shard,
    "split_to_logical_devices": split,
    "assign_to_logical_device": lambda g: g.needed("replica").assign_to_logical_device(
        a_value(g), g.number("logical_device")
    ),
    "replicate_to_logical_devices": lambda g: g.needed("replica").replicate_to_logical_devices(a_value(g)),
    "value_shard": shard,
}
