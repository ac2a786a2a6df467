# SPDX-License-Identifier: Apache-2.0
"""A small tf.data: datasets of NumPy arrays, as tf.distribute programs use them.

A dataset describes how to make elements; each iteration over it is a pass of its own. Elements are arrays, or tuples
and dictionaries of arrays.
"""

from __future__ import annotations

import enum
import functools
import itertools
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional

import numpy as np

import libdist
from libdist._arguments import checked

from ._composites import Composite, RaggedTensor, SparseTensor
from ._convert import tensors
from ._missing import Namespace, Refusing, missing
from ._nest import items_of, leaves_of, map_leaves, rebuilt
from ._numbers import convert_to_tensor
from ._spec import TensorSpec, conform, spec_of
from ._tensor import Tensor, plain, tensor_of

__getattr__ = missing("tf.data")

AUTOTUNE = -1
"""For num_parallel_calls and buffer sizes, which have no effect here."""


class AutoShardPolicy(enum.Enum):
    """How a dataset is divided among workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


@checked
class DistributeOptions:
    """tf.data.experimental.DistributeOptions."""

    def __init__(self) -> None:
        self.auto_shard_policy = AutoShardPolicy.AUTO
        """How the dataset is divided among workers."""


@checked
class Options:
    """tf.data.Options. Only experimental_distribute has an effect."""

    def __init__(self) -> None:
        self.experimental_distribute = DistributeOptions()
        """How the dataset is distributed."""


@checked
class Optional_:
    """tf.experimental.Optional: an element, or no value."""

    def __init__(self, value: Any, has_value: bool, element_spec: Any = None) -> None:
        self._value = value
        self._has_value = has_value
        self.element_spec = spec_of(value) if element_spec is None and has_value else element_spec
        """The spec of the element."""

    def has_value(self) -> bool:
        """Returns whether there is an element."""
        return self._has_value

    def get_value(self) -> Any:
        """Returns the element. Raises InvalidArgument if there is none."""
        if not self._has_value:
            raise libdist.InvalidArgument("The given optional does not have a value.")
        return self._value


class _Row(Tensor):
    """A row of a ragged tensor. Rows are batched to a ragged tensor."""


def _structured(nest: Any) -> Any:
    """Converts the lists of a nest to tensors: in tf.data, only tuples, mappings and attrs objects are structure."""
    items = None if isinstance(nest, list) else items_of(nest)
    if items is not None:
        return rebuilt(nest, [_structured(item) for item in items])
    return nest if isinstance(nest, (Composite, _Row)) else convert_to_tensor(nest)


def _stacked(elements: list[Any]) -> Any:
    first = elements[0]
    if isinstance(first, Mapping):
        return rebuilt(first, [_stacked([element[key] for element in elements]) for key in first])
    items = items_of(first)
    if items is not None:
        columns = zip(*(items_of(element) or [] for element in elements))
        return rebuilt(first, [_stacked(list(column)) for column in columns])
    if isinstance(first, SparseTensor):
        return SparseTensor.of_rows(elements)
    if isinstance(first, (_Row, RaggedTensor)):
        return RaggedTensor.from_rows(elements)
    return tensor_of(np.stack([plain(element) for element in elements]))


def _size(leaf: Any) -> int:
    if isinstance(leaf, (RaggedTensor, SparseTensor)):
        return int(leaf.shape[0])
    if isinstance(leaf, Composite):
        raise libdist.Unimplemented("IndexedSlices have no rows to be cut into: from_tensors() takes them whole")
    return len(leaf)


def _rows(nest: Any) -> Iterator[Any]:
    """Iterates over the rows of all tensors of a nest together."""
    sizes = {_size(leaf) for leaf in leaves_of(nest)}
    if len(sizes) != 1:
        raise libdist.InvalidArgument(f"the tensors' first dimensions differ: {sorted(sizes)}")
    sparse = {id(leaf): leaf.rows() for leaf in leaves_of(nest) if isinstance(leaf, SparseTensor)}

    def row(i: int, leaf: Any) -> Any:
        if id(leaf) in sparse:
            return sparse[id(leaf)][i]
        part = leaf[i]
        return part.view(_Row) if isinstance(leaf, RaggedTensor) and isinstance(part, np.ndarray) else part

    return (map_leaves(functools.partial(row, i), nest) for i in range(sizes.pop()))


def _arguments(element: Any) -> tuple[Any, ...]:
    return element if isinstance(element, tuple) else (element,)


@checked
class Dataset(Refusing):
    """A description of how to make elements, from other datasets or from data."""

    _tf_name = "tf.data.Dataset"

    def __init__(
        self,
        make: Callable[[], Iterable[Any]],
        static: bool = True,
        options: Optional[Options] = None,
        batch_size: Optional[int] = None,
    ) -> None:
        """make: returns an iterable for each pass.

        static: whether all elements have the same shape.

        batch_size: size of full batches.
        """
        self._make = make
        self._static = static
        self._options = options or Options()
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make())

    def _source(self, strategy: libdist.Strategy, forms: list[Any]) -> Callable[[], Iterable[Any]]:
        """Returns the source for libdist; `forms` receives an element, for its structure."""

        def make() -> Iterator[Any]:
            for element in self:
                if not forms:
                    forms.append(element)
                yield tensors(strategy, element)

        return make

    def _then(
        self, make: Callable[[], Iterable[Any]], static: Optional[bool] = None, batch_size: Optional[int] = None
    ) -> Dataset:
        return Dataset(make, self._static if static is None else static, self._options, batch_size)

    def _some(self, make: Callable[[], Iterable[Any]]) -> Dataset:
        """Returns elements of this dataset."""
        return self._then(make, batch_size=self._batch_size)

    # ---- sources ----------------------------------------------------------------------------------------------------

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Creates a dataset of rows: element i is row i of each tensor."""
        given = _structured(tensors)
        _rows(given)
        return Dataset(lambda: _rows(given))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Creates a dataset with one element: the tensors."""
        given = _structured(tensors)
        return Dataset(lambda: iter((given,)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Creates a dataset of what a generator yields in each pass, converted to the types or the signature if given.
        """
        if output_signature is not None and (output_types is not None or output_shapes is not None):
            raise TypeError("The `output_types` and `output_shapes` arguments do not go with `output_signature`.")
        signature = output_signature if output_types is None else _signature(output_types, output_shapes)

        def make() -> Iterator[Any]:
            for element in generator(*(args or ())):
                yield _structured(element if signature is None else _signed(element, signature))

        return Dataset(make, static=False)

    @staticmethod
    def range(*args: int, output_type: Any = np.int64) -> Dataset:
        """Creates a dataset like Python's range(), as int64 scalars."""
        numbers = range(*args)
        return Dataset(lambda: (tensor_of(np.asarray(number, output_type)) for number in numbers))

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Creates a dataset of tuples of the datasets' elements, up to the end of the shortest one."""
        given = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets
        return Dataset(lambda: zip(*given), all(one._static for one in given))

    # ---- transformations --------------------------------------------------------------------------------------------

    def batch(self, batch_size: int, drop_remainder: bool = False, **_: Any) -> Dataset:
        """Stacks elements to batches, along a new first dimension."""
        if batch_size <= 0:
            raise libdist.InvalidArgument("Batch size must be greater than zero.")

        def make() -> Iterator[Any]:
            elements = iter(self)
            while group := list(itertools.islice(elements, batch_size)):
                if len(group) == batch_size or not drop_remainder:
                    yield _stacked(group)

        return self._then(make, static=self._static and drop_remainder, batch_size=batch_size)

    def unbatch(self) -> Dataset:
        """Splits each element into its rows."""

        def make() -> Iterator[Any]:
            for element in self:
                yield from _rows(element)

        return self._then(make, static=True)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, **_: Any) -> Dataset:
        """Applies map_func to each element. The items of a tuple are its arguments."""
        return self._then(lambda: (_structured(map_func(*_arguments(element))) for element in self))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Keeps the elements for which the predicate is true."""
        return self._some(lambda: (element for element in self if predicate(*_arguments(element))))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """Concatenates the datasets that map_func returns for each element."""
        return self._then(lambda: (inner for element in self for inner in map_func(*_arguments(element))))

    def shuffle(self, buffer_size: int, seed: Optional[int] = None, reshuffle_each_iteration: bool = True) -> Dataset:
        """Shuffles the elements with a buffer. The random numbers are those of NumPy, not of TensorFlow."""
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

        return self._some(make)

    def repeat(self, count: Optional[int] = None) -> Dataset:
        """Repeats the elements `count` times; None or -1 = without end."""
        endless = count is None or count < 0

        def make() -> Iterator[Any]:
            passes: Iterable[int] = itertools.count() if endless else range(count or 0)
            return (element for _ in passes for element in self)

        return self._some(make)

    def take(self, count: int) -> Dataset:
        """Keeps the first `count` elements; -1 = all."""
        return self._some(lambda: itertools.islice(self, None if count < 0 else count))

    def skip(self, count: int) -> Dataset:
        """Omits the first `count` elements; -1 = all."""
        return self._some(lambda: iter(()) if count < 0 else itertools.islice(self, count, None))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Appends the elements of another dataset."""
        return self._then(lambda: itertools.chain(self, dataset), static=self._static and dataset._static)

    def enumerate(self, start: int = 0) -> Dataset:
        """Returns pairs of a number and an element."""
        return self._then(
            lambda: ((tensor_of(np.asarray(i, np.int64)), element) for i, element in enumerate(self, start))
        )

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Keeps every num_shards-th element, starting at `index`."""
        if not 0 <= index < num_shards:
            raise libdist.InvalidArgument(f"Index must be between 0 and {num_shards - 1} (currently index = {index}).")
        return self._some(lambda: itertools.islice(self, index, None, num_shards))

    def cache(self) -> Dataset:
        """Keeps the elements of the first pass for all later passes."""
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

        return self._some(make)

    def prefetch(self, buffer_size: int) -> Dataset:
        """Returns the same elements: a distributed dataset makes batches ahead itself."""
        return self

    def with_options(self, options: Options) -> Dataset:
        """Returns the same elements, with options."""
        return Dataset(self._make, self._static, options, self._batch_size)

    # ---- properties -------------------------------------------------------------------------------------------------

    def options(self) -> Options:
        """Returns the options of the dataset."""
        return self._options

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Reduces all elements to one value: for each, state = reduce_func(state, element)."""
        state = _structured(initial_state)
        for element in self:
            state = reduce_func(state, element)
        return state

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Iterates over the elements as NumPy arrays."""
        return (map_leaves(lambda leaf: leaf.numpy(), element) for element in self)

    @property
    def element_spec(self) -> Any:
        """The spec of an element, from the first one; None is the size of batches that may differ."""
        return spec_of(next(iter(self), None), self._static)


def _signature(types: Any, shapes: Any) -> Any:
    """Returns a spec for each type of a nest, with the shape at the same place of another nest."""
    if isinstance(types, Mapping):
        return rebuilt(types, [_signature(types[key], None if shapes is None else shapes[key]) for key in types])
    if isinstance(types, tuple):
        return rebuilt(types, [_signature(one, None if shapes is None else shapes[i]) for i, one in enumerate(types)])
    return TensorSpec(shapes, types)


def _signed(element: Any, signature: Any) -> Any:
    if isinstance(signature, tuple):
        if not isinstance(element, (tuple, list)) or len(element) != len(signature):
            raise TypeError(f"`generator` yielded {element!r} where {len(signature)} tensors were expected.")
        return rebuilt(signature, [_signed(one, spec) for one, spec in zip(element, signature)])
    if isinstance(signature, Mapping):
        return rebuilt(signature, [_signed(element[key], spec) for key, spec in signature.items()])
    return conform(element, signature)


experimental = Namespace(
    "tf.data.experimental",
    AutoShardPolicy=AutoShardPolicy,
    DistributeOptions=DistributeOptions,
    AUTOTUNE=AUTOTUNE,
)
"""tf.data.experimental."""
