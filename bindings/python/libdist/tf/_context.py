# SPDX-License-Identifier: Apache-2.0
"""The current strategy and replica of a thread, and the functions that a replica calls."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

import numpy as np

import libdist
from libdist._arguments import checked
from libdist._runs import current

from ._convert import Crossing, from_native, tensors
from ._missing import Refusing
from ._nest import restored
from ._options import CommunicationOptions, ReduceOp, collective_options, native_op

if TYPE_CHECKING:
    from ._strategy import Strategy

faces: weakref.WeakValueDictionary[int, Strategy] = weakref.WeakValueDictionary()
"""The tf.distribute.Strategy of each libdist strategy, by identity. It refers to its libdist strategy."""


class _Thread(threading.local):
    default: Optional[Strategy] = None
    context: Optional[weakref.ref[ReplicaContext]] = None


_thread = _Thread()


def face_of(native: libdist.Strategy) -> Strategy:
    """Returns the tf.distribute.Strategy of a libdist strategy."""
    face = faces.get(id(native))
    if face is None:
        from ._strategy import Strategy

        face = Strategy(native)
        _thread.default = face  # nothing else refers to the tf.distribute.Strategy of the thread's default strategy
    return face


def get_strategy() -> Strategy:
    """Returns the strategy of the scope or run that this thread is in; outside, a default strategy with one replica."""
    return face_of(libdist.get_strategy())


def has_strategy() -> bool:
    """Returns whether get_strategy() is not the default strategy."""
    return libdist.has_strategy()


def in_cross_replica_context() -> bool:
    """Returns whether this thread is in cross-replica context.

    True in a scope, a merge function and an update function. False in a replica function and outside all of these.
    """
    return libdist.in_cross_replica_context()


@checked
def experimental_set_strategy(strategy: Optional[Strategy]) -> None:
    """Sets the strategy that is current on this thread outside scopes. None removes it."""
    libdist.set_strategy(None if strategy is None else strategy._native)


def get_replica_context() -> Optional[ReplicaContext]:
    """Returns the replica whose function this thread is in; None in cross-replica context.

    Outside all functions and scopes, this is the replica of the default strategy.
    """
    replica = libdist.get_replica()
    if replica is None:
        return None
    if current.replicas[-1:] != [replica]:  # outside all functions
        return _default_context(replica)
    # A weak reference: a context keeps its strategy alive, and the memory of a thread must not.
    context = None if _thread.context is None else _thread.context()
    if context is None or context._replica is not replica:
        context = ReplicaContext(replica)
        _thread.context = weakref.ref(context)
    return context


def _default_context(replica: libdist.Replica) -> ReplicaContext:
    """Returns the context of a thread's default strategy outside its runs, always the same one."""
    face = face_of(replica.strategy)
    if face._default_context is None:
        face._default_context = ReplicaContext(replica)
    return face._default_context


class ReplicaId(int):
    """A replica's id: an integer with numpy(), which prints like TensorFlow's tensor."""

    def numpy(self) -> Any:
        """Returns the id as a NumPy integer."""
        return np.int32(self)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape=(), dtype=int32, numpy={int(self)}>"

    def __str__(self) -> str:
        return str(int(self))


@checked
class ReplicaContext(Refusing):
    """A replica's id and its collectives; get_replica_context() returns it."""

    _tf_name = "tf.distribute.ReplicaContext"

    def __init__(self, replica: libdist.Replica) -> None:
        self._replica = replica

    @property
    def strategy(self) -> Strategy:
        """The strategy that runs the replica."""
        return face_of(self._replica.strategy)

    @property
    def replica_id_in_sync_group(self) -> int:
        """The replica's id in 0 .. num_replicas_in_sync - 1."""
        return ReplicaId(self._replica.id)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all workers."""
        return self._replica.num_replicas

    @property
    def devices(self) -> tuple[str, ...]:
        """The name of the replica's device, in a tuple; "" for the default strategy."""
        default = self._replica.strategy.kind == libdist.StrategyKind.DEFAULT
        return ("" if default else self._replica.device,)

    def all_reduce(
        self, reduce_op: Union[ReduceOp, str], value: Any, options: Optional[CommunicationOptions] = None
    ) -> Any:
        """Reduces every leaf of a nest over all replicas. Every replica gets the result."""
        op = native_op(reduce_op)
        given = tensors(self._replica.strategy, value)
        result = self._replica.all_reduce_value(op, given, **collective_options(options))
        return restored(from_native(result, self._replica.strategy), value)

    def all_gather(self, value: Any, axis: int, options: Optional[CommunicationOptions] = None) -> Any:
        """Concatenates the tensors of all replicas along an axis, in the order of ids. Every replica gets the result.
        """
        given = tensors(self._replica.strategy, value)
        result = self._replica.all_gather_value(given, axis=axis, **collective_options(options))
        return restored(from_native(result, self._replica.strategy), value)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        """Waits for all replicas, then calls merge_fn(strategy, *args, **kwargs) once, with all arguments merged."""
        crossing = Crossing(self._replica.strategy)
        arguments = tuple(args), dict(kwargs or {})

        def merge(native: libdist.Strategy, positional: Any, named: Any) -> Any:
            given = crossing.take((positional, named), arguments)
            return Crossing(native).carry_whole(merge_fn(face_of(native), *given[0], **given[1]))

        given = (crossing.carry(arguments[0]), crossing.carry_named(arguments[1]))
        return crossing.take_whole(self._replica.merge_call(merge, given))

    def __repr__(self) -> str:
        return f"tf.distribute.ReplicaContext(replica_id_in_sync_group={self.replica_id_in_sync_group})"
