# SPDX-License-Identifier: Apache-2.0
"""Datasets: sources of batches that are split over the replicas, and passes over them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Optional

from . import _calls, _cdist, values
from ._arguments import checked
from ._context import Context
from ._exit import ITERATOR, close_at_exit, finalizing
from ._native import Returned
from .errors import FailedPrecondition, OutOfRange

if TYPE_CHECKING:
    from .strategy import Strategy


@checked
class Position(NamedTuple):
    """The position of a pass: plain numbers, which the program can store anywhere."""

    pass_number: int = 0
    """Number of the pass. Shuffled orders depend on it."""
    elements: int = 0
    """Number of elements of the source that have been used up."""
    examples: int = 0
    """Number of examples used of the next element, if one element is split into several batches."""
    batches: int = 0
    """Number of batches made so far."""


def native_position(position: Optional[Position]) -> Any:
    """Converts a position to a native record."""
    native = _cdist.dist_position()
    if position is not None:
        native.pass_, native.elements, native.examples, native.batches = position
    return native


def position_from(native: Any) -> Position:
    """Converts a native record to a position."""
    return Position(native.pass_, native.elements, native.examples, native.batches)


@checked
class InputContext:
    """The part of the input for which a function creates a dataset (TensorFlow: tf.distribute.InputContext)."""

    __slots__ = ("num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync")

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.num_input_pipelines = num_input_pipelines
        """Number of pipelines: one per worker or one per replica."""
        self.input_pipeline_id = input_pipeline_id
        """Index of this pipeline, from 0."""
        self.num_replicas_in_sync = num_replicas_in_sync
        """Number of replicas of all workers."""

    def per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns one replica's share of a global batch. Raises InvalidArgument if the size is not divisible."""
        native = _cdist.dist_input_context()
        for name in self.__slots__:
            setattr(native, name, getattr(self, name))
        return int(_cdist.dist_input_context_per_replica_batch_size(native, global_batch_size))


DatasetFn = Callable[[InputContext], "Dataset"]


class _AnySource:
    """A function that makes elements; it is kept for as long as a dataset or an iterator uses it."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.context = Context()
        self.failures = _calls.Failures()

    def make(self, native: Callable[..., int], handle: int, *arguments: Any) -> int:
        """Creates the dataset. libdist's release callback releases the token."""
        token = _calls.keep(self)
        *before, options = arguments
        try:
            return native(handle, *before, token, options)
        except BaseException:
            _calls.release(token)
            raise

    def element(self, fn: Callable[..., Any], *arguments: Any) -> int:
        """Calls the function and transfers its result to libdist."""
        try:
            maker = self.strategy._handle if self.strategy._owned else 0
            return values.make(maker or _cdist.dist_get_strategy(), self.context.call(fn, *arguments))._hand_over()
        except (StopIteration, OutOfRange):
            return -int(_cdist.fail(OutOfRange.status, "the source has no further element"))
        except BaseException as error:
            return -self.failures.add(error)


class Source(_AnySource):
    """The function of dataset_from_callback(), or iterables."""

    def __init__(self, fn: Callable[[int], Any], strategy: Strategy) -> None:
        super().__init__(strategy)
        self.fn = fn

    @staticmethod
    def of_iterables(make: Callable[[], Iterable[Any]], strategy: Strategy) -> Source:
        """Returns the source for iterables. A pass starts a new one and, lacking an index, reads it up to its position.
        """
        return Source(_Passes(make), strategy)

    def on_source(self, index: int) -> int:
        return self.element(self.fn, index)


class _Passes:
    """Returns elements of iterables by index: each pass asks for 0, 1, 2 ..., or starts further on."""

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self.make = make
        self.iterator: Iterator[Any] = iter(())
        self.next_index = -1

    def __call__(self, index: int) -> Any:
        if index != self.next_index:
            self.iterator = iter(self.make())
            self.next_index = 0
        while True:
            element = next(self.iterator)
            self.next_index += 1
            if self.next_index > index:
                return element


class FileSource(_AnySource):
    """The function of dataset_from_files()."""

    def __init__(self, fn: Callable[[int, str, int], Any], strategy: Strategy) -> None:
        super().__init__(strategy)
        self.fn = fn

    def on_file_source(self, file: int, name: str, index: int) -> int:
        return self.element(self.fn, file, name, index)


class FromFunction:
    """The function of dataset_from_function(), and the sources of the datasets that it returned."""

    def __init__(self, fn: DatasetFn) -> None:
        self.fn = fn
        self.failures = _calls.Failures()
        self.sources: list[_AnySource] = []

    def on_dataset(self, num_pipelines: int, pipeline: int, num_replicas: int) -> int:
        try:
            dataset = self.fn(InputContext(num_pipelines, pipeline, num_replicas))
            if dataset is None:
                return 0
            if not isinstance(dataset, Dataset):
                raise TypeError(f"the function is to make a Dataset, not {type(dataset).__name__}")
            self.sources.extend(dataset._sources)
            return dataset._hand_over()
        except BaseException as error:
            return -self.failures.add(error)


class _Reduction:
    def __init__(self, fn: Callable[[Any, Any], Any], strategy: int) -> None:
        self.fn = fn
        self.strategy = strategy
        self.failures = _calls.Failures()

    def on_dataset_reduce(self, state: int, batch: int) -> int:
        try:
            return values.hand_over(self.strategy, self.fn(values.borrowed(state), values.borrowed(batch)))
        except BaseException as error:
            return -self.failures.add(error)


