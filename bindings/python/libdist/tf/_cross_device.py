# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.CrossDeviceOps: reduces and broadcasts values outside runs."""

from __future__ import annotations

import logging
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

import libdist
from libdist._arguments import checked

from ._convert import from_native, tensors
from ._extended import destination
from ._missing import Refusing
from ._options import CommunicationOptions, ReduceOp, native_op
from ._tensor import tensor_of
from ._values import DistributedValues, PerReplica

_log = logging.getLogger("libdist.tf")


def _of_a_program(method: Any, name: str) -> bool:
    return getattr(type(method), name) is not getattr(CrossDeviceOps, name)


@checked
class CrossDeviceOps(Refusing):
    """The base class of cross-device operations.

    A subclass of your own overrides reduce_implementation() and, if necessary, broadcast_implementation().
    """

    _tf_name = "tf.distribute.CrossDeviceOps"

    def __init__(self) -> None:
        self._made: Optional[libdist.CrossDevice] = None

    def _operations(self) -> libdist.CrossDevice:
        """Returns libdist's operations, which are created when they are first needed."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> libdist.CrossDevice:
        if not _of_a_program(self, "reduce_implementation"):
            raise NotImplementedError("_reduce method must be implemented in descendants.")
        broadcast = self._broadcast_components if _of_a_program(self, "broadcast_implementation") else None
        functions = libdist.HostFunctions(self._reduce_components, broadcast)
        return libdist.CrossDevice(libdist.CrossDeviceKind.HOST, functions=functions)

    def _reduce_components(self, op: libdist.ReduceOp, components: list[Any], out: Any) -> None:
        value = Components(components)
        result = self.reduce_implementation(ReduceOp[op.name], value, value, CommunicationOptions())
        out[...] = _one(result)

    def _broadcast_components(self, value: Any, copies: list[Any]) -> None:
        result = self.broadcast_implementation(value, Components(copies))
        for copy in copies:
            copy[...] = _one(result)

    # ---- called by programs -----------------------------------------------------------------------------------------

    def reduce(
        self,
        reduce_op: Union[ReduceOp, str],
        per_replica_value: Any,
        destinations: Any,
        options: Optional[CommunicationOptions] = None,
    ) -> Any:
        """Reduces a per-replica value and places the result at destinations."""
        strategy = _strategy_of(per_replica_value)
        value = tensors(strategy, per_replica_value)
        result = self._operations().reduce(native_op(reduce_op), value, destination(strategy, destinations))
        return from_native(result, strategy)

    def batch_reduce(
        self,
        reduce_op: Union[ReduceOp, str],
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Optional[CommunicationOptions] = None,
    ) -> list[Any]:
        """Performs reduce() for several pairs in one pass."""
        given = list(value_destination_pairs)
        strategy = _strategy_of(given[0][0] if given else None)
        pairs = [(tensors(strategy, value), destination(strategy, where)) for value, where in given]
        results = self._operations().batch_reduce(native_op(reduce_op), pairs)
        return [from_native(result, strategy) for result in results]

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Places a tensor at destinations."""
        strategy = _strategy_of(destinations)
        result = self._operations().broadcast(tensors(strategy, tensor), destination(strategy, destinations))
        return from_native(result, strategy)

    # ---- overridden by subclasses -----------------------------------------------------------------------------------

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: Any, destinations: Any, options: CommunicationOptions
    ) -> Any:
        """Implements reduce(). A subclass reduces per_replica_value.values here."""
        return self.reduce(reduce_op, per_replica_value, destinations, options)

    def batch_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: CommunicationOptions,
    ) -> list[Any]:
        """Implements batch_reduce(). In a subclass, it calls reduce_implementation() for each pair."""
        return self.batch_reduce(reduce_op, value_destination_pairs, options)

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """Implements broadcast()."""
        return self.broadcast(tensor, destinations)


def _strategy_of(value: Any) -> libdist.Strategy:
    """Returns the strategy that created a value, because the operations themselves have none."""
    return value._strategy if isinstance(value, DistributedValues) else libdist.get_strategy()


class Components(PerReplica):
    """The argument of a subclass's reduce_implementation(): arrays over libdist's memory, valid during the call."""

    def __init__(self, components: list[Any]) -> None:
        self._values = tuple(map(tensor_of, components))


def _one(result: Any) -> Any:
    return np.asarray(result.values[0] if isinstance(result, PerReplica) else result)


@checked
class ReductionToOneDevice(CrossDeviceOps):
    """Reduces on one device."""

    def __init__(
        self, reduce_to_device: Optional[str] = None, accumulation_fn: Optional[Callable[[Any], Any]] = None
    ) -> None:
        """accumulation_fn: returns the sum of a list of tensors; None = libdist's sum."""
        super().__init__()
        self.reduce_to_device = reduce_to_device
        """The device name; None = the place of the result."""
        self.accumulation_fn = accumulation_fn
        """Your own addition; None = libdist's."""

    def _make(self) -> libdist.CrossDevice:
        fn = self.accumulation_fn

        def accumulate(acc: Any, values: Any) -> None:
            assert fn is not None
            acc[...] = fn([acc.copy(), values])

        kind = libdist.CrossDeviceKind.REDUCTION_TO_ONE_DEVICE
        return libdist.CrossDevice(kind, reduce_to_device=self.reduce_to_device, accumulate=accumulate if fn else None)


@checked
class NcclAllReduce(CrossDeviceOps):
    """Reduces on all devices. TensorFlow uses NCCL; here the bits are the same as with the other classes."""

    _shown = "NCCL all-reduce"

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__()
        if num_packs < 0:
            raise ValueError(f"{self._shown} requires num_packs >= 0, but {num_packs} is specified")
        self.num_packs = num_packs
        """The number of packs in TensorFlow. It has no effect here."""
        _log.warning("%s has no effect: libdist has one implementation, for CPUs", type(self).__name__)

    def _make(self) -> libdist.CrossDevice:
        return libdist.CrossDevice()


@checked
class HierarchicalCopyAllReduce(NcclAllReduce):
    """Reduces on all devices. TensorFlow uses a hierarchy of devices; here it works like the other classes."""

    _shown = "HierarchicalCopy"
