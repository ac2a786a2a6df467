# SPDX-License-Identifier: Apache-2.0
"""Which strategy and replica a thread is with, and what a replica function does with its replica."""

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
"""The faces of libdist's strategies, by identity: a face keeps its strategy."""


class _Thread(threading.local):
    default: Optional[Strategy] = None
    context: Optional[weakref.ref[ReplicaContext]] = None


_thread = _Thread()


def face_of(native: libdist.Strategy) -> Strategy:
    """The tf.distribute.Strategy of a strategy of libdist's."""
    face = faces.get(id(native))
    if face is None:
        from ._strategy import Strategy

        face = Strategy(native)
        _thread.default = face  # the thread's default strategy has nobody else who would keep its face
    return face


def get_strategy() -> Strategy:
    """The strategy of the scope or run that this thread is in; outside, a default one of a single replica."""
    return face_of(libdist.get_strategy())


def has_strategy() -> bool:
    """Whether get_strategy() is another than the default one."""
    return libdist.has_strategy()


def in_cross_replica_context() -> bool:
    """True in a scope, a merge function, an update function; False in a replica function and outside of all."""
    return libdist.in_cross_replica_context()


@checked
def experimental_set_strategy(strategy: Optional[Strategy]) -> None:
    """Makes a strategy this thread's own outside scopes; None: none any more."""
    libdist.set_strategy(None if strategy is None else strategy._native)


def get_replica_context() -> Optional[ReplicaContext]:
    """The replica whose function this thread is in, or the default strategy's; None in cross-replica context."""
    replica = libdist.get_replica()
    if replica is None:
        return None
    if current.replicas[-1:] != [replica]:  # outside of all functions
        return _default_context(replica)
    # Weakly: a context keeps its strategy, which a thread's memory of it must not.
    context = None if _thread.context is None else _thread.context()
    if context is None or context._replica is not replica:
        context = ReplicaContext(replica)
        _thread.context = weakref.ref(context)
    return context


def _default_context(replica: libdist.Replica) -> ReplicaContext:
    """The one context of a thread's default strategy outside its runs."""
    face = face_of(replica.strategy)
    if face._default_context is None:
        face._default_context = ReplicaContext(replica)
    return face._default_context


class ReplicaId(int):
    """A replica's id: a number, which prints and has numpy() as TensorFlow's tensor."""

    def numpy(self) -> Any:
        """As NumPy's number."""
        return np.int32(self)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape=(), dtype=int32, numpy={int(self)}>"

    def __str__(self) -> str:
        return str(int(self))


@checked
class ReplicaContext(Refusing):
    """What a replica function asks about itself, and its collectives: get_replica_context() gives it."""

    _tf_name = "tf.distribute.ReplicaContext"

    def __init__(self, replica: libdist.Replica) -> None:
        self._replica = replica

    @property
    def strategy(self) -> Strategy:
        """The strategy that runs it."""
        return face_of(self._replica.strategy)

    @property
    def replica_id_in_sync_group(self) -> int:
        """Its id in 0 .. num_replicas_in_sync - 1."""
        return ReplicaId(self._replica.id)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self._replica.num_replicas

    @property
    def devices(self) -> tuple[str, ...]:
        """The name of its device; "" for the default strategy's."""
        default = self._replica.strategy.kind == libdist.StrategyKind.DEFAULT
        return ("" if default else self._replica.device,)

    def all_reduce(
        self, reduce_op: Union[ReduceOp, str], value: Any, options: Optional[CommunicationOptions] = None
    ) -> Any:
        """Reduces a nest over all replicas; each gets the result."""
        op = native_op(reduce_op)
        given = tensors(self._replica.strategy, value)
        result = self._replica.all_reduce_value(op, given, **collective_options(options))
        return restored(from_native(result, self._replica.strategy), value)

    def all_gather(self, value: Any, axis: int, options: Optional[CommunicationOptions] = None) -> Any:
        """Joins the replicas' tensors of a nest along an axis, in the order of replica ids; each gets the result."""
        given = tensors(self._replica.strategy, value)
        result = self._replica.all_gather_value(given, axis=axis, **collective_options(options))
        return restored(from_native(result, self._replica.strategy), value)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        """All replicas meet, and merge_fn(strategy, *args, **kwargs) runs once, with the arguments of all of them."""
        crossing = Crossing(self._replica.strategy)
        arguments = tuple(args), dict(kwargs or {})

        def merge(native: libdist.Strategy, positional: Any, named: Any) -> Any:
            given = crossing.take((positional, named), arguments)
            return Crossing(native).carry_whole(merge_fn(face_of(native), *given[0], **given[1]))

        given = (crossing.carry(arguments[0]), crossing.carry_named(arguments[1]))
        return crossing.take_whole(self._replica.merge_call(merge, given))

    def __repr__(self) -> str:
        return f"tf.distribute.ReplicaContext(replica_id_in_sync_group={self.replica_id_in_sync_group})"
