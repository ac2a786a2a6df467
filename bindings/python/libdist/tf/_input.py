# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets, and iterators over them."""

from __future__ import annotations

from typing import Any, Callable, Optional

import libdist
from libdist._arguments import checked

from ._convert import Crossing, from_native
from ._missing import Refusing
from ._nest import map_leaves, restored
from ._options import InputContext, InputOptions, input_options
from ._spec import spec_from_text
from ._values import PerReplica
from .data import Dataset, Optional_


@checked
class DistributedDataset(Refusing):
    """A dataset whose batches are split over the replicas. Iterating over it returns per-replica values."""

    _tf_name = "tf.distribute.DistributedDataset"

    def __init__(self, native: libdist.Dataset, strategy: libdist.Strategy, forms: list[Any]) -> None:
        self._native = native
        self._strategy = strategy
        self._forms = forms

    def _batch(self, native: Any) -> Any:
        """Converts a batch of libdist to the structure of the dataset's elements."""
        batch = from_native(native, self._strategy)
        return restored(batch, self._forms[0]) if self._forms and native is not None else batch

    def __iter__(self) -> DistributedIterator:
        _outside()
        return DistributedIterator(self)

    @property
    def element_spec(self) -> Any:
        """The structure of a batch, with a TensorSpec for each tensor of each replica."""
        return map_leaves(_spec, self._batch(self._native.element_spec))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Reduces a whole pass to one value: for each batch, state = reduce_func(state, batch)."""
        crossing = Crossing(self._strategy)
        last = initial_state  # has the types and the order of keys, which the carried state lacks

        def reduce(state: Any, batch: Any) -> Any:
            nonlocal last
            last = reduce_func(crossing.take(state, last), self._batch(batch))
            return crossing.carry(last)

        return crossing.take(self._native.reduce(crossing.carry(initial_state), reduce), last)


def _outside() -> None:
    """Rejects a replica: a batch is for all replicas. The default strategy's replica, which has no peers, is allowed.
    """
    replica = libdist.get_replica()
    if replica is not None and replica.strategy.kind != libdist.StrategyKind.DEFAULT:
        raise ValueError(
            "next(iterator) should be called from outside of replica_fn. e.g. strategy.run(replica_fn, "
            "args=(next(iterator),))"
        )


@checked
class DistributedIterator(Refusing):
    """One pass over a distributed dataset."""

    _tf_name = "tf.distribute.DistributedIterator"

    def __init__(self, dataset: DistributedDataset) -> None:
        self._dataset = dataset
        self._native = iter(dataset._native)

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Any:
        _outside()
        return self._dataset._batch(next(self._native))

    def get_next(self) -> Any:
        """Returns the next batch. Raises OutOfRange at the end."""
        _outside()
        batch = self._native.next_optional()
        if batch is None:
            raise libdist.OutOfRange("End of sequence")
        return self._dataset._batch(batch)

    def get_next_as_optional(self) -> Optional_:
        """Returns an Optional with the next batch, or without a value at the end."""
        _outside()
        batch = self._native.next_optional()
        return Optional_(self._dataset._batch(batch), batch is not None, self.element_spec)

    @property
    def element_spec(self) -> Any:
        """The element_spec of the dataset."""
        return self._dataset.element_spec


def _spec(leaf: Any) -> Any:
    if isinstance(leaf, PerReplica):
        leaf._values = tuple(map_leaves(_spec, value) for value in leaf.values)
        return leaf
    return spec_from_text(leaf) if isinstance(leaf, str) else leaf


def _shard_policy(dataset: Dataset) -> libdist.ShardPolicy:
    return libdist.ShardPolicy[dataset.options().experimental_distribute.auto_shard_policy.name]


def _batch_sizes(strategy: libdist.Strategy, dataset: Dataset) -> dict[str, Any]:
    """Returns the sizes of pieces if every worker reads all data. They follow from the size of a full batch."""
    place = strategy.query()
    every, own = place.num_workers, place.num_local_replicas
    even = place.num_replicas == every * own and place.first_replica == place.worker * own
    if dataset._batch_size is None or every == 1 or not even or _shard_policy(dataset) != libdist.ShardPolicy.OFF:
        return {}
    return {"batch_sizes": libdist.batch_sizes_for_worker(dataset._batch_size, every, own, place.worker)}


def distribute(strategy: libdist.Strategy, dataset: Any, options: Optional[InputOptions]) -> DistributedDataset:
    """Implements Strategy.experimental_distribute_dataset(): an element of the dataset is a batch for all replicas."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"a tf.data.Dataset is to be distributed, not {type(dataset).__name__}")
    forms: list[Any] = []
    native = strategy.dataset_from_iterable(
        dataset._source(strategy, forms),
        static_shapes=1 if dataset._static else -1,
        shard_policy=_shard_policy(dataset),
        **_batch_sizes(strategy, dataset),
        **input_options(options),
    )
    return DistributedDataset(native, strategy, forms)


def distribute_from_function(
    strategy: libdist.Strategy, dataset_fn: Callable[[InputContext], Any], options: Optional[InputOptions]
) -> DistributedDataset:
    """Implements Strategy.distribute_datasets_from_function(): an element is a batch for one replica."""

    forms: list[Any] = []

    def make(context: libdist.InputContext) -> libdist.Dataset:
        given = (context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync)
        dataset = dataset_fn(InputContext(*given))
        if not isinstance(dataset, Dataset):
            raise TypeError(f"dataset_fn is to return a tf.data.Dataset, not {type(dataset).__name__}")
        source = dataset._source(strategy, forms)
        return strategy.dataset_from_iterable(source, static_shapes=1 if dataset._static else -1)

    return DistributedDataset(strategy.dataset_from_function(make, **input_options(options, of_function=True)), strategy, forms)
