# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.Strategy, and the strategies that libdist has."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, Callable, Mapping, Optional, Sequence, Union

import libdist
from libdist._arguments import OWN_CHECK, checked

from . import _input
from ._cluster import ClusterResolver, Resolved, TFConfigClusterResolver, native_of
from ._composites import IndexedSlices
from ._context import faces
from ._convert import Crossing, from_native, tensors
from ._extended import StrategyExtended
from ._missing import Refusing
from ._nest import restored
from ._options import (
    CommunicationImplementation,
    CommunicationOptions,
    InputContext,
    InputOptions,
    ReduceOp,
    RunOptions,
    ValueContext,
    native_op,
)
from ._options import communication_options as checked_options
from ._variable import Variable

if TYPE_CHECKING:
    from ._context import ReplicaContext
    from ._cross_device import CrossDeviceOps


class Scope:
    """The result of Strategy.scope(). It may be entered any number of times."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._entered: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> Strategy:
        scope = self._strategy._native.scope()
        scope.__enter__()
        self._entered.append(scope)
        return self._strategy

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


@checked
class Strategy(Refusing):
    """Replicas that run the same function, each on its part of the input, and communicate through collectives."""

    _tf_name = "tf.distribute.Strategy"
    _default_context: Optional[ReplicaContext] = None

    def __init__(self, extended: Union[StrategyExtended, libdist.Strategy]) -> None:
        """extended: a StrategyExtended of your own, or a libdist.Strategy."""
        if isinstance(extended, libdist.Strategy):
            extended = StrategyExtended._of(extended)
        self._extended = extended
        self._native = extended._native
        faces.setdefault(id(self._native), self)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all workers."""
        return self._native.num_replicas

    @property
    def extended(self) -> StrategyExtended:
        """The functions for libraries that build on a strategy."""
        return self._extended

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that describes the cluster, if the strategy has one; otherwise None."""
        given = self._extended._cluster_resolver
        native = self._native.cluster_resolver if given is None else None
        return given if native is None else Resolved._of(native)

    def scope(self) -> Scope:
        """Makes this strategy the current one in a `with` block. Variables that are created there belong to it."""
        return Scope(self)

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        fn: Callable[..., Any],
        args: Annotated[Sequence[Any], OWN_CHECK] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        options: Optional[RunOptions] = None,
    ) -> Any:
        """Calls fn(*args, **kwargs) on every replica of this worker at the same time.

        Each per-replica value in the arguments is replaced by the replica's component. The results are merged leaf by
        leaf: a leaf is one object if all replicas returned the same object, and otherwise a PerReplica.
        """
        if not isinstance(args, (list, tuple)):
            raise ValueError(f"positional args must be a list or tuple, got {type(args)}: (x,) for one")
        if self._extended._overrides("_call_for_each_replica"):
            return self._extended._call_for_each_replica(fn, args, dict(kwargs or {}))
        return self._extended._run(fn, args, dict(kwargs or {}), options)

    # ---- values -----------------------------------------------------------------------------------------------------

    def reduce(self, reduce_op: Union[ReduceOp, str], value: Any, axis: Union[None, int, Sequence[int]] = None) -> Any:
        """Reduces a per-replica value to one tensor.

        axis: one axis or several, over which each replica's tensor is reduced too; None = no axis.
        """
        if self._extended._overrides("_reduce_to") and axis is None:
            reduced = self._extended.reduce_to(reduce_op, value, None)
            return self.experimental_local_results(reduced)[0]
        result = self._native.reduce(native_op(reduce_op), tensors(self._native, value), axis)
        return restored(from_native(result, self._native), value)

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenates the components of a per-replica value along an axis, in the order of replica ids."""
        if isinstance(value, IndexedSlices):
            raise libdist.Unimplemented("gather does not support IndexedSlices")
        given = self._native.value(tensors(self._native, value))
        return restored(from_native(self._native.gather(given, axis), self._native), value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Returns a value's components in the order of replica ids.

        For a variable, these are its copies. For any other value, the tuple contains only that value.
        """
        return tuple(self._extended._local_results(value))

    unwrap = experimental_local_results

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Creates a per-replica value from what value_fn(context) returns for each replica, called one after another.
        """
        crossing = Crossing(self._native)

        def make(context: libdist.ValueContext) -> Any:
            value = value_fn(ValueContext(context.replica_id, context.num_replicas))
            return crossing.carry_result(context.replica_id, value)

        return crossing.take_results(self._native.values_from_function(make))

    # ---- input ------------------------------------------------------------------------------------------------------

    def experimental_distribute_dataset(
        self, dataset: Any, options: Optional[InputOptions] = None
    ) -> _input.DistributedDataset:
        """Creates a dataset whose batches, which are for all replicas together, are split over the replicas."""
        return _input.distribute(self._native, dataset, options)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Optional[InputOptions] = None
    ) -> _input.DistributedDataset:
        """Creates a dataset from what dataset_fn(input_context) returns. Each of its batches goes to one replica."""
        return _input.distribute_from_function(self._native, dataset_fn, options)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def colocate_vars_with(self, colocate_with_variable: Variable) -> AbstractContextManager[None]:
        """Places new variables with another variable; see extended.colocate_vars_with()."""
        return self.extended.colocate_vars_with(colocate_with_variable)

    def close(self) -> None:
        """Ends the replicas' threads now, instead of when nothing refers to the strategy. Values stay readable."""
        self._native.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._native.num_replicas} replicas>"

    def __deepcopy__(self, memo: Any) -> Strategy:
        return self  # as in TensorFlow: a strategy is not a value


