# SPDX-License-Identifier: Apache-2.0
"""Conversions between Python's nests and libdist's values.

Runs and merge calls pass objects unchanged: a replica gets and returns the same objects. If all replicas have the same
object, it is not distributed, as in TensorFlow. Only reductions, collectives and variables convert to tensors. Numbers
then become float32 or int32, as in TensorFlow, and arrays keep their dtype.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, Mapping

import libdist

from ._composites import Composite, composite_of
from ._nest import packed, restored
from ._numbers import convert_to_tensor
from ._tensor import plain, tensor_of
from ._values import DistributedValues, Mirrored, PerReplica

# ---- objects ---------------------------------------------------------------------------------------------------------


class _Box:
    """Wraps an object on its way through libdist, which would convert a number or an array to a tensor."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing


_boxes: weakref.WeakValueDictionary[Any, libdist.Value] = weakref.WeakValueDictionary()
_boxes_lock = threading.Lock()


def interned(strategy: libdist.Strategy, thing: Any, make: Callable[[], Any], what: Any = None) -> libdist.Value:
    """Returns the value of an object, always the same one while it exists, because merging compares identities.

    make() returns what the value holds, and keeps the object alive; `what` distinguishes several values of one object.
    """
    key = (id(strategy), id(thing), what)
    with _boxes_lock:
        value = _boxes.get(key)
    if value is None:
        made = strategy.value(make())  # not under the lock, because make() may read from other workers
        with _boxes_lock:
            value = _boxes.setdefault(key, made)
    return value


class _Structure:
    """A nest that libdist passes as an object next to its packed form; it has the types and the order of keys."""

    __slots__ = ("nest",)

    def __init__(self, nest: Any) -> None:
        self.nest = nest


class Crossing:
    """The conversions of one call. It keeps the values of its objects until the call has returned."""

    def __init__(self, strategy: libdist.Strategy) -> None:
        self._strategy = strategy
        self._kept: list[libdist.Value] = []
        self._results: dict[int, Any] = {}

    def carry(self, nest: Any) -> Any:
        """Returns a nest with a value for each leaf that is an object; None and values stay unchanged."""
        return packed(nest, self._leaf)

    def carry_named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Converts keyword arguments like carry()."""
        return {name: self.carry(argument) for name, argument in arguments.items()}

    def take(self, nest: Any, like: Any) -> Any:
        """Reverses carry(); `like` is the nest that was carried, or one of the same structure."""
        return restored(from_native(nest, self._strategy), like)

    def carry_result(self, place: int, nest: Any) -> Any:
        """Converts the result of a function for one replica, copy or device like carry()."""
        self._results[place] = nest
        return self.carry(nest)

    def take_results(self, nest: Any) -> Any:
        """Converts the merged results like take(), in the structure of the first one."""
        return self.take(nest, self._results[min(self._results)] if self._results else None)

    def carry_whole(self, nest: Any) -> Any:
        """Converts a nest for a receiver that does not have it and calls take_whole()."""
        return (self._object(_Structure(nest)), self.carry(nest))

    def take_whole(self, carried: Any) -> Any:
        """Reverses carry_whole()."""
        structure, nest = from_native(carried, self._strategy)
        return restored(nest, structure.nest)

    def _leaf(self, thing: Any) -> Any:
        if thing is None:
            return None
        if isinstance(thing, DistributedValues):
            return thing._value
        return self._object(thing)

    def _object(self, thing: Any) -> Any:
        value = interned(self._strategy, thing, lambda: _Box(thing))
        self._kept.append(value)
        return value


def from_native(nest: Any, strategy: libdist.Strategy) -> Any:
    """Converts a result of libdist to what a tf.distribute program expects."""
    if isinstance(nest, list):
        return [from_native(item, strategy) for item in nest]
    if isinstance(nest, tuple):
        return tuple(from_native(item, strategy) for item in nest)
    if isinstance(nest, dict):
        return {key: from_native(nest[key], strategy) for key in nest}
    return _from_native(nest, strategy)


def _from_native(thing: Any, strategy: libdist.Strategy) -> Any:
    if isinstance(thing, _Box):
        return thing.thing
    if isinstance(thing, libdist.Value):
        if thing.kind == libdist.ValueKind.PER_REPLICA:
            return PerReplica(thing, strategy)
        if thing.kind == libdist.ValueKind.MIRRORED:
            return Mirrored(thing, strategy)
        if thing.kind == libdist.ValueKind.SHARDED:
            from ._logical import divided

            return divided(thing, strategy)
        return composite_of(thing)
    if isinstance(thing, libdist.Variable):
        from ._variable import Variable

        return Variable._of(thing)
    return tensor_of(thing)


# ---- tensors ---------------------------------------------------------------------------------------------------------


def tensors(strategy: libdist.Strategy, nest: Any, dtype: Any = None) -> Any:
    """Converts a nest for reductions and collectives: to tensors, variables and values of tensors."""
    return packed(nest, lambda leaf: _tensor(strategy, leaf, dtype))


def _tensor(strategy: libdist.Strategy, leaf: Any, dtype: Any) -> Any:
    from ._variable import is_variable

    if leaf is None or isinstance(leaf, (str, libdist.Value, libdist.Tensor)):
        return leaf
    if isinstance(leaf, DistributedValues):
        return _components(leaf, dtype)
    if is_variable(leaf):
        return leaf._native
    if isinstance(leaf, Composite):
        return leaf._as_value_of(strategy)
    array = plain(convert_to_tensor(leaf, dtype))
    if array.dtype.kind not in "biufcV" or array.dtype == object:
        raise libdist.InvalidArgument(f"{type(leaf).__name__} is not a tensor: {leaf!r}")
    return array


def _components(distributed: DistributedValues, dtype: Any) -> libdist.Value:
    value = distributed._value
    kinds = {value.item(i).kind for i in range(len(value))}
    if libdist.ValueKind.OBJECT not in kinds and dtype is None:
        return value
    strategy = distributed._strategy
    items = [_component(strategy, item, dtype) for item in distributed.values]
    make = strategy.mirrored if isinstance(distributed, Mirrored) else strategy.per_replica
    return make(items)


def _component(strategy: libdist.Strategy, item: Any, dtype: Any) -> Any:
    from ._variable import Variable

    return _tensor(strategy, item.read_value() if isinstance(item, Variable) else item, dtype)
