# SPDX-License-Identifier: Apache-2.0
"""Tensors: how arrays go into libdist, and how libdist's memory comes out as arrays, without a copy either way."""

from __future__ import annotations

import importlib
from typing import Annotated, Any, Optional, Sequence, Union

import numpy as np

from . import _cdist
from ._arguments import Rule, Unfit, check_of, checked
from .constants import DType
from .errors import InvalidArgument

try:
    _BF16: Any = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
except ImportError:
    _BF16 = None

Array = np.ndarray[Any, Any]
"""An array of NumPy's."""

_A_TENSOR = "an array, a number or a list of numbers"


def _fit(given: Any) -> Any:
    """A tensor as it is; numbers and lists of them become arrays."""
    taken = given
    if not isinstance(given, np.ndarray):
        if is_tensor(given) and not isinstance(given, (int, float, complex)) or hasattr(given, "_tensor"):
            return given
        try:
            taken = give(given)
        except (TypeError, ValueError):
            raise Unfit(given, _A_TENSOR) from None
    dtype = getattr(taken, "dtype", None)
    if dtype is not None and dtype not in _DTYPES and dtype != _BF16:
        if taken is not given and dtype.kind in "OSU":
            raise Unfit(given, _A_TENSOR)
        expected = f"of one of the dtypes {', '.join(dtype.name for dtype in DType)}"
        raise Unfit(f"an array of {dtype}" if taken is given else given, expected, right_type=taken is given)
    return taken


def _fit_all(given: Any) -> Any:
    """One tensor, or a list of them."""
    return _LIST(given) if isinstance(given, (list, tuple)) else _fit(given)


def _fit_out(given: Any) -> Any:
    """What results can be written to."""
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        return _OUTS(given)
    if isinstance(given, np.ndarray):
        writable = given.flags.writeable
    else:
        try:
            writable = hasattr(given, "__dlpack__") or bool(give(given, writable=True))
        except (TypeError, InvalidArgument):
            writable = False
    if not writable:
        raise Unfit(given, "a writable array", right_type=isinstance(given, (np.ndarray, Tensor)))
    return given


TensorLike = Annotated[Any, Rule(_fit, _A_TENSOR)]
"""What goes in as a tensor: a NumPy array, whatever exports a buffer or has __dlpack__, numbers and lists of them."""
Tensors = Annotated[Any, Rule(_fit_all, f"{_A_TENSOR}, or a list of such tensors")]
"""One tensor, or a list of them."""
Out = Annotated[Any, Rule(_fit_out, "a writable array, a list of writable arrays or None")]
"""Where results are written: one array, or a list of them; None for new arrays."""
_LIST = check_of(list[TensorLike])
_OUTS = check_of(list[Out])

# @every dtype but BF16: NumPy has none
_NUMPY: dict[int, Any] = {
    DType.F16: np.dtype(np.float16),
    DType.F32: np.dtype(np.float32),
    DType.F64: np.dtype(np.float64),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.I16: np.dtype(np.int16),
    DType.U16: np.dtype(np.uint16),
    DType.I32: np.dtype(np.int32),
    DType.U32: np.dtype(np.uint32),
    DType.I64: np.dtype(np.int64),
    DType.U64: np.dtype(np.uint64),
    DType.COMPLEX64: np.dtype(np.complex64),
    DType.BOOL: np.dtype(np.bool_),
}
_DTYPES = {dtype: number for number, dtype in _NUMPY.items()}


@checked
class Tensor:
    """An array whose elements are to be taken as another dtype of the same size: uint16 as bfloat16.

    It stands wherever an array may, and is what bfloat16 comes out as where the package ml_dtypes is not installed.
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: Any, dtype: DType) -> None:
        self.array: Array = np.asarray(array)
        """The elements as NumPy has them."""
        self.dtype: DType = DType(dtype)
        """What they are to libdist."""
        if self.array.dtype.itemsize != itemsize_of(self.dtype):
            raise InvalidArgument(f"elements of {self.array.dtype} cannot be taken as {self.dtype.name}: other sizes")

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    def __repr__(self) -> str:
        return f"Tensor({self.array!r}, {self.dtype.name})"


Viewed = Union[Array, Tensor]
"""Memory of libdist's as it comes out: an array; a Tensor for bfloat16 without ml_dtypes."""


def itemsize_of(dtype: int) -> int:
    """The size of an element in bytes."""
    return 2 if dtype == DType.BF16 else int(_NUMPY[dtype].itemsize)


@checked
def numpy_dtype(dtype: DType) -> Any:
    """NumPy's dtype for one of libdist's; uint16 for bfloat16 without the package ml_dtypes."""
    if dtype == DType.BF16:
        return _BF16 if _BF16 is not None else np.dtype(np.uint16)
    return _NUMPY[dtype]


@checked
def dtype_of(tensor: Union[Array, Tensor]) -> DType:
    """libdist's dtype of an array or Tensor."""
    dtype = tensor.dtype
    if isinstance(dtype, DType):
        return dtype
    if _BF16 is not None and dtype == _BF16:
        return DType.BF16
    number = _DTYPES.get(dtype)
    if number is None:
        raise InvalidArgument(f"elements of {dtype} are not for libdist: it has {', '.join(d.name for d in DType)}")
    return DType(number)


