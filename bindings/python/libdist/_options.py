# SPDX-License-Identifier: Apache-2.0
"""Options that need code of their own to set; _option_fields.py has all others."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Union

from . import _cdist
from ._callbacks import Kept
from .errors import InvalidArgument
from .partition import Partition

def set_weights(native: Any, weights: Union[float, Sequence[float]], contributions: int) -> None:
    """Sets the `weights` of a collective."""
    numbers = [weights] if isinstance(weights, float) else list(weights)
    expected = max(1, contributions)
    if len(numbers) != expected:
        raise InvalidArgument(f"weights has {len(numbers)} numbers, but must have {expected}, one for each contribution")
    native.set_weights(numbers, len(numbers))


def set_axes(native: Any, axes: Union[Mapping[str, int], Sequence[tuple[str, int]]]) -> None:
    """Sets the `axes` of a strategy."""
    named = list(axes.items() if isinstance(axes, Mapping) else axes)
    native.set_axes([name for name, _ in named], [size for _, size in named], len(named))


def set_metadata(native: Any, metadata: Mapping[str, str]) -> None:
    """Sets the `metadata` of a checkpoint."""
    native.set_metadata_keys(list(metadata), len(metadata))
    native.set_metadata_texts(list(metadata.values()), len(metadata))


def set_jobs(native: Any, jobs: Mapping[str, int], kept: Kept) -> None:
    """Sets the `jobs` of a Slurm step."""
    rows = kept.record(_cdist.ClusterJobs())
    for name, num_tasks in jobs.items():
        rows.add(name, None, None, num_tasks)
    native.set_jobs(rows)


def add_results(native: Any, results: Union[Partition, Sequence[Optional[Partition]]], kept: Kept) -> None:
    """Sets the `results` of a run on devices."""
    for one in [results] if isinstance(results, Partition) else results:
        native.add_result(None if one is None else kept.record(one._native()))
