# SPDX-License-Identifier: Apache-2.0
"""The functions of tf that tf.distribute programs use besides, on NumPy arrays."""

from __future__ import annotations

import functools
from typing import Any, Optional

import numpy as np

from libdist._arguments import checked

from ._closures import make_function
from ._composites import Composite
from ._nest import map_leaves
from ._numbers import convert_to_tensor
from ._split import SplitTensor
from ._tensor import plain, tensor_of
from ._values import DistributedValues


def _tensor(given: Any) -> Any:
    """Converts to a tensor, except that a tensor split over the logical devices of this replica stays split."""
    return given if isinstance(given, SplitTensor) and given._is_divided() else convert_to_tensor(given)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = None) -> Any:
    """Creates a tensor: float32 from Python's floats, int32 from its ints."""
    tensor = convert_to_tensor(value, dtype)
    return tensor if shape is None else tensor_of(np.broadcast_to(plain(tensor), shape).copy())


def identity(input: Any, name: Any = None) -> Any:
    """Returns a new tensor with the same elements."""
    if isinstance(input, Composite):
        return input._with_parts(lambda part: part.copy())
    return _tensor(input).copy()


def zeros(shape: Any, dtype: Any = np.float32) -> Any:
    """Returns a tensor of zeros, float32 by default."""
    return tensor_of(np.zeros(shape, dtype))


def ones(shape: Any, dtype: Any = np.float32) -> Any:
    """Returns a tensor of ones, float32 by default."""
    return tensor_of(np.ones(shape, dtype))


def zeros_like(input: Any, dtype: Any = None) -> Any:
    """Returns zeros in the shape and dtype of a tensor."""
    return tensor_of(np.zeros_like(_tensor(input), dtype))


def ones_like(input: Any, dtype: Any = None) -> Any:
    """Returns ones in the shape and dtype of a tensor."""
    return tensor_of(np.ones_like(_tensor(input), dtype))


def cast(x: Any, dtype: Any) -> Any:
    """Converts a tensor to another dtype."""
    return _tensor(x).astype(dtype)


def add(x: Any, y: Any, name: Any = None) -> Any:
    """Returns x + y."""
    return _tensor(x) + y


def add_n(inputs: Any, name: Any = None) -> Any:
    """Returns the sum of the tensors of a list, element by element."""
    given = list(inputs)
    if not given:
        raise ValueError("inputs must be a list of at least one tensor with the same dtype and shape")
    return functools.reduce(add, given[1:], _tensor(given[0]))


def square(x: Any, name: Any = None) -> Any:
    """Returns x * x."""
    return tensor_of(np.square(_tensor(x)))


def matmul(a: Any, b: Any, name: Any = None) -> Any:
    """Returns a @ b."""
    return _tensor(a) @ _tensor(b)


@checked
def reduce_sum(input_tensor: Any, axis: Optional[int] = None, keepdims: bool = False) -> Any:
    """Returns the sum, in the tensor's own dtype."""
    tensor = _tensor(input_tensor)
    if isinstance(tensor, SplitTensor):
        return tensor.sum(axis, tensor.dtype, keepdims=keepdims)
    array = plain(tensor)
    return tensor_of(np.asarray(np.sum(array, axis=axis, keepdims=keepdims, dtype=array.dtype)))


@checked
def reduce_mean(input_tensor: Any, axis: Optional[int] = None, keepdims: bool = False) -> Any:
    """Returns the mean, in the tensor's own dtype."""
    tensor = _tensor(input_tensor)
    if isinstance(tensor, SplitTensor):
        return tensor.mean(axis, keepdims=keepdims).astype(tensor.dtype)
    array = plain(tensor)
    return tensor_of(np.asarray(np.mean(array, axis=axis, keepdims=keepdims)).astype(array.dtype))


def function(func: Any = None, **_: Any) -> Any:
    """Decorates a function: numbers in its result become tensors. Nothing is traced or compiled.

    The decorator takes any arguments or none. Workers of a ClusterCoordinator find the function by its name; see
    _closures.py.
    """
    if func is None:
        return function

    @functools.wraps(func)
    def called(*args: Any, **kwargs: Any) -> Any:
        return map_leaves(_result, func(*args, **kwargs))

    make_function(called, func)
    return called


def _result(leaf: Any) -> Any:
    if isinstance(leaf, (bool, int, float, complex, np.generic)):
        return convert_to_tensor(leaf)
    if isinstance(leaf, DistributedValues):
        return leaf._as_tensors()
    return leaf


def range(*args: int, dtype: Any = np.int32) -> Any:
    """Returns consecutive numbers, int32 by default."""
    return tensor_of(np.arange(*args, dtype=dtype))


def reshape(tensor: Any, shape: Any) -> Any:
    """Returns a tensor with another shape."""
    return _tensor(tensor).reshape(shape)


def shape(input: Any) -> Any:
    """Returns the shape as a tensor."""
    return convert_to_tensor(np.asarray(np.shape(input), np.int32))


def print_(*inputs: Any, **_: Any) -> None:
    """tf.print: prints elements with Python's print()."""
    print(*(plain(given) if hasattr(given, "dtype") else given for given in inputs))