def _numbers_of(array: Array, dtype: DType, writable: bool) -> tuple[Any, ...]:
    """An array as the native layer's tuple, with the array itself behind."""
    if writable and not array.flags.writeable:
        raise InvalidArgument("the array is read-only, and a result is to be written to it")
    itemsize = array.itemsize
    strides: Optional[tuple[int, ...]] = None
    if not array.flags.c_contiguous:
        if any(stride % itemsize for stride in array.strides):
            raise InvalidArgument("an array's strides are no multiples of its elements' size")
        strides = tuple(stride // itemsize for stride in array.strides)
    return (array.__array_interface__["data"][0], int(dtype), array.shape, strides, array)


def give(tensor: TensorLike, writable: bool = False) -> Any:
    """A tensor as the native layer takes it: an exporter of a buffer, or a tuple whose last item owns the memory."""
    if isinstance(tensor, np.ndarray):
        if tensor.dtype.kind != "V":
            return tensor
        return _numbers_of(tensor, dtype_of(tensor), writable)
    if isinstance(tensor, Tensor):
        return _numbers_of(tensor.array, tensor.dtype, writable)
    native = getattr(tensor, "_tensor", None)
    if native is not None:
        if writable:
            raise InvalidArgument("a Value is immutable: a result cannot be written to it")
        return native()
    if isinstance(tensor, (memoryview, bytearray)) or type(tensor).__module__ == "array":
        return tensor
    if hasattr(tensor, "__dlpack__"):
        return _take(tensor)
    if writable:
        return memoryview(tensor)  # whatever else can be written to exports a buffer
    array = np.asarray(tensor)
    if array.dtype.kind != "O":
        return give(array)
    for number in array.flat:
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            raise OverflowError(f"{number:#x} does not fit 64 bits, the widest integers of libdist: give a float")
    raise TypeError(f"{type(tensor).__name__} is no tensor: give an array, or numbers")


def give_all(tensors: Sequence[TensorLike], writable: bool = False) -> list[Any]:
    """give() for a list."""
    return [give(tensor, writable) for tensor in tensors]


def is_tensor(thing: Any) -> bool:
    """Whether something is one tensor, rather than a nest or an object of the program's."""
    return (
        isinstance(thing, (np.ndarray, np.generic, Tensor, int, float, complex, memoryview, bytearray))
        or hasattr(thing, "__dlpack__")
        or type(thing).__module__ == "array"
    )


class _Holder:
    """Ends a DLPack tensor that libdist has taken over."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __del__(self, _release: Any = _cdist.dist_value_release) -> None:
        _release(self.value)


def dlpack_value(strategy: int, tensor: Any) -> int:
    """A value (its reference is the caller's) that shares the memory of something with __dlpack__."""
    capsule = tensor.__dlpack__()
    value: int = _cdist.dist_value_from_dlpack(strategy, _cdist.dlpack_managed(capsule))
    _cdist.dlpack_taken(capsule)
    return value


def _take(tensor: Any) -> tuple[Any, ...]:
    holder = _Holder(dlpack_value(_cdist.dist_get_strategy(), tensor))
    numbers: tuple[Any, ...] = _cdist.dist_value_tensor(holder.value)
    return (*numbers, holder)


_NOWHERE = np.zeros(1)  # where a tensor without elements may be: NumPy wants an address


class _Memory:
    """Memory of libdist's, for NumPy; an array over it keeps this object, and so the owner."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def view(numbers: tuple[Any, ...], owner: Any, writable: bool = False) -> Viewed:
    """An array over the memory of a native tuple, which `owner` keeps."""
    address, dtype, shape, strides = numbers[:4]
    typestr = "<u2" if dtype == DType.BF16 else _NUMPY[dtype].str
    if strides is not None:
        itemsize = itemsize_of(dtype)
        strides = tuple(stride * itemsize for stride in strides)
    interface = {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": typestr,
        "data": (address or _NOWHERE.ctypes.data, not writable),
    }
    array: Array = np.asarray(_Memory(owner, interface))
    if dtype != DType.BF16:
        return array
    return array.view(_BF16) if _BF16 is not None else Tensor(array, DType.BF16)


def view_at(tensors: int, index: int, owner: Any = None, writable: bool = False) -> Viewed:
    """view() of tensor `index` behind an address that a callback was given."""
    return view(_cdist.tensor_at(tensors, index), owner, writable)


def row_at(address: int, count: int, dtype: int, writable: bool = False) -> Viewed:
    """view() of elements in a row."""
    return view((address, dtype, (count,), None), None, writable)


def elements_at(address: int, count: int, dtype: int, element_bytes: int, writable: bool = False) -> Viewed:
    """row_at() of an operator's elements: [count, numbers of one] where they are larger than the dtype."""
    if not element_bytes:
        return row_at(address, count, dtype, writable)
    return view((address, dtype, (count, element_bytes // itemsize_of(dtype)), None), None, writable)


def owner_of(array: Any) -> Any:
    """Who keeps the memory of an array that is a whole view() still; None for other arrays."""
    if isinstance(array, Tensor):
        array = array.array
    base = array.base
    if type(array) is not np.ndarray and isinstance(base, np.ndarray) and _same(array, base):
        array, base = base, base.base  # a subclass's view of the whole
    if _BF16 is not None and array.dtype == _BF16 and isinstance(base, np.ndarray):
        array, base = base, base.base
    return base.owner if type(base) is _Memory and _same(array, base) else None


def _same(one: Any, other: Any) -> bool:
    """Whether two things are the same elements in the same order."""
    a, b = one.__array_interface__, other.__array_interface__
    return all(a[key] == b[key] for key in ("shape", "typestr", "strides")) and bool(a["data"][0] == b["data"][0])
