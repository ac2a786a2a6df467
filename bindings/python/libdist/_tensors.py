# SPDX-License-Identifier: Apache-2.0
"""Tensors: passes arrays to libdist, and libdist's memory to Python as arrays, without a copy in either direction."""

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
"""A NumPy array."""

_A_TENSOR = "an array, a number or a list of numbers"


def _fit(given: Any) -> Any:
    """Returns a tensor unchanged; numbers and lists of numbers become arrays."""
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
    """Checks one tensor, or a list of tensors."""
    return _LIST(given) if isinstance(given, (list, tuple)) else _fit(given)


def _fit_out(given: Any) -> Any:
    """Checks that results can be written to an object."""
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
"""A tensor argument: a NumPy array, an object with a buffer or __dlpack__, a number, or nested lists of numbers."""
Tensors = Annotated[Any, Rule(_fit_all, f"{_A_TENSOR}, or a list of such tensors")]
"""One tensor, or a list of tensors."""
Out = Annotated[Any, Rule(_fit_out, "a writable array, a list of writable arrays or None")]
"""Where results are written: one array or a list of arrays; None means new arrays."""
_LIST = check_of(list[TensorLike])
_OUTS = check_of(list[Out])

# @every dtype but BF16: NumPy does not have it
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
    """An array whose elements have another dtype of the same size for libdist: uint16 as bfloat16.

        libdist.Tensor(np.zeros(4, np.uint16), libdist.DType.BF16)

    It is accepted wherever an array is. Functions return bfloat16 tensors as this type unless the package ml_dtypes is
    installed.
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: Any, dtype: DType) -> None:
        self.array: Array = np.asarray(array)
        """The elements as a NumPy array."""
        self.dtype: DType = DType(dtype)
        """The dtype of the elements for libdist."""
        if self.array.dtype.itemsize != itemsize_of(self.dtype):
            raise InvalidArgument(f"elements of {self.array.dtype} cannot be taken as {self.dtype.name}: other sizes")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    def __repr__(self) -> str:
        return f"Tensor({self.array!r}, {self.dtype.name})"


Viewed = Union[Array, Tensor]
"""libdist's memory in Python: an array, or a Tensor for bfloat16 without ml_dtypes."""


def itemsize_of(dtype: int) -> int:
    """Returns the size of an element in bytes."""
    return 2 if dtype == DType.BF16 else int(_NUMPY[dtype].itemsize)


@checked
def numpy_dtype(dtype: DType) -> Any:
    """Returns the NumPy dtype for a libdist dtype; uint16 for bfloat16 without the package ml_dtypes."""
    if dtype == DType.BF16:
        return _BF16 if _BF16 is not None else np.dtype(np.uint16)
    return _NUMPY[dtype]


@checked
def dtype_of(tensor: Union[Array, Tensor]) -> DType:
    """Returns the libdist dtype of an array or Tensor."""
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
    """Converts an array to the native layer's tuple, with the array as its last item."""
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
    """Converts a tensor to an object with a buffer, or to the native layer's tuple, whose last item owns the memory."""
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
        return memoryview(tensor)  # any other writable object exports a buffer
    array = np.asarray(tensor)
    if array.dtype.kind != "O":
        return give(array)
    for number in array.flat:
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            raise OverflowError(f"{number:#x} does not fit 64 bits, the widest integers of libdist: give a float")
    raise TypeError(f"{type(tensor).__name__} is no tensor: give an array, or numbers")


def give_all(tensors: Sequence[TensorLike], writable: bool = False) -> list[Any]:
    """Converts a list of tensors with give()."""
    return [give(tensor, writable) for tensor in tensors]


def is_tensor(thing: Any) -> bool:
    """Returns whether an object is one tensor, rather than a nest or an object of your own."""
    return (
        isinstance(thing, (np.ndarray, np.generic, Tensor, int, float, complex, memoryview, bytearray))
        or hasattr(thing, "__dlpack__")
        or type(thing).__module__ == "array"
    )


class _Holder:
    """Releases a DLPack tensor that libdist has taken over."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __del__(self, _release: Any = _cdist.dist_value_release) -> None:
        _release(self.value)


def dlpack_value(strategy: int, tensor: Any) -> int:
    """Returns a value that shares the memory of an object with __dlpack__. The caller owns the reference."""
    capsule = tensor.__dlpack__()
    value: int = _cdist.dist_value_from_dlpack(strategy, _cdist.dlpack_managed(capsule))
    _cdist.dlpack_taken(capsule)
    return value


def _take(tensor: Any) -> tuple[Any, ...]:
    holder = _Holder(dlpack_value(_cdist.dist_get_strategy(), tensor))
    numbers: tuple[Any, ...] = _cdist.dist_value_tensor(holder.value)
    return (*numbers, holder)


_NOWHERE = np.zeros(1)  # address of tensors without elements, because NumPy requires an address


class _Memory:
    """Memory of libdist for NumPy. An array over it refers to this object, and so to the owner of the memory."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def view(numbers: tuple[Any, ...], owner: Any, writable: bool = False) -> Viewed:
    """Returns an array over the memory that a native tuple describes. The array keeps `owner` alive."""
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
    """Returns an array over tensor `index` at an address that a callback received."""
    return view(_cdist.tensor_at(tensors, index), owner, writable)


def row_at(address: int, count: int, dtype: int, writable: bool = False) -> Viewed:
    """Returns an array over `count` consecutive elements."""
    return view((address, dtype, (count,), None), None, writable)


def elements_at(address: int, count: int, dtype: int, element_bytes: int, writable: bool = False) -> Viewed:
    """Returns an array over elements of an operator: [count, numbers per element] if they are larger than the dtype."""
    if not element_bytes:
        return row_at(address, count, dtype, writable)
    return view((address, dtype, (count, element_bytes // itemsize_of(dtype)), None), None, writable)


def owner_of(array: Any) -> Any:
    """Returns the owner of an array's memory if the array is a complete view(); None for other arrays."""
    if isinstance(array, Tensor):
        array = array.array
    base = array.base
    if type(array) is not np.ndarray and isinstance(base, np.ndarray) and _same(array, base):
        array, base = base, base.base  # a subclass's view of the whole array
    if _BF16 is not None and array.dtype == _BF16 and isinstance(base, np.ndarray):
        array, base = base, base.base
    return base.owner if type(base) is _Memory and _same(array, base) else None


def _same(one: Any, other: Any) -> bool:
    """Returns whether two arrays are the same elements of memory, in the same order."""
    a, b = one.__array_interface__, other.__array_interface__
    return all(a[key] == b[key] for key in ("shape", "typestr", "strides")) and bool(a["data"][0] == b["data"][0])
