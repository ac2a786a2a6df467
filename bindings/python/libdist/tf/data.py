# SPDX-License-Identifier: Apache-2.0
"""tf.data in the small: datasets of numpy arrays, as the programs of tf.distribute use them.

A dataset is a recipe: every `for element in dataset` is a pass of its own. Elements are arrays, or tuples and dicts of
them.
"""

from __future__ import annotations

import enum
import itertools
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Iterator, Optional

import numpy as np

import libdist

from ._convert import map_leaves, tensors
from ._numbers import convert_to_tensor

AUTOTUNE = -1
"""For num_parallel_calls and buffer sizes, which have no effect here."""


class AutoShardPolicy(enum.Enum):
    """How a dataset is divided between workers; here there is one."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions:
    """tf.data.experimental.DistributeOptions."""

    def __init__(self) -> None:
        self.auto_shard_policy = AutoShardPolicy.AUTO
        """What of the dataset goes to which worker."""


class Options:
    """tf.data.Options: of these, experimental_distribute."""

    def __init__(self) -> None:
        self.experimental_distribute = DistributeOptions()
        """How the dataset is distributed."""


class Optional_:
    """tf.experimental.Optional: an element, or that there is none."""

    def __init__(self, value: Any, has_value: bool) -> None:
        self._value = value
        self._has_value = has_value

    def has_value(self) -> bool:
        """Whether there is an element."""
        return self._has_value

    def get_value(self) -> Any:
        """The element; InvalidArgument where there is none."""
        if not self._has_value:
            raise libdist.InvalidArgument("The given optional does not have a value.")
        return self._value


def _leaves(nest: Any) -> list[Any]:
    leaves: list[Any] = []
    map_leaves(leaves.append, nest)
    return leaves


def _structured(nest: Any) -> Any:
    """A nest whose lists are tensors, as tf.data has it: only tuples and dicts are structure."""
    if isinstance(nest, tuple):
        return tuple(_structured(item) for item in nest)
    if isinstance(nest, dict):
        return {key: _structured(item) for key, item in nest.items()}
    return convert_to_tensor(nest)


def _stacked(elements: list[Any]) -> Any:
    first = elements[0]
    if isinstance(first, tuple):
        return tuple(_stacked([element[i] for element in elements]) for i in range(len(first)))
    if isinstance(first, dict):
        return {key: _stacked([element[key] for element in elements]) for key in first}
    return np.stack(elements)


def _row(nest: Any, i: int) -> Any:
    return map_leaves(lambda leaf: leaf[i], nest)


def _arguments(element: Any) -> tuple[Any, ...]:
    return element if isinstance(element, tuple) else (element,)


class Dataset:
    """A recipe for elements, made of other recipes."""

    def __init__(
        self, make: Callable[[], Iterable[Any]], static: bool = True, options: Optional[Options] = None
    ) -> None:
        """make: an iterable for each pass. static: whether all elements have the same shape."""
        self._make = make
        self._static = static
        self._options = options or Options()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make())

    def _source(self, strategy: libdist.Strategy) -> Callable[[], Iterable[Any]]:
        """For libdist."""
        return lambda: (tensors(strategy, element) for element in self)

    def _then(self, make: Callable[[], Iterable[Any]], static: Optional[bool] = None) -> Dataset:
        return Dataset(make, self._static if static is None else static, self._options)

    # ---- sources ----------------------------------------------------------------------------------------------------

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Element i is row i of each tensor."""
        given = _structured(tensors)
        sizes = {len(leaf) for leaf in _leaves(given)}
        if len(sizes) != 1:
            raise libdist.InvalidArgument(f"the tensors' first dimensions differ: {sorted(sizes)}")
        size = sizes.pop()
        return Dataset(lambda: (_row(given, i) for i in range(size)))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: the tensors."""
        given = _structured(tensors)
        return Dataset(lambda: iter((given,)))

    @staticmethod
    def from_generator(generator: Callable[..., Iterable[Any]], *, args: Any = (), **_: Any) -> Dataset:
        """What the generator gives in each pass; signatures and types are not needed."""
        return Dataset(lambda: (_structured(element) for element in generator(*args)), static=False)

    @staticmethod
    def range(*args: int, output_type: Any = np.int64) -> Dataset:
        """Python's range() as int64 scalars."""
        numbers = range(*args)
        return Dataset(lambda: (np.asarray(number, output_type) for number in numbers))

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Tuples of the datasets' elements, up to the end of the shortest."""
        given = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets
        return Dataset(lambda: zip(*given), all(one._static for one in given))

    # ---- what is made of them ---------------------------------------------------------------------------------------

    def batch(self, batch_size: int, drop_remainder: bool = False, **_: Any) -> Dataset:
        """Elements in groups, along a new first dimension."""
        if batch_size <= 0:
            raise libdist.InvalidArgument("Batch size must be greater than zero.")

        def make() -> Iterator[Any]:
            elements = iter(self)
            while group := list(itertools.islice(elements, batch_size)):
                if len(group) == batch_size or not drop_remainder:
                    yield _stacked(group)

        return self._then(make, static=self._static and drop_remainder)

    def unbatch(self) -> Dataset:
        """The rows of each element."""

        def make() -> Iterator[Any]:
            for element in self:
                for i in range(len(_leaves(element)[0])):
                    yield _row(element, i)

        return self._then(make, static=True)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, **_: Any) -> Dataset:
        """What map_func makes of each element; a tuple's items are its arguments."""
        return self._then(lambda: (_structured(map_func(*_arguments(element))) for element in self))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which the predicate is true."""
        return self._then(lambda: (element for element in self if predicate(*_arguments(element))))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the datasets that map_func makes of each element, one after another."""
        return self._then(lambda: (inner for element in self for inner in map_func(*_arguments(element))))

    def shuffle(self, buffer_size: int, seed: Optional[int] = None, reshuffle_each_iteration: bool = True) -> Dataset:
        """Another order, drawn from a buffer that is filled again and again; NumPy's generator, not TensorFlow's."""
        seeds = itertools.count()
        drawn: Any = np.random.SeedSequence(seed).entropy

        def make() -> Iterator[Any]:
            generator = np.random.default_rng([drawn, next(seeds) if reshuffle_each_iteration else 0])
            buffer: list[Any] = []
            for element in self:
                buffer.append(element)
                if len(buffer) >= buffer_size:
                    yield buffer.pop(generator.integers(len(buffer)))
            while buffer:
                yield buffer.pop(generator.integers(len(buffer)))

        return self._then(make)

    def repeat(self, count: Optional[int] = None) -> Dataset:
        """The elements `count` times; None or -1: without end."""
        endless = count is None or count < 0
        passes: Callable[[], Iterable[Any]] = itertools.count if endless else lambda: range(count or 0)
        return self._then(lambda: (element for _ in passes() for element in self))

    def take(self, count: int) -> Dataset:
        """The first `count` elements; -1: all."""
        return self._then(lambda: itertools.islice(self, None if count < 0 else count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; -1: none."""
        return self._then(lambda: iter(()) if count < 0 else itertools.islice(self, count, None))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """These elements, then another dataset's."""
        return self._then(lambda: itertools.chain(self, dataset), static=self._static and dataset._static)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of a number and an element."""
        return self._then(lambda: ((np.asarray(i, np.int64), element) for i, element in enumerate(self, start)))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every num_shards-th element, from `index` on."""
        if not 0 <= index < num_shards:
            raise libdist.InvalidArgument(f"Index must be between 0 and {num_shards - 1} (currently index = {index}).")
        return self._then(lambda: itertools.islice(self, index, None, num_shards))

    def cache(self) -> Dataset:
        """The elements of the first pass, kept for all later ones."""
        kept: list[Any] = []
        done: list[bool] = []

        def make() -> Iterator[Any]:
            if done:
                yield from kept
                return
            made = []
            for element in self:
                made.append(element)
                yield element
            if not done:
                kept.extend(made)
                done.append(True)

        return self._then(make)

    def prefetch(self, buffer_size: int) -> Dataset:
        """The same elements: a distributed dataset makes batches ahead anyway."""
        return self

    def with_options(self, options: Options) -> Dataset:
        """The same elements, with options."""
        return Dataset(self._make, self._static, options)

    # ---- what it is -------------------------------------------------------------------------------------------------

    def options(self) -> Options:
        """How it is to be distributed."""
        return self._options

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """One value of all elements: for each, state = reduce_func(state, element)."""
        state = _structured(initial_state)
        for element in self:
            state = reduce_func(state, element)
        return state

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements, which are numpy arrays already."""
        return iter(self)


experimental = SimpleNamespace(
    AutoShardPolicy=AutoShardPolicy,
    DistributeOptions=DistributeOptions,
    AUTOTUNE=AUTOTUNE,
)
"""tf.data.experimental."""
