# SPDX-License-Identifier: Apache-2.0
"""strategy.extended: the functions for libraries that build on a strategy."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Optional, Sequence, Union

import libdist
from libdist._arguments import checked

from ._cluster import native_of
from ._context import face_of, get_replica_context
from ._convert import Crossing, from_native, tensors
from ._copies import Copy
from ._missing import Refusing
from ._nest import map_leaves, restored
from ._options import (
    CommunicationOptions,
    ReduceOp,
    communication_options,
    native_op,
    reduce_options,
    run_options,
)
from ._values import DistributedValues
from ._variable import Variable, is_variable


def destination(strategy: libdist.Strategy, where: Any) -> Any:
    """Returns libdist's destination for a variable, a copy, a value, a tensor or a device name."""
    if isinstance(where, Copy):
        return where.device
    if is_variable(where):
        return where._native
    if isinstance(where, DistributedValues):
        return where._value
    if where is None or isinstance(where, str):
        return where
    return tensors(strategy, where)


def primary(variable: Any) -> Any:
    """Returns the variable itself, or the variable to which a copy belongs; other objects unchanged."""
    return variable._variable if isinstance(variable, Copy) else variable


def _variable(thing: Any) -> Variable:
    if not is_variable(thing):
        raise TypeError(f"a tf.Variable is needed here, not {type(thing).__name__}: {thing!r}")
    variable: Variable = thing
    return variable


def _update_one(variable: Variable, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], group: bool) -> Any:
    """Implements update() for a variable with one copy: the function gets the variable itself."""
    result = fn(variable, *map_leaves(_first, tuple(args)), **map_leaves(_first, kwargs))
    return result if group else map_leaves(lambda leaf: (leaf,), result)


def _first(leaf: Any) -> Any:
    return leaf.values[0] if isinstance(leaf, DistributedValues) else leaf


