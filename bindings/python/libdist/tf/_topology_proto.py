# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's TopologyProto: a topology as bytes.

    1 mesh_shape, 2 num_tasks, 3 num_tpu_devices_per_task, 4 device_coordinates, 5 tpu_hardware_feature

1 and 4 are repeated int32, 2 and 3 are int32, and 5 is a message that is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

import numpy as np

import libdist

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MESH, _TASKS, _DEVICES, _COORDINATES = 1, 2, 3, 4
_MOST_BYTES = 1 << 24
"""More bytes than any topology that libdist accepts."""


def _varint(number: int) -> bytes:
    """Encodes a number. Negative numbers are encoded with 64 bits."""
    number &= (1 << 64) - 1
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _packed(field: int, numbers: Any) -> bytes:
    content = b"".join(map(_varint, np.asarray(numbers).ravel().tolist()))
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content if content else b""


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number) if number else b""


def serialized(topology: libdist.Topology) -> bytes:
    """Returns the bytes that TensorFlow writes."""
    return (
        _packed(_MESH, topology.mesh_shape)
        + _number(_TASKS, topology.num_tasks)
        + _number(_DEVICES, topology.num_devices_per_task)
        + _packed(_COORDINATES, topology.device_coordinates)
    )


def _corrupt(what: str) -> libdist.InvalidArgument:
    return libdist.InvalidArgument(f"the bytes are no serialized topology: {what}")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number and the position after it."""
    number = 0
    for i in range(10):
        if at + i >= len(data):
            raise _corrupt("they end within a number")
        number |= (data[at + i] & 0x7F) << 7 * i
        if data[at + i] < 0x80:
            return number, at + i + 1
    raise _corrupt("a number has more than 10 bytes")


def _fields(data: bytes) -> Iterator[tuple[int, Union[int, bytes]]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind, field = tag & 7, tag >> 3
        if not 1 <= field < 1 << 29:
            raise _corrupt(f"there is no field {field}")
        if kind == _VARINT:
            number, at = _read_varint(data, at)
            yield field, number
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, at = _read_varint(data, at)
        if size is None:
            raise _corrupt(f"a field has the type {kind}")
        if size > len(data) - at:
            raise _corrupt("they end within a field")
        if kind == _BYTES:
            yield field, data[at : at + size]
        at += size


def _int32(number: int) -> int:
    return (number & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def parsed(data: bytes) -> libdist.Topology:
    """Returns the topology from bytes, which are untrusted input."""
    if len(data) > _MOST_BYTES:
        raise libdist.InvalidArgument(f"the serialized topology has {len(data)} bytes; it may have at most {_MOST_BYTES}")
    lists: dict[int, list[int]] = {_MESH: [], _COORDINATES: []}
    counts = {_TASKS: 0, _DEVICES: 0}
    for field, content in _fields(data):
        if field in lists and isinstance(content, int):
            lists[field].append(_int32(content))
        elif field in lists and isinstance(content, bytes):
            at = 0
            while at < len(content):
                number, at = _read_varint(content, at)
                lists[field].append(_int32(number))
        elif field in counts and isinstance(content, int):
            counts[field] = _int32(content)
    mesh, coordinates, tasks, devices = lists[_MESH], lists[_COORDINATES], counts[_TASKS], counts[_DEVICES]
    if tasks < 0 or devices < 0:
        raise libdist.InvalidArgument(f"there are {tasks} tasks of {devices} devices; neither can be negative")
    if len(coordinates) != tasks * devices * len(mesh):
        raise libdist.InvalidArgument(
            f"device_coordinates has {len(coordinates)} numbers; {tasks} tasks of {devices} devices need "
            f"{tasks * devices * len(mesh)}"
        )
    if min(coordinates, default=0) < 0:
        raise libdist.InvalidArgument(
            f"device_coordinates has the number {min(coordinates)}; serialized coordinates are at least 0"
        )
    return libdist.Topology(mesh, np.array(coordinates, np.int32).reshape(tasks, devices, len(mesh)))
