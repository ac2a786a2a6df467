# SPDX-License-Identifier: Apache-2.0
"""The part of Replica that concerns logical devices: dividing tensors over them, running on them, moving tiles."""

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
"""One number for each dimension, or one for all of them; None: 0."""


@checked
class Devices:
    """See Replica."""

    _part_of = "Replica"

    _handle: int
    id: int
    strategy: Strategy

    def _check(self, name: str) -> None:
        raise NotImplementedError

    # ---- the replica's side --------------------------------------------------------------------------------

    def split_to_logical_devices(self, value: Any, partition_dimensions: Sequence[int], **options: Unpack[SplitOptions]) -> Any:
        """Splits a tensor over the logical devices: a Value that still reads as the whole; of a nest each leaf.

        partition_dimensions: into how many parts each dimension is split. Nothing is copied.
        """
        self._check("Replica.split_to_logical_devices")
        given = values.make(self.strategy._handle, value)
        dimensions = list(partition_dimensions)
        call = _cdist.split_to_logical_devices
        return values.owned(call(self._handle, given._handle, dimensions, len(dimensions), split_options(**options)))

    def assign_to_logical_device(self, value: Any, logical_device: int) -> Any:
        """Gives a tensor to one logical device; the others have nothing."""
        self._check("Replica.assign_to_logical_device")
        given = values.make(self.strategy._handle, value)
        return values.owned(_cdist.dist_assign_to_logical_device(self._handle, given._handle, logical_device))

    def replicate_to_logical_devices(self, value: Any) -> Any:
        """Gives a tensor to each logical device: all see the same memory."""
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
        """Calls `fn(device, *args, **kwargs)` on every logical device, at the same time, and joins what they return.

        Of a divided tensor each gets its shard, or None of one that is assigned to another. `device` is a Replica
        whose id is the logical device, and whose collectives are among the replica's devices. If one raises, its
        peers' collectives end at once, and that very exception is raised.
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

    # ---- a logical device's side ---------------------------------------------------------------------------

    @property
    def device_replica(self) -> int:
        """The replica that a logical device is part of; -1 for a replica itself."""
        self._check("Replica.device")
        return int(_cdist.dist_device_replica(self._handle))

    @property
    def device_coordinates(self) -> tuple[int, ...]:
        """Where in the topology's mesh the logical device is."""
        self._check("Replica.device_coordinates")
        numbers = _cdist.Numbers()
        numbers.device_coordinates(self._handle)
        return tuple(numbers.at(i) for i in range(numbers.size()))

    def device_axis(self, name: str) -> tuple[int, int]:
        """(place, size): where along a named axis of its replica's devices it is, and how many there are.

        The axes are the strategy's `axes`; by default "x", "y", "z" and "core", or "device".
        """
        self._check("Replica.device_axis")
        place, size = _cdist.dist_device_axis(self._handle, name)
        return int(place), int(size)

    def device_axis_group(self, name: str) -> Group:
        """The logical devices that differ from this one in their place along an axis alone: for the option `group`."""
        self._check("Replica.device_axis_group")
        return Group._borrowed(self.strategy, _cdist.dist_device_axis_group(self._handle, name))

    # ---- between members -----------------------------------------------------------------------------------

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
        """A tile of a tensor with what surrounds it: `low` elements before it and `high` behind it, of the others'.

        parts: into how many tiles each dimension is cut. edges: one Edge, or one for each dimension, says what is
        beyond the whole; with Edge.NONE nothing is, and `out` is needed. Collective.
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
        """What this member has of a tensor under `target`, out of what all have under `source`. Collective.

        x: its shard, None where it has nothing; then `dtype`, or `out`, says what the result is of. The result is
        None where it has nothing under `target`.
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
    """Whether a member has a part of a tensor at all: no room is made for the others."""
    return partition.kind != PartitionKind.ASSIGN or partition.logical_device == rank


def _room(x: Any, dtype: Optional[DType], shape: tuple[int, ...]) -> Any:
    """Room for a shard of the dtype of another."""
    if x is not None:
        return _like(x, shape=shape)
    if dtype is None:
        raise InvalidArgument("Replica.reshard(): without `x` and `out` the result's dtype is not known: give `dtype`")
    array = np.empty(shape, _tensors.numpy_dtype(dtype))
    return _tensors.Tensor(array, dtype) if dtype == DType.BF16 and array.dtype == np.uint16 else array


def _each(given: Widths, n: int, what: str) -> list[int]:
    """One number for each dimension: as many as C reads."""
    if given is None:
        return [0] * n
    if isinstance(given, int):
        return [int(given)] * n
    numbers = [int(number) for number in given]
    if len(numbers) != n:
        raise InvalidArgument(f"Replica.halo_exchange(): `{what}` has {len(numbers)} numbers, and `parts` {n}")
    return numbers
