# SPDX-License-Identifier: Apache-2.0
"""SplitTensor: a tensor that is split over the logical devices of a replica.

Inside the replica function, element-wise functions, casts and reductions run on every logical device with its part, and
the parts of the result are joined. An index, numpy() and printing read the whole. Everything else raises an error that
mentions on_logical_devices(). Outside the replica function, a split tensor works like any other tensor.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any, Callable, Optional

import numpy as np

import libdist
from libdist.partition import Partition, Shard

from ._tensor import Holder, TensorShape, calculate, plain, tensor_of

_ELEMENT_WISE = frozenset(
    "angle around clip copy empty_like fix full_like imag isclose iscomplex isneginf isposinf isreal nan_to_num ones_like "
    "real real_if_close round round_ sinc where zeros_like".split()
)
"""NumPy functions other than ufuncs whose element i depends only on the elements i of the arguments."""

_REDUCTIONS = {
    "all": "all",
    "amax": "max",
    "amin": "min",
    "any": "any",
    "max": "max",
    "mean": "mean",
    "min": "min",
    "prod": "prod",
    "sum": "sum",
}
"""NumPy functions that are methods here."""

_READING = frozenset(
    "array2string array_equal array_repr array_str iscomplexobj isrealobj ndim save shape size".split()
)
"""NumPy functions that only read the tensor or its shape."""

_READING_METHODS = frozenset("dump dumps flags item itemsize nbytes size strides tobytes tofile".split())
"""Methods and attributes of arrays that only read the tensor or its shape."""

_ELEMENT_WISE_METHODS = frozenset("clip conj conjugate round".split())

_COMBINING = frozenset(
    (
        np.add,
        np.multiply,
        np.maximum,
        np.minimum,
        np.fmax,
        np.fmin,
        np.logical_and,
        np.logical_or,
        np.logical_xor,
        np.bitwise_and,
        np.bitwise_or,
        np.bitwise_xor,
        np.logaddexp,
        np.logaddexp2,
        np.gcd,
        np.lcm,
    )
)
"""The ufuncs whose reductions can be combined over devices with the same ufunc."""


class SplitTensor(Holder):
    """A tensor that is split over the logical devices of a replica.

    Inside the replica function, element-wise functions, casts and reductions run on every logical device with its part.
    """

    def __init__(self, value: libdist.Value, strategy: libdist.Strategy) -> None:
        self._value = value
        self._strategy = strategy

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor."""
        return TensorShape(self._value.shape)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return libdist.numpy_dtype(self._value.dtype)

    def read_value(self) -> Any:
        """Returns the whole tensor."""
        return tensor_of(self._value.numpy())

    def tolist(self) -> Any:
        """Returns the whole tensor as nested lists."""
        return self.read_value().tolist()

    def __repr__(self) -> str:
        return repr(self.read_value())

    def __str__(self) -> str:
        return str(self.read_value())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not self._is_divided() or name in _READING_METHODS:
            return getattr(self.read_value(), name)
        if name not in _ELEMENT_WISE_METHODS:
            raise self.refusal(f"{name}()" if callable(getattr(np.ndarray, name)) else name)

        def method(*args: Any, **kwargs: Any) -> Any:
            def of_part(part: Any, *given: Any, **named: Any) -> Any:
                return getattr(part, name)(*given, **named)

            return self._element_wise(f"{name}()", of_part, (self, *args), kwargs)

        return method

    # ---- computation on logical devices ----------------------------------------------------------------------------

    def _replica(self) -> Optional[libdist.Replica]:
        """Returns the replica whose function this thread is in; None elsewhere, and on a logical device."""
        replica = libdist.get_replica()
        if replica is None or replica.strategy is not self._strategy or replica.device_replica >= 0:
            return None
        return replica

    def _is_divided(self) -> bool:
        return self._replica() is not None

    def refusal(self, what: str) -> libdist.FailedPrecondition:
        """Returns the error for an operation that cannot run part by part."""
        devices = self._strategy.num_logical_devices
        return libdist.FailedPrecondition(
            f"{what} needs more than one part of a tensor of shape {self.shape}, which is split over {devices} logical "
            "devices. Write @tf.distribute.on_logical_devices above your model, so that the whole function runs on "
            "every device with its part, or call strategy.run_on_logical_devices(model, (tensor,)). To compute on this "
            "thread, read the whole with .numpy()"
        )

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        if not self._is_divided() or name in _READING:
            return tensor_of(func(*_wholes(args), **_wholes(kwargs)))
        if name in _REDUCTIONS and args and isinstance(args[0], SplitTensor):
            return getattr(args[0], _REDUCTIONS[name])(*args[1:], **kwargs)
        other = kwargs.get("shape") is not None or (name == "where" and len(args) + len(kwargs) == 1)
        if name not in _ELEMENT_WISE or other:
            raise self.refusal(f"numpy.{name}()")
        return self._element_wise(f"numpy.{name}()", func, args, kwargs)

    def __pow__(self, exponent: Any) -> Any:
        if not self._is_divided():
            return super().__pow__(exponent)
        return self._element_wise("**", operator.pow, (self, exponent), {})

    def _calculate(self, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Performs calculate() on the parts."""
        name = f"numpy.{ufunc.__name__}" + ("()" if method == "__call__" else f".{method}()")
        outs = kwargs.pop("out", None) or ()
        outs = outs if isinstance(outs, tuple) else (outs,)
        if method == "__call__" and ufunc.signature is None:
            result = self._element_wise(
                name, lambda *given, **named: calculate(ufunc, method, given, named), inputs, kwargs
            )
        elif method == "reduce" and isinstance(inputs[0], SplitTensor):
            result = inputs[0]._reduced(name, ufunc, **{"axis": 0, **kwargs})
        else:
            raise self.refusal(name)
        given = [out for out in outs if out is not None]
        if not given or any(isinstance(out, Holder) for out in given):
            return result  # `x += 1` returns a new tensor
        for out, one in zip(given, result if isinstance(result, tuple) else (result,)):
            np.copyto(plain(out), plain(one))
        return given[0] if len(given) == 1 else tuple(given)

    def _element_wise(self, name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Calls fn(*args, **kwargs) on every device, with its part of each array."""
        given = [_operand(thing) for thing in args]
        named = {key: _operand(thing) for key, thing in kwargs.items()}
        arrays = [thing for thing in (*given, *named.values()) if isinstance(thing, (np.ndarray, SplitTensor))]
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        model = next((one for one in arrays if isinstance(one, SplitTensor) and one.shape == shape), None)
        if model is None:
            raise self.refusal(f"{name} with a result of shape {TensorShape(shape)}")
        whole = {id(one): plain(one) for one in arrays}

        def part(thing: Any, shard: Shard) -> Any:
            return tensor_of(_part(whole[id(thing)], len(shape), shard)) if id(thing) in whole else thing

        def on_device(shard: Shard) -> Any:
            parts = [part(thing, shard) for thing in given]
            return fn(*parts, **{key: part(thing, shard) for key, thing in named.items()})

        return self._on_devices(model._value.partition, on_device, model._value.partition)

    def _reduced(
        self,
        name: str,
        ufunc: Any,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Performs ufunc.reduce(). The result is split like this tensor, unless a split axis is reduced."""
        if where is not True:
            raise self.refusal(f"{name} with `where`")
        partition = self._value.partition
        axes = _axes(axis, len(self.shape))
        kept = [d for d in range(len(self.shape)) if d not in axes]
        whole = plain(self)

        def reduced(shard: Shard) -> Any:
            return np.asarray(ufunc.reduce(_part(whole, whole.ndim, shard), axis=axes, dtype=dtype, keepdims=True))

        def begun(result: Any) -> Any:
            if initial is not None and initial is not getattr(np, "_NoValue", None):
                result = np.asarray(ufunc(np.asarray(initial, result.dtype), result))
            return result if keepdims else result.reshape([result.shape[d] for d in kept])

        if all(partition.dimensions[d] == 1 for d in axes):
            places = range(len(self.shape)) if keepdims else kept
            sizes = [1 if d in axes else self.shape[d] for d in places]
            split = Partition.split(sizes, [partition.dimensions[d] for d in places], uneven=partition.uneven)
            return self._on_devices(partition, lambda shard: begun(reduced(shard)), split)
        if ufunc not in _COMBINING:
            raise self.refusal(f"{name} over a split axis")
        results: dict[int, Any] = {}

        def on_device(shard: Shard, device: int) -> None:
            results[device] = reduced(shard)

        self._on_devices(partition, on_device, None)
        sizes = [1 if d in axes else self.shape[d] for d in range(len(self.shape))]
        total, begun_tiles = np.empty(sizes, results[0].dtype), set()
        for device in range(partition.num_logical_devices):  # a fixed order, so that the bits are always the same
            shard = partition.shard(device)
            tile = tuple(0 if d in axes else shard.begin[d] for d in range(len(sizes)))
            place = tuple(slice(begin, begin + size) for begin, size in zip(tile, results[device].shape))
            total[place] = ufunc(total[place], results[device]) if tile in begun_tiles else results[device]
            begun_tiles.add(tile)
        return tensor_of(begun(total))

    def _on_devices(self, partition: Partition, fn: Callable[..., Any], result: Optional[Partition]) -> Any:
        """Calls a function with its shard on every logical device; `result` is the partition of the results."""
        from ._convert import from_native

        replica = self._replica()
        assert replica is not None

        def body(device: libdist.Replica) -> Any:
            shard = partition.shard(device.id)
            if result is None:
                return fn(shard, device.id)
            made = fn(shard)
            return tuple(map(plain, made)) if isinstance(made, tuple) else plain(made)

        return from_native(replica.run_on_devices(body, results=result), self._strategy)

    # ---- methods ----------------------------------------------------------------------------------------------------

    def astype(self, dtype: Any) -> Any:
        """Returns the tensor with another dtype."""
        if not self._is_divided():
            return self.read_value().astype(dtype)
        return self._element_wise("astype()", lambda part: part.astype(dtype), (self,), {})

    def copy(self) -> Any:
        """Returns a new tensor with the same elements."""
        if not self._is_divided():
            return self.read_value().copy()
        return self._element_wise("copy()", np.copy, (self,), {})

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns the sum over axes. The sums of the parts are added in the order of the devices."""
        return np.add.reduce(self, axis=axis, dtype=dtype, out=out, **options)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns the product over axes."""
        return np.multiply.reduce(self, axis=axis, dtype=dtype, out=out, **options)

    def max(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns the largest element over axes."""
        return np.maximum.reduce(self, axis=axis, out=out, **options)

    def min(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns the smallest element over axes."""
        return np.minimum.reduce(self, axis=axis, out=out, **options)

    def any(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns whether any element over axes is true."""
        return np.logical_or.reduce(self, axis=axis, out=out, dtype=np.bool_, **options)

    def all(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns whether all elements over axes are true."""
        return np.logical_and.reduce(self, axis=axis, out=out, dtype=np.bool_, **options)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        """Returns the mean over axes."""
        count = prod(self.shape[d] for d in _axes(axis, len(self.shape)))
        kind = np.dtype(dtype or (self.dtype if self.dtype.kind in "fcV" else np.float64))
        wide = np.dtype(np.float32) if kind.itemsize == 2 else kind
        mean = self.sum(axis, wide, **options) / np.asarray(count, wide)
        result = mean if kind == wide else mean.astype(kind)
        if out is None:
            return result
        np.copyto(plain(out), plain(result))
        return out


def _wholes(nest: Any) -> Any:
    """Returns arguments with the whole in place of each split tensor."""
    if isinstance(nest, (list, tuple)):
        return type(nest)(_wholes(item) for item in nest)
    if isinstance(nest, dict):
        return {key: _wholes(item) for key, item in nest.items()}
    return plain(nest) if isinstance(nest, SplitTensor) else nest


def _operand(thing: Any) -> Any:
    """Converts an argument of an element-wise function: split tensors and other objects stay unchanged."""
    if isinstance(thing, SplitTensor):
        return thing
    if isinstance(thing, (np.ndarray, Holder)):
        return np.asarray(plain(thing)).view()  # a new object, because the same argument may occur twice
    return np.asarray(thing) if isinstance(thing, (list, tuple)) else thing


def _part(array: Any, rank: int, shard: Shard) -> Any:
    """Returns the part of an array, broadcast to `rank` dimensions, that a shard covers."""
    first = rank - array.ndim
    index = [slice(None)] * array.ndim
    for d, size in enumerate(array.shape):
        if size != 1:
            index[d] = slice(shard.begin[first + d], shard.begin[first + d] + shard.size[first + d])
    return array[tuple(index)]


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Returns the axes of a reduction, counted from 0."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    axes = [operator.index(one) for one in given]
    for one in axes:
        if not -rank <= one < rank:
            raise ValueError(f"axis {one} is out of bounds for a tensor of {rank} dimensions")
    found = tuple(sorted(one % rank for one in axes))
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found
