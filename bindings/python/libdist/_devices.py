# SPDX-License-Identifier: Apache-2.0
"""The methods of Replica for logical devices: dividing tensors, running functions on devices, exchanging tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _calls, _cdist, _tensors, values
from ._arguments import checked
from ._callbacks import Kept
from ._collectives import _like, native_options
from ._option_fields import DevicesOptions, Options, SplitOptions, devices_options, split_options
from ._tensors import Out, TensorLike
from .constants import DType, Edge, PartitionKind
from .errors import DeadlineExceeded, InvalidArgument
from .group import Group
from .partition import Partition
from .values import Arguments, Keywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy

Widths = Union[None, int, Sequence[int]]
"""One number for each dimension, or one number for all dimensions; None = 0."""


@checked
class Devices:
    """The methods of Replica for logical devices."""

    _part_of = "Replica"

    _handle: int
    id: int
    strategy: Strategy

    def _check(self, name: str) -> None:
        raise NotImplementedError

    # ---- called on the replica ---------------------------------------------------------------------------------

    def split_to_logical_devices(self, value: Any, partition_dimensions: Sequence[int], **options: Unpack[SplitOptions]) -> Any:
        """Splits a tensor, or each leaf of a nest, over the logical devices of this replica, without copying.

        Returns a Value that can be used like the whole tensor; its items are the shards.

        partition_dimensions: number of parts of each dimension. The product must be the number of logical devices. Each
        size must be divisible by its number of parts, unless the option `uneven` is set.
        """
        self._check("Replica.split_to_logical_devices")
        given = values.make(self.strategy._handle, value)
        dimensions = list(partition_dimensions)
        call = _cdist.split_to_logical_devices
        return values.owned(call(self._handle, given._handle, dimensions, len(dimensions), split_options(**options)))

    def assign_to_logical_device(self, value: Any, logical_device: int) -> Any:
        """Assigns a tensor, or each leaf of a nest, to one logical device. The other devices have nothing."""
        self._check("Replica.assign_to_logical_device")
        given = values.make(self.strategy._handle, value)
        return values.owned(_cdist.dist_assign_to_logical_device(self._handle, given._handle, logical_device))

    def replicate_to_logical_devices(self, value: Any) -> Any:
        """Gives a tensor, or each leaf of a nest, to every logical device. All devices see the same memory."""
        self._check("Replica.replicate_to_logical_devices")
        given = values.make(self.strategy._handle, value)
        return values.owned(_cdist.dist_replicate_to_logical_devices(self._handle, given._handle))

    def run_on_devices(
        self,
        fn: Callable[..., Any],
        args: Arguments = (),
        kwargs: Keywords = None,
        **options: Unpack[DevicesOptions],
    ) -> Any:
        """Calls `fn(device, *args, **kwargs)` on every logical device at the same time, and joins the results.

        Each device gets its shard of a split tensor. If a tensor is assigned to another device, it gets None. `device`
        is a Replica whose id is the number of the logical device and whose collectives connect the devices of this
        replica.

        The results must have the same structure and are joined leaf by leaf, to split tensors if they fit together as
        tiles. The option `results` states how to join them. If a device raises, the collectives of the other devices
        fail at once, and run_on_devices() raises that exception.
        """
        from ._runs import Run

        self._check("Replica.run_on_devices")
        run = Run(self.strategy, fn, self.strategy.num_logical_devices)
        abandoned = False
        try:
            given = values.arguments(self.strategy._handle, args, run.seen)
            named = values.make(self.strategy._handle, kwargs, run.seen) if kwargs is not None else None
            kept = Kept()
            arguments = (values.handle_of(given), values.handle_of(named), devices_options(kept, **options))
            result = _calls.call(run.failures, _cdist.dist_run_on_devices, self._handle, run.token, *arguments)
        except DeadlineExceeded:
            abandoned = True
            raise
        finally:
            run.end(abandoned)
        return values.owned(result, run.seen)

    # ---- called on a logical device ----------------------------------------------------------------------------

    @property
    def device_replica(self) -> int:
        """The id of the replica to which this logical device belongs; -1 for a replica itself."""
        self._check("Replica.device")
        return int(_cdist.dist_device_replica(self._handle))

    @property
    def device_coordinates(self) -> tuple[int, ...]:
        """The position (x, y, z, core) of this logical device in the topology's mesh."""
        self._check("Replica.device_coordinates")
        numbers = _cdist.Numbers()
        numbers.device_coordinates(self._handle)
        return tuple(numbers.at(i) for i in range(numbers.size()))

    def device_axis(self, name: str) -> tuple[int, int]:
        """Returns the position of this logical device along a named axis, and the size of the axis.

        name: one of the strategy's `axes`, into which the devices of a replica are arranged. Without that option, the
        axes are "x", "y", "z" and "core", or only "device" if the devices of a replica are not a block of the mesh.
        """
        self._check("Replica.device_axis")
        place, size = _cdist.dist_device_axis(self._handle, name)
        return int(place), int(size)

    def device_axis_group(self, name: str) -> Group:
        """Returns the group of the logical devices that differ from this one only in their position along an axis.

        Pass it as the option `group` of a collective. The strategy owns the group.
        """
        self._check("Replica.device_axis_group")
        return Group._borrowed(self.strategy, _cdist.dist_device_axis_group(self._handle, name))

    # ---- collectives -------------------------------------------------------------------------------------------

    def halo_exchange(
        self,
        x: TensorLike,
        parts: Sequence[int],
        *,
        low: Widths = None,
        high: Widths = None,
        edges: Union[Edge, Sequence[Edge]] = Edge.ZERO,
        out: Out = None,
        **options: Unpack[Options],
    ) -> Any:
        """Builds a tile with its surroundings (halo) from the tiles of all members. This is a collective.

        parts: number of tiles in each dimension; the product is the number of members.

        low: number of elements before the tile, from the neighbouring tiles.

        high: number of elements after the tile.

        edges: content beyond the edges of the whole tensor, as one Edge or one for each dimension.

        out: receives the result; without it the result is a new array. Edge.NONE requires it.
        """
        self._check("Replica.halo_exchange")
        n = len(parts)
        before, behind, beyond = _each(low, n, "low"), _each(high, n, "high"), _each(edges, n, "edges")
        halo = _cdist.dist_halo()
        halo.set_parts(list(parts), n)
        halo.set_low(before, n)
        halo.set_high(behind, n)
        halo.set_edges(beyond, n)
        given = _tensors.give(x)
        if out is None:
            if Edge.NONE in beyond:
                raise InvalidArgument(
                    "Replica.halo_exchange(): with Edge.NONE the result ends where the whole does: give an `out`"
                )
            shape = np.shape(x.array if isinstance(x, _tensors.Tensor) else x)
            sizes = (size + a + b for size, a, b in zip(shape, before, behind))
            out = _like(x, shape=tuple(max(0, size) for size in sizes) + shape[n:])
        native = native_options(options)
        _cdist.dist_halo_exchange(self._handle, [given], halo, [_tensors.give(out, writable=True)], native)
        return out

    def reshard(
        self,
        source: Partition,
        target: Partition,
        x: Optional[TensorLike],
        out: Out = None,
        *,
        dtype: Optional[DType] = None,
        **options: Unpack[Options],
    ) -> Any:
        """Redistributes a tensor among the members from one partition to another. This is a collective.

        Returns this member's shard under `target`, or None if it has none.

        x: this member's shard under `source`; None if it has none.

        dtype: dtype of the result, if neither `x` nor `out` is passed.
        """
        self._check("Replica.reshard")
        rank = self._rank(options)
        given = None if x is None else [_tensors.give(x)]
        if out is None and _has(target, rank):
            out = _room(x, dtype, target.shard(rank).size)
        written = None if out is None else [_tensors.give(out, writable=True)]
        native = native_options(options)
        _cdist.dist_reshard(self._handle, source._native(), target._native(), given, written, native)
        return out

    def _rank(self, options: Mapping[str, Any]) -> int:
        group = options.get("group")
        return self.id if group is None else int(group.rank(self.id))


def _has(partition: Partition, rank: int) -> bool:
    """Returns whether a member has a part of the tensor. For the others, no memory is allocated."""
    return partition.kind != PartitionKind.ASSIGN or partition.logical_device == rank


def _room(x: Any, dtype: Optional[DType], shape: tuple[int, ...]) -> Any:
    """Allocates memory for a shard with the dtype of `x`, or with `dtype`."""
    if x is not None:
        return _like(x, shape=shape)
    if dtype is None:
        raise InvalidArgument("Replica.reshard(): without `x` and `out` the result's dtype is not known: give `dtype`")
    array = np.empty(shape, _tensors.numpy_dtype(dtype))
    return _tensors.Tensor(array, dtype) if dtype == DType.BF16 and array.dtype == np.uint16 else array


def _each(given: Widths, n: int, what: str) -> list[int]:
    """Returns one number for each dimension."""
    if given is None:
        return [0] * n
    if isinstance(given, int):
        return [int(given)] * n
    numbers = [int(number) for number in given]
    if len(numbers) != n:
        raise InvalidArgument(f"Replica.halo_exchange(): `{what}` has {len(numbers)} numbers, and `parts` {n}")
    return numbers
