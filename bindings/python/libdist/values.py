# SPDX-License-Identifier: Apache-2.0
"""Values: immutable data to pass into runs and to get out of them.

Functions that take a value accept ordinary Python objects. Arrays and numbers are tensors, and the memory of an array
is used without copying. Lists, tuples and dictionaries are nests. None and str stay what they are, and any other object
is passed through unchanged. Results are converted back in the same way: arrays over libdist's memory, lists, tuples,
dictionaries, None, str and your own objects.

A Value is needed only for data that Python has no type for: one item for each replica, indexed slices, ragged and
sparse tensors, and tensors that are divided over logical devices (which are accepted wherever an array is).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any, Iterable, Iterator, Mapping, Optional

import numpy as np

from . import _calls, _cdist, _tensors
from ._arguments import Rule, Unfit, checked
from ._native import Returned
from ._tensors import Array, TensorLike
from .constants import DType, ValueKind
from .partition import Partition

if TYPE_CHECKING:
    from .strategy import Strategy

_DISTRIBUTED = (ValueKind.PER_REPLICA, ValueKind.MIRRORED)


@checked
class Value(Returned):
    """Data that libdist holds, immutable and reference-counted; Strategy.value() and similar methods create it.

    len(), indexing and iteration use its components, items or parts.
    """

    __slots__ = ("_handle", "__weakref__")

    def _init(self, handle: int) -> None:
        self._handle = handle  # takes over the reference

    # The default keeps the function: the names of the module are gone when the interpreter exits.
    def __del__(self, _release: Any = _cdist.dist_value_release) -> None:
        if getattr(self, "_handle", 0):
            _release(self._handle)

    @staticmethod
    def _borrowed(handle: int) -> Value:
        return Value._of(_cdist.dist_value_retain(handle))

    def _hand_over(self) -> int:
        """Returns a reference for libdist, which releases it."""
        handle: int = _cdist.dist_value_retain(self._handle)
        return handle

    # ---- access ------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> ValueKind:
        """The kind of the value."""
        return ValueKind(_cdist.dist_value_kind_of(self._handle))

    @property
    def is_distributed(self) -> bool:
        """Whether the value has a component for each replica."""
        return self.kind in _DISTRIBUTED

    def __len__(self) -> int:
        return int(_cdist.dist_value_size(self._handle))

    def item(self, index: int) -> Value:
        """Returns item `index` as a Value. Raises IndexError if there is no such item."""
        handle = _cdist.dist_value_item(self._handle, index) if index >= 0 else 0
        if not handle:
            raise IndexError(f"a value with {len(self)} items has no item {index}")
        return Value._borrowed(handle)

    def get(self, key: str) -> Value:
        """Returns the item of a dictionary with this key, as a Value. Raises KeyError if there is no such item."""
        handle = _cdist.dist_value_get(self._handle, key)
        if not handle:
            raise KeyError(key)
        return Value._borrowed(handle)

    def keys(self) -> list[str]:
        """Returns the keys of a dictionary, in the order of their bytes; an empty list for other kinds."""
        return [_cdist.dist_value_key(self._handle, i) for i in range(len(self)) if self.kind == ValueKind.DICT]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self.get(index).python()
        return self.item(index if index >= 0 else index + len(self)).python()

    def __iter__(self) -> Iterator[Any]:
        return (self.item(i).python() for i in range(len(self)))

    def python(self) -> Any:
        """Converts the value to Python objects. Distributed values and composites stay Values."""
        return unwrap(self)

    def numpy(self) -> Any:
        """Returns the tensor as a read-only array over the value's memory; for a variable, replica 0's copy."""
        return _tensors.view(self._tensor(), self)

    @property
    def dtype(self) -> DType:
        """The dtype of the tensor."""
        return DType(self._tensor()[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        shape: tuple[int, ...] = self._tensor()[2]
        return shape

    @property
    def partition(self) -> Partition:
        """The partition of a sharded tensor.

        `uneven` is true if the sizes of the shards are not those of an even split.
        """
        return Partition._of(self._handle)

    def shard(self, logical_device: int) -> Any:
        """Returns the shard that a logical device has of a sharded tensor, as a read-only view of a part of the whole.
        """
        return _tensors.view(self._shard(logical_device)[1], self)

    def shard_begin(self, logical_device: int) -> tuple[int, ...]:
        """Returns the position in the whole tensor at which the shard of a logical device begins."""
        return self._shard(logical_device)[0]

    def _shard(self, logical_device: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        begin = _cdist.Numbers()
        tensor: tuple[Any, ...] = begin.value_shard(self._handle, logical_device)
        return tuple(begin.at(i) for i in range(begin.size())), tensor

    @property
    def text(self) -> Optional[str]:
        """The text of a text value; None for other kinds."""
        text: Optional[str] = _cdist.dist_value_text(self._handle)
        return text

    def describe(self) -> str:
        """Describes the value on one line, identically on every machine: "f32[2] [1, 2]", "PerReplica: 0: ..., 1: ...".
        """
        text = _cdist.Text()
        text.describe_value(self._handle)
        return str(text.text())

    __str__ = describe

    def __repr__(self) -> str:
        return f"<libdist.Value {self.describe()}>"

    def _tensor(self) -> tuple[Any, ...]:
        numbers: tuple[Any, ...] = _cdist.dist_value_tensor(self._handle)
        return (*numbers, self)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        array: Array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        """Shares the tensor's memory with another library. The capsule keeps the value alive."""
        return _cdist.dlpack_capsule(_cdist.dist_value_to_dlpack(self._handle))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU


