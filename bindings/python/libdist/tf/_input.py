# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets, and iterators over them."""

from __future__ import annotations

from typing import Any, Callable, Optional

import libdist

from ._convert import Crossing, from_native
from ._options import InputContext, InputOptions, input_options
from .data import Dataset, Optional_


class DistributedDataset:
    """A dataset whose batches are split over replicas: `for batch in dataset` gives per-replica values."""

    def __init__(self, native: libdist.Dataset, strategy: libdist.Strategy) -> None:
        self._native = native
        self._strategy = strategy

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(self)

    @property
    def element_spec(self) -> Any:
        """What batches are like: their structure, with a text "f32[?, 4]" for each tensor."""
        return from_native(self._native.element_spec, self._strategy)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """One value of a whole pass: for each batch, state = reduce_func(state, batch)."""
        crossing = Crossing(self._strategy)

        def reduce(state: Any, batch: Any) -> Any:
            return crossing.carry(reduce_func(crossing.take(state), crossing.take(batch)))

        return crossing.take(self._native.reduce(crossing.carry(initial_state), reduce))


class DistributedIterator:
    """One pass over a distributed dataset."""

    def __init__(self, dataset: DistributedDataset) -> None:
        self._dataset = dataset
        self._native = iter(dataset._native)

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Any:
        return from_native(next(self._native), self._dataset._strategy)

    def get_next(self) -> Any:
        """The next batch; OutOfRange where there is none."""
        batch = self._native.next_optional()
        if batch is None:
            raise libdist.OutOfRange("End of sequence")
        return from_native(batch, self._dataset._strategy)

    def get_next_as_optional(self) -> Optional_:
        """The next batch, or that there is none: has_value(), get_value()."""
        batch = self._native.next_optional()
        return Optional_(from_native(batch, self._dataset._strategy), batch is not None)

    @property
    def element_spec(self) -> Any:
        """The dataset's."""
        return self._dataset.element_spec


def _shard_policy(dataset: Dataset) -> libdist.ShardPolicy:
    return libdist.ShardPolicy[dataset.options().experimental_distribute.auto_shard_policy.name]


def distribute(strategy: libdist.Strategy, dataset: Any, options: Optional[InputOptions]) -> DistributedDataset:
    """Strategy.experimental_distribute_dataset(): an element of the dataset is a batch for all replicas."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"a tf.data.Dataset is to be distributed, not {type(dataset).__name__}")
    native = strategy.dataset_from_iterable(
        dataset._source(strategy),
        static_shapes=1 if dataset._static else -1,
        shard_policy=_shard_policy(dataset),
        **input_options(options),
    )
    return DistributedDataset(native, strategy)


def distribute_from_function(
    strategy: libdist.Strategy, dataset_fn: Callable[[InputContext], Any], options: Optional[InputOptions]
) -> DistributedDataset:
    """Strategy.distribute_datasets_from_function(): an element is a batch for one replica."""

    def make(context: libdist.InputContext) -> libdist.Dataset:
        given = (context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync)
        dataset = dataset_fn(InputContext(*given))
        if not isinstance(dataset, Dataset):
            raise TypeError(f"dataset_fn is to return a tf.data.Dataset, not {type(dataset).__name__}")
        source = dataset._source(strategy)
        return strategy.dataset_from_iterable(source, static_shapes=1 if dataset._static else -1)

    return DistributedDataset(strategy.dataset_from_function(make, **input_options(options)), strategy)
