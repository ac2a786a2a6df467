# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.TPUStrategy: replicas that are made of logical devices.

A divided tensor is an array of the whole, as TensorFlow's is the tensor itself: any function may go on with it. What
its division is for, a function that runs on each logical device, is run_on_logical_devices().
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import libdist
from libdist._tensors import owner_of

from ._convert import from_native, map_leaves, tensors
from ._strategy import Strategy
from .tpu import DeviceAssignment


def _divided(strategy: libdist.Strategy, nest: Any) -> Any:
    """A nest of tensors for libdist; arrays of divided tensors are these again."""

    def leaf(thing: Any) -> Any:
        owner = owner_of(thing) if hasattr(thing, "base") else None
        if isinstance(owner, libdist.Value) and owner.kind == libdist.ValueKind.SHARDED:
            return owner
        return tensors(strategy, thing)

    return map_leaves(leaf, nest)


class _MeshStrategy(Strategy):
    def __init__(
        self, cluster_resolver: None, device_assignment: Optional[DeviceAssignment], use_spmd_partitioning: bool
    ) -> None:
        if cluster_resolver is not None:
            raise ValueError("the devices are this host's: tpu_cluster_resolver is None")
        native = libdist.Strategy(
            kind=libdist.StrategyKind.MESH,
            device_assignment=None if device_assignment is None else device_assignment._native,
            use_spmd_partitioning=use_spmd_partitioning,
        )
        super().__init__(native)


class TPUStrategyV1(_MeshStrategy):
    """tf.distribute.experimental.TPUStrategy, the older form."""

    def __init__(self, tpu_cluster_resolver: None = None, device_assignment: Optional[DeviceAssignment] = None) -> None:
        super().__init__(tpu_cluster_resolver, device_assignment, False)


class TPUStrategy(_MeshStrategy):
    """Replicas that are made of logical devices, as many as the device assignment says."""

    def __init__(
        self,
        tpu_cluster_resolver: None = None,
        experimental_device_assignment: Optional[DeviceAssignment] = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        """Without an assignment each CPU that this process may use is a replica of one logical device."""
        super().__init__(tpu_cluster_resolver, experimental_device_assignment, experimental_spmd_xla_partitioning)

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Sequence[int]) -> Any:
        """Splits a tensor, or each of a nest, over the replica's logical devices: it stays the tensor that it is."""
        given = _divided(self._native, tensor)
        return from_native(self._replica().split_to_logical_devices(given, partition_dimensions), self._native)

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Gives a tensor, or each of a nest, to one of the replica's logical devices."""
        given = _divided(self._native, tensor)
        return from_native(self._replica().assign_to_logical_device(given, logical_device_id), self._native)

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Gives a tensor, or each of a nest, to each of the replica's logical devices."""
        given = _divided(self._native, tensor)
        return from_native(self._replica().replicate_to_logical_devices(given), self._native)

    def run_on_logical_devices(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Calls fn(*args, **kwargs) on every logical device of the replica, at the same time; arguments are tensors.

        Of a divided tensor each gets its part, or None of one that is assigned to another; results are joined to
        divided tensors. libdist's own: TensorFlow's compiler divides any step, and here the program does.
        """

        def body(_: libdist.Replica, *positional: Any, **named: Any) -> Any:
            given = from_native(positional, self._native), from_native(named, self._native)
            return tensors(self._native, fn(*given[0], **given[1]))

        divided = _divided(self._native, tuple(args)), _divided(self._native, dict(kwargs or {}))
        return from_native(self._replica().run_on_devices(body, *divided), self._native)

    def _replica(self) -> libdist.Replica:
        """The one whose function this thread is in."""
        replica = libdist.get_replica()
        if replica is None or replica.strategy is not self._native:
            raise libdist.FailedPrecondition("logical devices are a replica's: call this inside strategy.run()")
        return replica
