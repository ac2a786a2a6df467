# SPDX-License-Identifier: Apache-2.0
"""Partitioners: into how many parts a variable is divided along one dimension, and which rows each part has."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from . import _cdist
from ._arguments import checked


@checked
def fixed_shards(shape: Sequence[int], axis: int, num_shards: int) -> list[int]:
    """num_shards parts, or one for each element of the dimension where that has fewer."""
    return list(_cdist.partitions_fixed_shards(list(shape), len(shape), axis, num_shards))


@checked
def min_size_shards(
    shape: Sequence[int],
    axis: int,
    element_bytes: int,
    min_shard_bytes: int = _cdist.DIST_PARTITIONER_MIN_SHARD_BYTES,
    max_shards: int = _cdist.DIST_PARTITIONER_MAX_SHARDS,
) -> list[int]:
    """As many parts as have at least min_shard_bytes each, but at least 1 and at most max_shards."""
    sizes = (axis, element_bytes, min_shard_bytes, max_shards)
    return list(_cdist.partitions_min_size(list(shape), len(shape), *sizes))


@checked
def max_size_shards(
    shape: Sequence[int], axis: int, element_bytes: int, max_shard_bytes: int, max_shards: int = 0
) -> list[int]:
    """As few parts as have at most max_shard_bytes each, but at most max_shards; 0: any number."""
    sizes = (axis, element_bytes, max_shard_bytes, max_shards)
    return list(_cdist.partitions_max_size(list(shape), len(shape), *sizes))


class Rows(NamedTuple):
    """The rows of a part: begin .. begin + size - 1."""

    begin: int
    size: int


@checked
def rows_of_part(num_rows: int, num_parts: int, part: int) -> Rows:
    """Which rows a part has."""
    return Rows(*_cdist.dist_partitions_part(num_rows, num_parts, part))


class RowPlace(NamedTuple):
    """Row `offset` of a part."""

    part: int
    offset: int


@checked
def part_of_row(num_rows: int, num_parts: int, row: int) -> RowPlace:
    """Which part a row lies in, and which row of that part it is."""
    return RowPlace(*_cdist.dist_partitions_part_of(num_rows, num_parts, row))
