# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.experimental.partitioners: compute into how many parts to divide a variable."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

import libdist
from libdist._arguments import checked

from ._missing import Refusing


class Partitioner(Refusing):
    """The base class of partitioners. One of your own overrides __call__()."""

    _tf_name = "tf.distribute.experimental.partitioners.Partitioner"

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        """Returns the number of parts of each dimension; all except that of `axis` are 1."""
        raise NotImplementedError("__call__() is the subclass's")


@checked
class FixedShardsPartitioner(Partitioner):
    """Divides a dimension into num_shards parts, or into one part per element if it has fewer elements."""

    _tf_name = "tf.distribute.experimental.partitioners.FixedShardsPartitioner"

    def __init__(self, num_shards: int) -> None:
        self._num_shards = num_shards

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        """Returns the number of parts of each dimension."""
        return libdist.fixed_shards(_sizes(shape), axis, self._num_shards)


@checked
class MinSizePartitioner(Partitioner):
    """Divides a dimension into as many parts as possible with about min_shard_bytes each, but at most max_shards."""

    _tf_name = "tf.distribute.experimental.partitioners.MinSizePartitioner"

    def __init__(self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16) -> None:
        self._min_shard_bytes = _positive("min_shard_bytes", min_shard_bytes)
        self._max_shards = _positive("max_shards", max_shards)
        self._bytes_per_string = _positive("bytes_per_string", bytes_per_string)

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        """Returns the number of parts of each dimension."""
        size = _element_bytes(dtype, self._bytes_per_string)
        return libdist.min_size_shards(_sizes(shape), axis, size, self._min_shard_bytes, self._max_shards)


@checked
class MaxSizePartitioner(Partitioner):
    """Divides a dimension into as few parts as possible with at most max_shard_bytes each, but at most max_shards."""

    _tf_name = "tf.distribute.experimental.partitioners.MaxSizePartitioner"

    def __init__(self, max_shard_bytes: int, max_shards: Optional[int] = None, bytes_per_string: int = 16) -> None:
        """max_shards: None = no limit."""
        self._max_shard_bytes = _positive("max_shard_bytes", max_shard_bytes)
        self._max_shards = 0 if max_shards is None else _positive("max_shards", max_shards)
        self._bytes_per_string = _positive("bytes_per_string", bytes_per_string)

    def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
        """Returns the number of parts of each dimension."""
        size = _element_bytes(dtype, self._bytes_per_string)
        return libdist.max_size_shards(_sizes(shape), axis, size, self._max_shard_bytes, self._max_shards)


def _positive(name: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"Argument `{name}` must be positive. Received: {number}")
    return number


def _sizes(shape: Any) -> list[int]:
    return [int(size) for size in shape]


def _element_bytes(dtype: Any, bytes_per_string: int) -> int:
    """Returns the size of one element; for texts, which have any length, bytes_per_string."""
    if dtype == "bfloat16":  # a name that NumPy itself does not know
        return 2
    if dtype == "string":
        return bytes_per_string
    kind = np.dtype(dtype)
    return bytes_per_string if kind.kind in "SUO" else kind.itemsize
