# SPDX-License-Identifier: Apache-2.0
"""Partition: which part of a tensor each logical device of a replica has. Arithmetic, without a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, Sequence

from . import _cdist
from ._arguments import checked
from .constants import DType, PartitionKind


class Shard(NamedTuple):
    """What a logical device has of a tensor; -1 for what depends on an unknown size."""

    tile: tuple[int, ...]
    """Its index among the tiles, in each dimension."""
    begin: tuple[int, ...]
    """Where in the tensor it begins."""
    size: tuple[int, ...]
    """How many elements it has in each dimension."""
    elements: int
    """How many in all."""


@checked
@dataclass(frozen=True)
class Partition:
    """Which part of a tensor each logical device has; split(), assign() and replicate() make the three kinds."""

    kind: PartitionKind = PartitionKind.SPLIT
    """A PartitionKind."""
    shape: Sequence[int] = ()
    """Of the tensor; -1: a size that is not known."""
    dimensions: Sequence[int] = ()
    """SPLIT: into how many parts each dimension is split."""
    num_logical_devices: int = 1
    """Of a replica."""
    logical_device: int = 0
    """ASSIGN: which of them has the tensor."""
    uneven: bool = False
    """SPLIT: sizes that do not divide are split as evenly as possible."""
    spmd: bool = False
    """One program runs on all logical devices, so that ASSIGN is refused."""

    @staticmethod
    def split(shape: Sequence[int], dimensions: Sequence[int], *, uneven: bool = False) -> Partition:
        """Each device has a tile; the last dimension's index runs fastest from one device to the next."""
        return Partition(PartitionKind.SPLIT, tuple(shape), tuple(dimensions), prod(dimensions), uneven=uneven)

    @staticmethod
    def assign(shape: Sequence[int], logical_device: int, num_logical_devices: int) -> Partition:
        """One device has all of it, the others nothing."""
        return Partition(PartitionKind.ASSIGN, tuple(shape), (), num_logical_devices, logical_device)

    @staticmethod
    def replicate(shape: Sequence[int], num_logical_devices: int) -> Partition:
        """Each device has all of it."""
        return Partition(PartitionKind.REPLICATE, tuple(shape), (), num_logical_devices)

    def check(self) -> None:
        """InvalidArgument where a tensor cannot be partitioned so, by TensorFlow's checks in its order."""
        _cdist.dist_partition_check(self._native())

    def shard(self, logical_device: int) -> Shard:
        """What a logical device has of the tensor."""
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
        """Value.partition() of a value's handle."""
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
    """How many bytes Replica.reshard() brings to a logical device from others; -1: to all of them together."""
    return int(_cdist.dist_reshard_bytes(source._native(), target._native(), int(dtype), logical_device))
