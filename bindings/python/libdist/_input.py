# SPDX-License-Identifier: Apache-2.0
"""The part of Strategy that makes datasets; dataset.py has what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, Union

from . import _calls, _cdist, _tensors
from ._arguments import checked
from ._option_fields import DatasetOptions, dataset_options
from ._tensors import Tensors
from .dataset import Dataset, DatasetFn, FileSource, FromFunction, Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy


@checked
class Input:
    """See Strategy."""

    _part_of = "Strategy"

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    def dataset_from_tensors(self, tensors: Tensors, **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset of rows: element i is row i of each tensor. The data are copied. One tensor, or a list of them."""
        handle = self._native("Strategy.dataset_from_tensors")
        given = _tensors.give_all(tensors if isinstance(tensors, (list, tuple)) else [tensors])
        native = dataset_options(**options)
        made = _cdist.dist_dataset_create_from_tensors(handle, given, len(given), native)
        return Dataset._of(self._owner(), made)

    def dataset_from_callback(self, fn: Callable[[int], Any], **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset whose elements `fn(index)` makes, ahead, on another thread; StopIteration ends the pass."""
        source = Source(fn, self._owner())
        made = source.make(_cdist.dist_dataset_create_from_callback, self._native(), dataset_options(**options))
        return Dataset._of(self._owner(), made, source)

    def dataset_from_iterable(self, make: Callable[[], Iterable[Any]], **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset of what `make()` gives, an iterable for each pass: a generator function, or `lambda: rows`."""
        source = Source.of_iterables(make, self._owner())
        made = source.make(_cdist.dist_dataset_create_from_callback, self._native(), dataset_options(**options))
        return Dataset._of(self._owner(), made, source)

    def dataset_from_files(
        self, names: Sequence[str], fn: Callable[[int, str, int], Any], **options: Unpack[DatasetOptions]
    ) -> Dataset:
        """A dataset of the elements of files: `fn(file, name, index)` makes one; StopIteration ends the file."""
        handle = self._native("Strategy.dataset_from_files")
        source = FileSource(fn, self._owner())
        native = dataset_options(**options)
        texts = list(names)
        made = source.make(_cdist.dist_dataset_create_from_files, handle, texts, len(texts), native)
        return Dataset._of(self._owner(), made, source)

    def dataset_from_function(self, fn: DatasetFn, **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset of what `fn(context)` makes for an InputContext; its batches go to replicas whole."""
        handle = self._native("Strategy.dataset_from_function")
        target = FromFunction(fn)
        token = _calls.keep(target)
        native = dataset_options(**options)
        try:
            made = _calls.call(target.failures, _cdist.dist_dataset_create_from_function, handle, token, native)
        finally:
            _calls.release(token)
        return Dataset._of(self._owner(), made, *target.sources)

    def _owner(self) -> Strategy:
        from .strategy import Strategy

        assert isinstance(self, Strategy)
        return self


@checked
def batch_sizes_for_worker(
    global_batch_size: int, num_workers: int, num_replicas_per_worker: int, worker: int
) -> list[int]:
    """The sizes of the pieces that one of several workers cuts its batches to, one for each replica of all."""
    n = max(0, num_workers * num_replicas_per_worker)
    sizes: Union[int, list[int]] = _cdist.dist_batch_sizes_for_worker(
        global_batch_size, num_workers, num_replicas_per_worker, worker, n
    )
    return list(sizes) if isinstance(sizes, list) else [sizes]
