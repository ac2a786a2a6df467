# SPDX-License-Identifier: Apache-2.0
"""Conversion of Python's numbers and lists to tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import libdist

from ._tensor import tensor_of


def convert_to_tensor(value: Any, dtype: Any = None) -> Any:
    """Converts to a tensor: Python's floats to float32 and ints to int32, as in TensorFlow; arrays keep their dtype."""
    if dtype is None and not hasattr(value, "dtype"):
        array = np.asarray(value)
        holds_arrays = isinstance(value, (list, tuple)) and any(hasattr(item, "dtype") for item in value)
        return tensor_of(array if holds_arrays else _narrow(array))
    array = np.asarray(value)
    if dtype is None or array.dtype == np.dtype(dtype):
        return tensor_of(array)
    if hasattr(value, "dtype") and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise libdist.InvalidArgument(f"a tensor of {array.dtype} is no {np.dtype(dtype)}: cast it")
    return tensor_of(array.astype(dtype))


def _narrow(array: Any) -> Any:
    narrow = {"f": np.float32, "i": np.int32, "c": np.complex64}.get(array.dtype.kind)
    if narrow is None:
        return array
    if narrow is np.int32 and array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        return array
    return array.astype(narrow)