def _cross_device(ops: Optional[CrossDeviceOps]) -> Optional[libdist.CrossDevice]:
    return None if ops is None else ops._operations()


def _logical_devices() -> Optional[list[str]]:
    """Returns the names of the logical devices that the program has configured; None without a configuration."""
    from . import config

    if config.configured_devices() is None:
        return None
    return [device.name.removeprefix("/device:") for device in config.list_logical_devices()]


@checked
class MirroredStrategy(Strategy):
    """Replicas with a copy of each variable, which are kept equal. A replica is a host thread."""

    def __init__(
        self, devices: Optional[Sequence[str]] = None, cross_device_ops: Optional[CrossDeviceOps] = None
    ) -> None:
        """devices: a device name for each replica; None = those of tf.config.list_logical_devices()."""
        if devices is not None and not devices:
            raise ValueError("Got an empty `devices` list.")
        names = _logical_devices() if devices is None else list(devices)
        native = libdist.Strategy(len(names or ()), devices=names, cross_device=_cross_device(cross_device_ops))
        self._ops = cross_device_ops
        super().__init__(native)


@checked
class MultiWorkerMirroredStrategy(Strategy):
    """Like MirroredStrategy, with replicas in all workers of a cluster.

    Workers are processes that communicate over gRPC, or strategies of one process that share a network, each on its own
    thread. Each worker has as many replicas as CPUs that it may use. All workers must make the same calls in the same
    order.
    """

    def __init__(
        self,
        cluster_resolver: Optional[ClusterResolver] = None,
        communication_options: Optional[CommunicationOptions] = None,
        *,
        network: Optional[libdist.Network] = None,
    ) -> None:
        """cluster_resolver: this worker's place in the cluster; None = as in TF_CONFIG; without that, the only worker.

        network: connects workers that are strategies of this process; None = workers are processes. Not in TensorFlow.

        The environment variable DIST_REPLICAS sets the number of replicas of this worker.
        """
        resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        found = native_of(resolver)
        options = checked_options(communication_options)
        native = libdist.Strategy(
            kind=libdist.StrategyKind.MULTI_WORKER_MIRRORED,
            communication=options._communication_options(),
            cluster_resolver=found,
            network=network,
        )
        extended = StrategyExtended._of(native)
        extended._cluster_resolver = resolver
        super().__init__(extended)

    def __repr__(self) -> str:
        place = self._native.query()
        return (
            f"<{type(self).__name__} of {place.num_replicas} replicas, worker {place.worker} of {place.num_workers} "
            f"with {place.num_local_replicas} of them>"
        )


@checked
class MultiWorkerMirroredStrategyV1(MultiWorkerMirroredStrategy):
    """tf.distribute.experimental.MultiWorkerMirroredStrategy, with the older arguments."""

    def __init__(
        self,
        communication: Union[CommunicationImplementation, str] = CommunicationImplementation.AUTO,
        cluster_resolver: Optional[ClusterResolver] = None,
        *,
        network: Optional[libdist.Network] = None,
    ) -> None:
        """communication: the implementation of CommunicationOptions. network: not in TensorFlow."""
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication), network=network)


@checked
class OneDeviceStrategy(Strategy):
    """One replica, on the device with this name."""

    def __init__(self, device: str) -> None:
        super().__init__(libdist.Strategy(1, kind=libdist.StrategyKind.ONE_DEVICE, devices=[device]))


@checked
class CentralStorageStrategy(Strategy):
    """Replicas that share one copy of each variable, on the parameter device."""

    def __init__(self, compute_devices: Optional[Sequence[str]] = None, parameter_device: Optional[str] = None) -> None:
        names = None if compute_devices is None else list(compute_devices)
        kind = libdist.StrategyKind.CENTRAL_STORAGE
        super().__init__(
            libdist.Strategy(len(names or ()), kind=kind, devices=names, parameter_device=parameter_device)
        )
