# SPDX-License-Identifier: Apache-2.0
"""The few functions of tf that tf.distribute's programs use beside it, on numpy arrays."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from ._convert import map_leaves
from ._numbers import convert_to_tensor


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = None) -> Any:
    """An array: float32 of Python's floats, int32 of its ints."""
    array = convert_to_tensor(value, dtype)
    return array if shape is None else np.broadcast_to(array, shape).copy()


def identity(input: Any, name: Any = None) -> Any:
    """A new array with the same elements."""
    return map_leaves(lambda leaf: convert_to_tensor(leaf).copy(), input)


def zeros(shape: Any, dtype: Any = np.float32) -> Any:
    """An array of zeros, float32 by default."""
    return np.zeros(shape, dtype)


def ones(shape: Any, dtype: Any = np.float32) -> Any:
    """An array of ones, float32 by default."""
    return np.ones(shape, dtype)


def zeros_like(input: Any, dtype: Any = None) -> Any:
    """zeros() like an array."""
    return np.zeros_like(convert_to_tensor(input), dtype)


def ones_like(input: Any, dtype: Any = None) -> Any:
    """ones() like an array."""
    return np.ones_like(convert_to_tensor(input), dtype)


def cast(x: Any, dtype: Any) -> Any:
    """An array of another dtype."""
    return convert_to_tensor(x).astype(dtype)


def reduce_sum(input_tensor: Any, axis: Optional[int] = None, keepdims: bool = False) -> Any:
    """The sum, in the array's own dtype."""
    array = convert_to_tensor(input_tensor)
    return np.asarray(np.sum(array, axis=axis, keepdims=keepdims, dtype=array.dtype))


def reduce_mean(input_tensor: Any, axis: Optional[int] = None, keepdims: bool = False) -> Any:
    """The mean, in the array's own dtype."""
    array = convert_to_tensor(input_tensor)
    return np.asarray(np.mean(array, axis=axis, keepdims=keepdims)).astype(array.dtype)


def function(func: Optional[Callable[..., Any]] = None, **_: Any) -> Any:
    """The function itself: nothing is traced or compiled. With or without arguments, as a decorator."""
    return func if func is not None else lambda given: given


def range(*args: int, dtype: Any = np.int32) -> Any:
    """Numbers in a row, int32 by default."""
    return np.arange(*args, dtype=dtype)


def reshape(tensor: Any, shape: Any) -> Any:
    """An array of another shape."""
    return convert_to_tensor(tensor).reshape(shape)