# ---- conversion --------------------------------------------------------------------------------------------


def _fit_arguments(given: Any) -> Any:
    wrong = (str, bytes, Mapping, np.ndarray)
    if given is None or isinstance(given, Value) or isinstance(given, Iterable) and not isinstance(given, wrong):
        return given
    raise Unfit(given, _ARGUMENTS)


_ARGUMENTS = "a list or tuple of arguments, such as (x,) for one"
Arguments = Annotated[Any, Rule(_fit_arguments, _ARGUMENTS)]
"""Positional arguments of a function: a list or tuple of values."""


def _fit_keywords(given: Any) -> Any:
    of_names = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
    if of_names or given is None or isinstance(given, Value):
        return given
    raise Unfit(given, _KEYWORDS)


_KEYWORDS = "a dict from names to arguments or None"
Keywords = Annotated[Any, Rule(_fit_keywords, _KEYWORDS)]
"""Keyword arguments of a function: a dictionary from names to values."""


class Seen:
    """The values of objects and the objects of values, so that one object that all replicas pass stays one object."""

    __slots__ = ("values", "objects")

    def __init__(self) -> None:
        self.values: dict[int, tuple[Any, Value]] = {}
        self.objects: dict[int, tuple[Value, Any]] = {}


class Shared:
    """A Seen for each round of a run, which all replicas share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rounds: dict[int, Seen] = {}

    def in_round(self, number: int) -> Seen:
        """Returns the Seen of a round. Old ones are dropped, because not every replica takes part in every round."""
        with self._lock:
            seen = self._rounds.get(number)
            if seen is None:
                seen = self._rounds[number] = Seen()
                self._rounds.pop(number - 8, None)
            return seen


def make(strategy: int, thing: Any, seen: Optional[Seen] = None) -> Value:
    """Converts an object to a Value. Keep the result in a variable while its handle is used."""
    if isinstance(thing, Value):
        return thing
    if isinstance(thing, (list, tuple)):
        items = [make(strategy, item, seen) for item in thing]
        handles = [item._handle for item in items]
        if isinstance(thing, list):
            return Value._of(_cdist.dist_value_create_list(strategy, handles, len(handles)))
        return Value._of(_cdist.dist_value_create_tuple(strategy, handles, len(handles)))
    if isinstance(thing, Mapping):
        keys = list(thing)
        items = [make(strategy, thing[key], seen) for key in keys]
        return Value._of(_cdist.dist_value_create_dict(strategy, keys, [item._handle for item in items], len(keys)))
    if seen is None:
        return _leaf(strategy, thing)
    known = seen.values.get(id(thing))
    if known is None:
        known = seen.values.setdefault(id(thing), (thing, _leaf(strategy, thing)))
    return known[1]


def make_tensor(strategy: int, thing: Any, seen: Optional[Seen] = None) -> Value:
    """Converts an object like make(), except that lists and tuples are tensors instead of nests."""
    return make(strategy, _tensors.give(thing) if isinstance(thing, (list, tuple)) else thing, seen)


def _leaf(strategy: int, thing: Any) -> Value:
    if thing is None:
        return Value._of(_cdist.dist_value_create_none(strategy))
    if isinstance(thing, str):
        return Value._of(_cdist.dist_value_create_text(strategy, thing))
    as_value = getattr(thing, "_as_value", None)
    if as_value is not None:
        value: Value = as_value()
        return value
    if _tensors.is_tensor(thing):
        return _wrap(strategy, thing)
    token = _calls.keep(thing)
    try:
        return Value._of(_cdist.dist_value_wrap_object(strategy, token))
    except BaseException:
        _calls.release(token)
        raise


def _wrap(strategy: int, tensor: TensorLike) -> Value:
    if isinstance(tensor, (np.ndarray, _tensors.Tensor)):
        owner = _tensors.owner_of(tensor)
        if type(owner) is Value and owner.kind == ValueKind.TENSOR:
            return owner
    elif isinstance(tensor, Value):
        return tensor
    elif hasattr(tensor, "__dlpack__"):
        return Value._of(_tensors.dlpack_value(strategy, tensor))
    elif isinstance(tensor, (int, float, complex, np.generic)):
        return Value._of(_cdist.dist_value_create_tensor(strategy, [_tensors.give(tensor)]))
    given = _tensors.give(tensor)
    # A memoryview holds the buffer itself, so that a bytearray cannot move.
    token = _calls.keep(given if isinstance(given, tuple) else memoryview(given))
    try:
        return Value._of(_cdist.dist_value_wrap_tensor(strategy, [given], token))
    except BaseException:
        _calls.release(token)
        raise


def unwrap(value: Value, seen: Optional[Seen] = None) -> Any:
    """Converts a value to Python objects."""
    kind = _cdist.dist_value_kind_of(value._handle)
    if kind == ValueKind.LIST:
        return [unwrap(value.item(i), seen) for i in range(len(value))]
    if kind == ValueKind.TUPLE:
        return tuple(unwrap(value.item(i), seen) for i in range(len(value)))
    if kind == ValueKind.DICT:
        return {key: unwrap(value.item(i), seen) for i, key in enumerate(value.keys())}
    if seen is None:
        return _leaf_of(value, kind)
    known = seen.objects.get(value._handle)
    if known is None:
        known = seen.objects.setdefault(value._handle, (value, _leaf_of(value, kind)))
        seen.values.setdefault(id(known[1]), (known[1], known[0]))
    return known[1]


def _leaf_of(value: Value, kind: int) -> Any:
    if kind == ValueKind.TENSOR:
        return value.numpy()
    if kind == ValueKind.NONE:
        return None
    if kind == ValueKind.TEXT:
        return value.text
    if kind == ValueKind.OBJECT:
        return _calls.target_of(_cdist.dist_value_object(value._handle))
    if kind == ValueKind.VARIABLE:
        from .variables import Variable

        return Variable._known(_cdist.dist_value_variable(value._handle), value)
    return value


def owned(handle: int, seen: Optional[Seen] = None) -> Any:
    """Converts a value like unwrap() and takes over its reference; None for NULL."""
    return unwrap(Value._of(handle), seen) if handle else None


def borrowed(handle: int, seen: Optional[Seen] = None) -> Any:
    """Schedules one call of fn(replica) on the next idle replica and returns at once: `await strategy.submit(fn)`."""
    return unwrap(Value._borrowed(handle), seen) if handle else None


def hand_over(strategy: int, thing: Any, seen: Optional[Seen] = None) -> int:
    """Converts the result of a function to a reference that libdist takes over; 0 for None."""
    if thing is None:
        return 0
    return make(strategy, thing, seen)._hand_over()


def arguments(strategy: int, args: Any, seen: Optional[Seen] = None) -> Optional[Value]:
    """Converts positional arguments to a list or tuple value; None for none."""
    if args is None or isinstance(args, Value):
        return args
    return make(strategy, args if isinstance(args, list) else tuple(args), seen)


def handle_of(value: Optional[Value]) -> int:
    """Returns the handle of a value; 0 for None."""
    return 0 if value is None else value._handle
