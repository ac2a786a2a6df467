# SPDX-License-Identifier: Apache-2.0
"""strategy.extended: what libraries on top of a strategy use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Optional, Sequence, Union

import libdist

from ._context import face_of
from ._convert import Crossing, from_native, tensors
from ._copies import Copy
from ._options import CommunicationOptions, ReduceOp, native_op
from ._values import DistributedValues
from ._variable import Variable


def destination(strategy: libdist.Strategy, where: Any) -> Any:
    """libdist's destination of a variable, a copy, a value, a tensor or a device's name."""
    if isinstance(where, Copy):
        return where.device
    if isinstance(where, Variable):
        return where._native
    if isinstance(where, DistributedValues):
        return where._value
    if where is None or isinstance(where, str):
        return where
    return tensors(strategy, where)


def primary(variable: Any) -> Any:
    """The variable that something is, or is a copy of; anything else as it is."""
    return variable._variable if isinstance(variable, Copy) else variable


def _variable(thing: Any) -> Variable:
    if not isinstance(thing, Variable):
        raise TypeError(f"a tf.Variable is needed here, not {type(thing).__name__}: {thing!r}")
    return thing


class StrategyExtended:
    """The second face of a strategy."""

    def __init__(self, native: libdist.Strategy) -> None:
        self._native = native

    # ---- values -----------------------------------------------------------------------------------------------------

    def reduce_to(
        self,
        reduce_op: Union[ReduceOp, str],
        value: Any,
        destinations: Any,
        options: Optional[CommunicationOptions] = None,
    ) -> Any:
        """Reduces a per-replica value to where it is wanted: mirrored where that is on every replica."""
        where = destination(self._native, destinations)
        result = self._native.reduce_to(native_op(reduce_op), tensors(self._native, value), where)
        return from_native(result, self._native)

    def batch_reduce_to(
        self,
        reduce_op: Union[ReduceOp, str],
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Optional[CommunicationOptions] = None,
    ) -> list[Any]:
        """reduce_to() of several pairs in one pass."""
        pairs = [
            (tensors(self._native, value), destination(self._native, where)) for value, where in value_destination_pairs
        ]
        results = self._native.batch_reduce_to(native_op(reduce_op), pairs)
        return [from_native(result, self._native) for result in results]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """One tensor where it is wanted: mirrored where that is on every replica."""
        where = destination(self._native, destinations)
        return from_native(self._native.broadcast_to(tensors(self._native, tensor), where), self._native)

    # ---- variables --------------------------------------------------------------------------------------------------

    def update(
        self,
        var: Variable,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[dict[str, Any]] = None,
        group: bool = True,
    ) -> Any:
        """Calls fn(copy, *args, **kwargs) for every copy of a variable, with that replica's components of args.

        Inside a replica function all replicas meet, and replica 0's function is used.
        """
        variable = _variable(var)
        crossing = Crossing(self._native)

        def change(place: libdist.UpdatePlace, *positional: Any, **named: Any) -> Any:
            copy = Copy(variable, max(place.replica, 0))
            return crossing.carry(fn(copy, *crossing.take(positional), **crossing.take(named)))

        given = crossing.carry(tuple(args)), crossing.carry(dict(kwargs or {}))
        replica = None if libdist.in_cross_replica_context() or not libdist.has_strategy() else libdist.get_replica()
        native = self._native.update_values if replica is None else replica.update
        return crossing.take(native(variable._native, change, *given, group=group))

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[dict[str, Any]] = None,
        group: bool = True,
    ) -> Any:
        """Calls fn(*args, **kwargs) once for each device that variables are on."""
        crossing = Crossing(self._native)

        def change(_: libdist.UpdatePlace, *positional: Any, **named: Any) -> Any:
            return crossing.carry(fn(*crossing.take(positional), **crossing.take(named)))

        given = crossing.carry(tuple(args)), crossing.carry(dict(kwargs or {}))
        return crossing.take(self._native.update_non_slot(change, *given, group=group))

    def colocate_vars_with(self, colocate_with_variable: Variable) -> AbstractContextManager[None]:
        """Inside, new variables are placed with a variable."""
        return self._native.colocate(self._value(colocate_with_variable))

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether this strategy made a variable, or the variable that a copy is of."""
        return self._native.variable_created_in_scope(self._value(v))

    def _value(self, variable: Any) -> libdist.Value:
        return libdist.Value.of(self._native, _variable(primary(variable))._native)

    def value_container(self, value: Any) -> Any:
        """The variable that a value is, or is a copy of; any other value as it is."""
        return primary(value)

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        """Strategy.run()."""
        return face_of(self._native).run(fn, args, kwargs)

    # ---- what it is -------------------------------------------------------------------------------------------------

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The replicas' devices."""
        return tuple(self._native.devices)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that variables are on."""
        return tuple(self._native.parameter_devices)

    def non_slot_devices(self, var_list: Sequence[Any]) -> tuple[str, ...]:
        """Where what is no variable is kept: with the variables."""
        return self.parameter_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether batches may not differ in size."""
        return self._native.query().require_static_shapes

    @property
    def experimental_between_graph(self) -> bool:
        """Whether variables are kept away from the replicas."""
        return self._native.query().between_graph

    @property
    def experimental_should_init(self) -> bool:
        """Whether this process initializes variables."""
        return self._native.query().should_init

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints."""
        return self._native.query().should_checkpoint

    @property
    def should_save_summary(self) -> bool:
        """Whether this process writes summaries."""
        return self._native.query().should_save_summary