@checked
class StrategyExtended(Refusing):
    """The functions of a strategy for libraries.

    A subclass of your own states the number of replicas (_num_replicas_in_sync or worker_devices) and overrides the
    functions that work differently: _call_for_each_replica(), _reduce_to(), _batch_reduce_to(), _broadcast_to(),
    _update() and _local_results(), with TensorFlow's arguments. Strategy(extended) is the strategy. libdist does the
    rest.
    """

    _tf_name = "tf.distribute.StrategyExtended"
    _cluster_resolver: Any = None
    _made: Optional[libdist.Strategy] = None

    def __init__(self, container_strategy: Any = None) -> None:
        """container_strategy: accepted without effect, because Strategy(extended) sets the strategy."""

    @classmethod
    def _of(cls, native: libdist.Strategy) -> StrategyExtended:
        extended = cls()
        extended._made = native
        return extended

    @property
    def _native(self) -> libdist.Strategy:
        """libdist's strategy. It is created when it is first needed, as a subclass specifies."""
        if self._made is None:
            devices = list(self.worker_devices) if self._overrides("worker_devices") else None
            if self._overrides("_num_replicas_in_sync"):
                count = int(self._num_replicas_in_sync)
            else:
                count = 1 if devices is None else len(devices)
            self._made = libdist.Strategy(
                count,
                devices=devices if devices and len(devices) == count else None,
                cluster_resolver=native_of(self._cluster_resolver),
            )
        return self._made

    def _overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(StrategyExtended, name)

    def _container_strategy(self) -> Any:
        """Returns the strategy."""
        return face_of(self._native)

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._native.num_replicas

    # ---- running ----------------------------------------------------------------------------------------------------

    def _run(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: Any = None) -> Any:
        crossing = Crossing(self._native)

        def body(replica: libdist.Replica, *positional: Any, **named: Any) -> Any:
            result = fn(*crossing.take(positional, tuple(args)), **crossing.take(named, kwargs))
            return crossing.carry_result(replica.id, result)

        given = crossing.carry(tuple(args)), crossing.carry_named(kwargs)
        return crossing.take_results(self._native.run_values(body, *given, **run_options(options)))

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return self._run(fn, args, kwargs)

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        """Calls a function on every replica, like Strategy.run()."""
        return self._call_for_each_replica(fn, args, kwargs or {})

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        if is_variable(value):
            copies: tuple[Any, ...] = value.values
            return copies if len(copies) > 1 else (value,)
        if isinstance(value, DistributedValues):
            return value.values
        crossing = Crossing(self._native)
        given = self._native.value(crossing.carry(value))
        return tuple(crossing.take(item, value) for item in self._native.local_results(given))

    # ---- values -----------------------------------------------------------------------------------------------------

    def reduce_to(
        self,
        reduce_op: Union[ReduceOp, str],
        value: Any,
        destinations: Any,
        options: Optional[CommunicationOptions] = None,
    ) -> Any:
        """Reduces a per-replica value. The result is mirrored if the destination is on every replica."""
        if self._overrides("_reduce_to"):
            self._cross_replica()
            op = ReduceOp[native_op(reduce_op).name]
            return self._reduce_to(op, value, destinations, communication_options(options))
        return self._reduce_to(reduce_op, value, destinations, options)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        where = destination(self._native, destinations)
        result = self._native.reduce_to(
            native_op(reduce_op), tensors(self._native, value), where, **reduce_options(options)
        )
        return restored(from_native(result, self._native), value)

    def batch_reduce_to(
        self,
        reduce_op: Union[ReduceOp, str],
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Optional[CommunicationOptions] = None,
    ) -> list[Any]:
        """Performs reduce_to() for several pairs in one pass."""
        if self._overrides("_batch_reduce_to"):
            self._cross_replica()
            op = ReduceOp[native_op(reduce_op).name]
            return self._batch_reduce_to(op, value_destination_pairs, communication_options(options))
        if self._overrides("_reduce_to"):
            return [self.reduce_to(reduce_op, value, where, options) for value, where in value_destination_pairs]
        return self._batch_reduce_to(reduce_op, value_destination_pairs, options)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> list[Any]:
        given = list(value_destination_pairs)
        pairs = [(tensors(self._native, value), destination(self._native, where)) for value, where in given]
        results = self._native.batch_reduce_to(native_op(reduce_op), pairs, **reduce_options(options))
        return [restored(from_native(result, self._native), one[0]) for result, one in zip(results, given)]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Places a tensor at destinations. The result is mirrored if the destination is on every replica."""
        return self._broadcast_to(tensor, destinations)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        where = destination(self._native, destinations)
        result = from_native(self._native.broadcast_to(tensors(self._native, tensor), where), self._native)
        return restored(result, tensor)

    def _cross_replica(self) -> None:
        if libdist.get_replica() is not None and libdist.has_strategy():
            raise libdist.FailedPrecondition(
                "Method requires being in cross-replica context, use get_replica_context().merge_call()"
            )

    # ---- variables --------------------------------------------------------------------------------------------------

    def update(
        self,
        var: Variable,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[dict[str, Any]] = None,
        group: bool = True,
    ) -> Any:
        """Calls fn(copy, *args, **kwargs) for every copy of a variable, with that copy's components of the arguments.

        Inside a replica function, all replicas call this together, and replica 0's function is used.
        """
        return self._update(var, fn, tuple(args), dict(kwargs or {}), group)

    def _update(self, var: Any, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], group: bool) -> Any:
        variable = _variable(var)
        inside = not libdist.in_cross_replica_context() and libdist.has_strategy()
        if variable._plain or variable._native.num_copies == 1:
            if inside:
                context: Any = get_replica_context()
                return context.merge_call(lambda _, *a, **k: _update_one(variable, fn, a, k, group), args, kwargs)
            return _update_one(variable, fn, args, kwargs, group)
        crossing = Crossing(self._native)

        def change(place: libdist.UpdatePlace, *positional: Any, **named: Any) -> Any:
            copy = Copy(variable, max(place.replica - self._native.local_replicas.start, 0))
            result = fn(copy, *crossing.take(positional, args), **crossing.take(named, kwargs))
            return crossing.carry_result(place.replica, result)

        given = crossing.carry(args), crossing.carry_named(kwargs)
        replica = libdist.get_replica() if inside else None
        native = self._native.update if replica is None else replica.update
        return crossing.take_results(native(variable._native, change, *given, group=group))

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[dict[str, Any]] = None,
        group: bool = True,
    ) -> Any:
        """Calls fn(*args, **kwargs) once for each device that has variables."""
        crossing = Crossing(self._native)
        named_arguments = dict(kwargs or {})

        def change(place: libdist.UpdatePlace, *positional: Any, **named: Any) -> Any:
            result = fn(*crossing.take(positional, tuple(args)), **crossing.take(named, named_arguments))
            return crossing.carry_result(place.replica, result)

        given = crossing.carry(tuple(args)), crossing.carry_named(named_arguments)
        return crossing.take_results(self._native.update_non_slot(change, *given, group=group))

    def colocate_vars_with(self, colocate_with_variable: Variable) -> AbstractContextManager[None]:
        """Places new variables with another variable, in a `with` block."""
        return self._native.colocate(self._value(colocate_with_variable))

    def variable_created_in_scope(self, v: Any) -> bool:
        """Returns whether this strategy created a variable, or the variable to which a copy belongs."""
        return self._native.variable_created_in_scope(self._value(v))

    def _value(self, variable: Any) -> libdist.Value:
        return self._native.value(_variable(primary(variable))._native)

    def value_container(self, value: Any) -> Any:
        """Returns the variable that a value is, or of which it is a copy; other values unchanged."""
        return primary(value)

    # ---- properties -------------------------------------------------------------------------------------------------

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this worker's replicas."""
        return tuple(self._native.devices)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that hold variables."""
        return tuple(self._native.parameter_devices)

    def non_slot_devices(self, var_list: Sequence[Any]) -> tuple[str, ...]:
        """Returns the devices for state that is not a variable: those of the variables."""
        return self.parameter_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether all batches must have the same size."""
        return self._native.query().require_static_shapes

    @property
    def experimental_between_graph(self) -> bool:
        """Whether variables are apart from the replicas, or each worker runs its own program."""
        return self._native.query().between_graph

    @property
    def experimental_should_init(self) -> bool:
        """Whether this worker initializes variables."""
        return self._native.query().should_init

    @property
    def should_checkpoint(self) -> bool:
        """Whether this worker writes checkpoints: the chief."""
        return self._native.query().should_checkpoint

    @property
    def should_save_summary(self) -> bool:
        """Whether this worker writes summaries: the chief."""
        return self._native.query().should_save_summary
