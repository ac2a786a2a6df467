# SPDX-License-Identifier: Apache-2.0
"""Partitions: the part of a tensor that each logical device of a replica has. This is arithmetic, without a strategy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, Sequence

from . import _cdist
from ._arguments import checked
from .constants import DType, PartitionKind


class Shard(NamedTuple):
    """The part of a tensor that a logical device has. Numbers that depend on an unknown size are -1."""

    tile: tuple[int, ...]
    """Index of the tile in each dimension."""
    begin: tuple[int, ...]
    """Position in the tensor at which the part begins."""
    size: tuple[int, ...]
    """Number of elements in each dimension."""
    elements: int
    """Number of elements of the part."""


@checked
@dataclass(frozen=True)
class Partition:
    """The division of a tensor among the logical devices of a replica.

        Partition.split([8, 6], [2, 1]).shard(1)  # rows 4 .. 7
    """

    kind: PartitionKind = PartitionKind.SPLIT
    """SPLIT, ASSIGN or REPLICATE."""
    shape: Sequence[int] = ()
    """Shape of the tensor; -1 = size not known."""
    dimensions: Sequence[int] = ()
    """SPLIT: number of parts of each dimension."""
    num_logical_devices: int = 1
    """Number of logical devices of a replica."""
    logical_device: int = 0
    """ASSIGN: the device that has the tensor."""
    uneven: bool = False
    """SPLIT: sizes that are not divisible are split as evenly as possible."""
    spmd: bool = False
    """One program runs on all logical devices; ASSIGN is then rejected."""

    @staticmethod
    def split(shape: Sequence[int], dimensions: Sequence[int], *, uneven: bool = False) -> Partition:
        """Returns a partition in which each device has one tile.

        From one device to the next, the tile index of the last dimension varies fastest.
        """
        return Partition(PartitionKind.SPLIT, tuple(shape), tuple(dimensions), prod(dimensions), uneven=uneven)

    @staticmethod
    def assign(shape: Sequence[int], logical_device: int, num_logical_devices: int) -> Partition:
        """Returns a partition in which one device has the whole tensor and the others have nothing."""
        return Partition(PartitionKind.ASSIGN, tuple(shape), (), num_logical_devices, logical_device)

    @staticmethod
    def replicate(shape: Sequence[int], num_logical_devices: int) -> Partition:
        """Returns a partition in which each device has the whole tensor."""
        return Partition(PartitionKind.REPLICATE, tuple(shape), (), num_logical_devices)

    def check(self) -> None:
        """Raises InvalidArgument if a tensor cannot be partitioned in this way.

        The checks are those of TensorFlow, in its order.
        """
        _cdist.dist_partition_check(self._native())

    def shard(self, logical_device: int) -> Shard:
        """Computes the part of the tensor that a logical device has."""
        numbers = _cdist.Numbers()
        numbers.partition_shard(self._native(), logical_device)
        given = tuple(numbers.at(i) for i in range(numbers.size()))
        n = len(self.shape)
        return Shard(given[:n], given[n : 2 * n], given[2 * n : 3 * n], given[3 * n])

    def _native(self) -> Any:
        native = _cdist.dist_partition()
        native.kind = int(self.kind)
        native.set_shape(list(self.shape), len(self.shape))
        native.set_dimensions(list(self.dimensions), len(self.dimensions))
        native.num_logical_devices = self.num_logical_devices
        native.logical_device = self.logical_device
        native.uneven, native.spmd = int(self.uneven), int(self.spmd)
        return native

    @staticmethod
    def _of(value: int) -> Partition:
        """Returns the partition of a value, for Value.partition."""
        native, numbers = _cdist.dist_partition(), _cdist.Numbers()
        _cdist.dist_value_partition(value, native)
        numbers.partition_shape(native)
        shape = tuple(numbers.at(i) for i in range(numbers.size()))
        numbers.partition_dimensions(native)
        return Partition(
            PartitionKind(native.kind),
            shape,
            tuple(numbers.at(i) for i in range(numbers.size())),
            native.num_logical_devices,
            native.logical_device,
            bool(native.uneven),
            bool(native.spmd),
        )


@checked
def reshard_bytes(source: Partition, target: Partition, dtype: DType, logical_device: int = -1) -> int:
    """Returns the number of bytes that Replica.reshard() moves to a logical device from others.

    logical_device: -1 = all devices together.
    """
    return int(_cdist.dist_reshard_bytes(source._native(), target._native(), int(dtype), logical_device))
