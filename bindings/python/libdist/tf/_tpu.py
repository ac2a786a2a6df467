# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.TPUStrategy: replicas that consist of logical devices."""

from __future__ import annotations

from typing import Annotated, Any, Callable, Mapping, Optional, Sequence

import libdist
from libdist._arguments import OWN_CHECK, checked

from ._cluster import ClusterResolver, native_of
from ._convert import from_native, tensors
from ._logical import sharded
from ._nest import packed, restored
from ._resolver import TPUClusterResolver
from ._strategy import Strategy
from .tpu import DeviceAssignment


def _divided(strategy: libdist.Strategy, nest: Any) -> Any:
    """Converts a nest of tensors for libdist; divided tensors become their values again."""

    def leaf(thing: Any) -> Any:
        value = sharded(thing)
        return tensors(strategy, thing) if value is thing else value

    return packed(nest, leaf)


@checked
class MeshStrategy(Strategy):
    """The base class of both forms of TPUStrategy."""

    def __init__(
        self,
        cluster_resolver: Annotated[Optional[ClusterResolver], OWN_CHECK],
        device_assignment: Optional[DeviceAssignment],
        use_spmd_partitioning: bool,
    ) -> None:
        if cluster_resolver is not None and not isinstance(cluster_resolver, ClusterResolver):
            raise ValueError(
                f"{cluster_resolver!r} is no cluster resolver: "
                "tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')"
            )
        if device_assignment is None and isinstance(cluster_resolver, TPUClusterResolver):
            device_assignment = DeviceAssignment.build(
                cluster_resolver.topology, num_replicas=cluster_resolver.num_devices
            )
        native = libdist.Strategy(
            kind=libdist.StrategyKind.MESH,
            device_assignment=None if device_assignment is None else device_assignment._native,
            use_spmd_partitioning=use_spmd_partitioning,
            cluster_resolver=native_of(cluster_resolver),
        )
        super().__init__(native)
        self.extended._cluster_resolver = cluster_resolver

    def run_on_logical_devices(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Calls fn(*args, **kwargs) on every logical device of the replica at the same time; arguments are tensors.

        Each device gets its part of a divided tensor. If a tensor is assigned to another device, it gets None. The
        results are joined to divided tensors. Not in TensorFlow, whose compiler divides any step.
        """

        arguments = tuple(args), dict(kwargs or {})
        results: dict[int, Any] = {}

        def body(device: libdist.Replica, *positional: Any, **named: Any) -> Any:
            given = restored(from_native((positional, named), self._native), arguments)
            results[device.id] = fn(*given[0], **given[1])
            return tensors(self._native, results[device.id])

        divided = _divided(self._native, arguments[0]), _divided(self._native, arguments[1])
        joined = self._replica().run_on_devices(body, *divided)
        return restored(from_native(joined, self._native), results[min(results)])

    def _replica(self) -> libdist.Replica:
        """Returns the replica whose function this thread is in."""
        replica = libdist.get_replica()
        if replica is None or replica.strategy is not self._native:
            raise libdist.FailedPrecondition("logical devices are a replica's: call this inside strategy.run()")
        return replica


@checked
class TPUStrategyV1(MeshStrategy):
    """tf.distribute.experimental.TPUStrategy, the older form."""

    def __init__(
        self,
        tpu_cluster_resolver: Annotated[Optional[ClusterResolver], OWN_CHECK] = None,
        device_assignment: Optional[DeviceAssignment] = None,
    ) -> None:
        super().__init__(tpu_cluster_resolver, device_assignment, False)


@checked
class TPUStrategy(MeshStrategy):
    """Replicas that consist of logical devices; the device assignment sets their number."""

    def __init__(
        self,
        tpu_cluster_resolver: Annotated[Optional[ClusterResolver], OWN_CHECK] = None,
        experimental_device_assignment: Optional[DeviceAssignment] = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        """Without an assignment, each device of the resolver is a replica. Without a resolver, each CPU is a replica.
        """
        super().__init__(tpu_cluster_resolver, experimental_device_assignment, experimental_spmd_xla_partitioning)

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Annotated[Sequence[int], OWN_CHECK]) -> Any:
        """Splits a tensor, or each leaf of a nest, over the replica's logical devices.

        Element-wise functions of NumPy, casts, reductions and tf.identity() run on every device with its part. An
        index, numpy() and printing read the whole. Use on_logical_devices() for functions that need more than that.
        Outside the replica function, the result reads as the whole tensor.
        """
        dimensions = list(partition_dimensions)
        if any(isinstance(dimension, (list, tuple)) for dimension in dimensions):
            raise ValueError(f"partition_dimensions must be an unnested list of ints, not {partition_dimensions!r}")
        given = _divided(self._native, tensor)
        result = self._replica().split_to_logical_devices(given, dimensions)
        return restored(from_native(result, self._native), tensor)

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Assigns a tensor, or each leaf of a nest, to one of the replica's logical devices."""
        given = _divided(self._native, tensor)
        result = self._replica().assign_to_logical_device(given, logical_device_id)
        return restored(from_native(result, self._native), tensor)

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Gives a tensor, or each leaf of a nest, to each of the replica's logical devices."""
        given = _divided(self._native, tensor)
        result = self._replica().replicate_to_logical_devices(given)
        return restored(from_native(result, self._native), tensor)