@checked
class Dataset(Returned):
    """A source of batches, each split over the replicas. Each iteration over it is a pass.

        dataset = strategy.dataset_from_tensors([features, labels], global_batch_size=64, shuffle=True)
        for batch in dataset:
            strategy.run_values(step, batch)  # each replica gets its part of the batch
    """

    def _init(self, strategy: Strategy, handle: int, *sources: _AnySource) -> None:
        self._strategy = strategy
        self._handle = handle
        self._sources = sources

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator._of(self, _cdist.dist_iterator_create(self._native("Dataset.__iter__")))

    def iterate_from(self, position: Position) -> DatasetIterator:
        """Starts a pass at a position, which DatasetIterator.position returned.

        The batches continue exactly as they would have from there, even with another number of replicas or another
        batch size.
        """
        native = native_position(position)
        return DatasetIterator._of(self, _cdist.dist_iterator_create_at(self._native("Dataset.iterate_from"), native))

    @property
    def element_spec(self) -> Any:
        """The structure of the batches, with a text such as "f32[?, 4]" for each tensor of each replica.

        "?" is a size that can differ between batches.
        """
        return values.owned(self._call(_cdist.dist_dataset_element_spec, self._native("Dataset.element_spec")))

    def reduce(self, initial: Any, fn: Callable[[Any, Any], Any]) -> Any:
        """Reduces a whole pass to one value: for each batch, state = fn(state, batch).

        initial: the first state; may be None.
        """
        handle = self._native("Dataset.reduce")
        maker = self._strategy._native("Dataset.reduce")
        state = None if initial is None else values.make(maker, initial)
        target = _Reduction(fn, maker)
        token = _calls.keep(target)
        try:
            native = _cdist.dist_dataset_reduce
            with self._strategy._waiting():
                result = self._call(native, handle, values.handle_of(state), token, failures=target.failures)
        finally:
            _calls.release(token)
        return values.owned(result)

    def explain(self) -> str:
        """Describes how the dataset is read: its source, its batches, and what each replica gets of them."""
        text = _cdist.Text()
        text.explain_dataset(self._native("Dataset.explain"))
        return str(text.text())

    def check_shards(self, limit: int = 0) -> None:
        """Reads what each worker would read, and checks that every example of the source occurs exactly once.

        Raises DataLoss if a worker misses an example, or if an example occurs several times.

        limit: maximum number of elements to make if the source is a function; 0 = no limit.
        """
        self._call(_cdist.dist_dataset_check_shards, self._native("Dataset.check_shards"), limit)

    def close(self) -> None:
        """Closes the dataset. Its iterators stay valid."""
        self._end(_cdist.dist_dataset_destroy)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_dataset_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    def _native(self, name: str) -> int:
        if not self._handle:
            raise FailedPrecondition(f"{name}(): the dataset is closed")
        return self._handle

    def _hand_over(self) -> int:
        handle, self._handle = self._native("Strategy.dataset_from_function"), 0
        return handle

    def _call(self, native: Callable[..., Any], *arguments: Any, failures: Optional[_calls.Failures] = None) -> Any:
        return call(self._sources, native, *arguments, failures=failures)


def call(
    sources: Iterable[_AnySource],
    native: Callable[..., Any],
    *arguments: Any,
    failures: Optional[_calls.Failures] = None,
) -> Any:
    """Makes a native call that reads sources. If a source raises, the call raises the same exception."""
    report: Optional[BaseException] = None
    try:
        result = native(*arguments)
    except Exception as error:
        report = error
    for kept in (*(source.failures for source in sources), *((failures,) if failures else ())):
        if report is not None and kept.all:
            kept.raise_for(None)
    if report is not None:
        raise report
    return result


@checked
class DatasetIterator(Returned):
    """One pass over a dataset."""

    def _init(self, dataset: Dataset, handle: int) -> None:
        self._sources = dataset._sources
        self._workers = dataset._strategy if dataset._strategy._has_peers else None
        self._handle = handle
        close_at_exit(self, ITERATOR)

    def __iter__(self) -> DatasetIterator:
        return self

    def _waiting(self) -> AbstractContextManager[Any]:
        """Returns a context manager for a step, which may wait for other workers."""
        return nullcontext() if self._workers is None else self._workers._waiting()

    def __next__(self) -> Any:
        if not self._handle:
            raise StopIteration
        with self._waiting():
            batch = call(self._sources, _cdist.dist_iterator_next, self._handle)
        if not batch:
            raise StopIteration
        return values.owned(batch)

    def next_optional(self) -> Any:
        """Returns the next batch, including a last step that next() omits; None at the end of the pass.

        Only a dataset from a function whose batches all have the same shape has such a step (TensorFlow:
        get_next_as_optional).
        """
        with self._waiting():
            return values.owned(call(self._sources, _cdist.dist_iterator_next_optional, self._native()))

    @property
    def position(self) -> Position:
        """The position at which the next batch begins. Batches that were made ahead do not count."""
        native = _cdist.dist_position()
        _cdist.dist_iterator_position(self._native(), native)
        return position_from(native)

    def close(self) -> None:
        """Ends the pass. Waits for a batch that is being made ahead."""
        self._end(_cdist.dist_iterator_destroy)

    def __enter__(self) -> DatasetIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_iterator_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the iterator is closed")
        return self._handle
