# SPDX-License-Identifier: Apache-2.0
"""Partitioners: compute into how many parts to divide a variable along one dimension, and the rows of each part."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from . import _cdist
from ._arguments import checked


@checked
def fixed_shards(shape: Sequence[int], axis: int, num_shards: int) -> list[int]:
    """Divides a dimension into num_shards parts, or into one part per element if it has fewer elements.

    Returns the number of parts of each dimension. num_shards is not checked.
    """
    return list(_cdist.partitions_fixed_shards(list(shape), len(shape), axis, num_shards))


@checked
def min_size_shards(
    shape: Sequence[int],
    axis: int,
    element_bytes: int,
    min_shard_bytes: int = _cdist.DIST_PARTITIONER_MIN_SHARD_BYTES,
    max_shards: int = _cdist.DIST_PARTITIONER_MAX_SHARDS,
) -> list[int]:
    """Divides a dimension into as many parts as possible with about min_shard_bytes each.

    Returns the number of parts of each dimension: at least 1 and at most max_shards along `axis`, 1 along the others.
    """
    sizes = (axis, element_bytes, min_shard_bytes, max_shards)
    return list(_cdist.partitions_min_size(list(shape), len(shape), *sizes))


@checked
def max_size_shards(
    shape: Sequence[int], axis: int, element_bytes: int, max_shard_bytes: int, max_shards: int = 0
) -> list[int]:
    """Divides a dimension into as few parts as possible with at most max_shard_bytes each.

    Returns the number of parts of each dimension.

    max_shards: maximum number of parts; 0 = no limit.
    """
    sizes = (axis, element_bytes, max_shard_bytes, max_shards)
    return list(_cdist.partitions_max_size(list(shape), len(shape), *sizes))


class Rows(NamedTuple):
    """The rows of a part: begin .. begin + size - 1."""

    begin: int
    size: int


@checked
def rows_of_part(num_rows: int, num_parts: int, part: int) -> Rows:
    """Returns the rows of a part."""
    return Rows(*_cdist.dist_partitions_part(num_rows, num_parts, part))


class RowPlace(NamedTuple):
    """A row's place: row `offset` of part `part`."""

    part: int
    offset: int


@checked
def part_of_row(num_rows: int, num_parts: int, row: int) -> RowPlace:
    """Returns the part that contains a row, and the number of the row in that part."""
    return RowPlace(*_cdist.dist_partitions_part_of(num_rows, num_parts, row))
