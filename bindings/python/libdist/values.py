# SPDX-License-Identifier: Apache-2.0
"""Values: what goes into runs and reductions and comes out of them.

Everywhere a value is taken, ordinary Python will do: arrays and numbers are tensors (an array's memory is used, not
copied), lists, tuples and dicts are nests, None and str are themselves, anything else is passed through as it is.
What comes out is the same: arrays over libdist's memory, lists, tuples, dicts, None, str, the program's own objects. A
Value is for what Python has no type for: one thing for each replica, indexed slices, ragged and sparse tensors, tensors
that are divided over logical devices (an array too, wherever one is taken).
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
    """A value of libdist's, which Strategy.value() and its like make. It is immutable, and kept as long as anybody has it.

    len(), indexing and iteration are over its components, items or parts.
    """

    __slots__ = ("_handle", "__weakref__")

    def _init(self, handle: int) -> None:
        self._handle = handle  # takes over the reference

    # The module's own names are gone when the interpreter ends: hence the default.
    def __del__(self, _release: Any = _cdist.dist_value_release) -> None:
        if getattr(self, "_handle", 0):
            _release(self._handle)

    @staticmethod
    def _borrowed(handle: int) -> Value:
        return Value._of(_cdist.dist_value_retain(handle))

    def _hand_over(self) -> int:
        """A reference for libdist."""
        handle: int = _cdist.dist_value_retain(self._handle)
        return handle

    # ---- looking -------------------------------------------------------------------------------------------

    @property
    def kind(self) -> ValueKind:
        """What it is."""
        return ValueKind(_cdist.dist_value_kind_of(self._handle))

    @property
    def is_distributed(self) -> bool:
        """Whether it has a component for each replica."""
        return self.kind in _DISTRIBUTED

    def __len__(self) -> int:
        return int(_cdist.dist_value_size(self._handle))

    def item(self, index: int) -> Value:
        """Item `index` as a Value."""
        handle = _cdist.dist_value_item(self._handle, index) if index >= 0 else 0
        if not handle:
            raise IndexError(f"a value with {len(self)} items has no item {index}")
        return Value._borrowed(handle)

    def get(self, key: str) -> Value:
        """The item of a dictionary under a key, as a Value."""
        handle = _cdist.dist_value_get(self._handle, key)
        if not handle:
            raise KeyError(key)
        return Value._borrowed(handle)

    def keys(self) -> list[str]:
        """A dictionary's keys, in the order of their bytes."""
        return [_cdist.dist_value_key(self._handle, i) for i in range(len(self)) if self.kind == ValueKind.DICT]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self.get(index).python()
        return self.item(index if index >= 0 else index + len(self)).python()

    def __iter__(self) -> Iterator[Any]:
        return (self.item(i).python() for i in range(len(self)))

    def python(self) -> Any:
        """The value as Python has it: see the top of this page. Distributed values and composites stay Values."""
        return unwrap(self)

    def numpy(self) -> Any:
        """The tensor as a read-only array over the value's memory; of a variable, replica 0's copy."""
        return _tensors.view(self._tensor(), self)

    @property
    def dtype(self) -> DType:
        """The tensor's."""
        return DType(self._tensor()[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        shape: tuple[int, ...] = self._tensor()[2]
        return shape

    @property
    def partition(self) -> Partition:
        """How a sharded tensor is divided over logical devices. `uneven` is also of shards of any other sizes."""
        return Partition._of(self._handle)

    def shard(self, logical_device: int) -> Any:
        """What a logical device has of a sharded tensor: a read-only view into the whole."""
        return _tensors.view(self._shard(logical_device)[1], self)

    def shard_begin(self, logical_device: int) -> tuple[int, ...]:
        """Where in the whole shard() begins."""
        return self._shard(logical_device)[0]

    def _shard(self, logical_device: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        begin = _cdist.Numbers()
        tensor: tuple[Any, ...] = begin.value_shard(self._handle, logical_device)
        return tuple(begin.at(i) for i in range(begin.size())), tensor

    @property
    def text(self) -> Optional[str]:
        """The text that the value is, or None."""
        text: Optional[str] = _cdist.dist_value_text(self._handle)
        return text

    def describe(self) -> str:
        """The value on one line, the same on every machine: "f32[2] [1, 2]", "PerReplica: 0: ..., 1: ..."."""
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
        """The tensor's memory for another library; it keeps the value."""
        return _cdist.dlpack_capsule(_cdist.dist_value_to_dlpack(self._handle))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU


# ---- From Python, and back ---------------------------------------------------------------------------------


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
"""Arguments of a function by name."""


class Seen:
    """Which value an object became, and which object a value: the same thing in all replicas stays the same thing."""

    __slots__ = ("values", "objects")

    def __init__(self) -> None:
        self.values: dict[int, tuple[Any, Value]] = {}
        self.objects: dict[int, tuple[Value, Any]] = {}


class Shared:
    """A Seen for each round of a run: what the replicas give there is looked up by all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rounds: dict[int, Seen] = {}

    def in_round(self, number: int) -> Seen:
        """Of a replica's round `number`. Old ones are forgotten: not every replica comes to every one."""
        with self._lock:
            seen = self._rounds.get(number)
            if seen is None:
                seen = self._rounds[number] = Seen()
                self._rounds.pop(number - 8, None)
            return seen


def make(strategy: int, thing: Any, seen: Optional[Seen] = None) -> Value:
    """A Value of whatever is given. Keep it in a variable: its handle is its own only as long as somebody has it."""
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
    """make() where no nest can be meant: lists and tuples are tensors, as they are where a variable is made."""
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
    """A value as Python has it."""
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
    """unwrap() of a reference that is taken over; None for NULL."""
    return unwrap(Value._of(handle), seen) if handle else None


def borrowed(handle: int, seen: Optional[Seen] = None) -> Any:
    """unwrap() of a reference that stays whose it is; None for NULL."""
    return unwrap(Value._borrowed(handle), seen) if handle else None


def hand_over(strategy: int, thing: Any, seen: Optional[Seen] = None) -> int:
    """A reference for libdist to whatever a function returned; 0 for None."""
    if thing is None:
        return 0
    return make(strategy, thing, seen)._hand_over()


def arguments(strategy: int, args: Any, seen: Optional[Seen] = None) -> Optional[Value]:
    """Positional arguments as a list or tuple of values; None for none."""
    if args is None or isinstance(args, Value):
        return args
    return make(strategy, args if isinstance(args, list) else tuple(args), seen)


def handle_of(value: Optional[Value]) -> int:
    """A value's handle; 0 for None."""
    return 0 if value is None else value._handle
