# SPDX-License-Identifier: Apache-2.0
"""The methods of Strategy that create datasets; dataset.py has the classes."""

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
    """The methods of Strategy that create datasets."""

    _part_of = "Strategy"

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    def dataset_from_tensors(self, tensors: Tensors, **options: Unpack[DatasetOptions]) -> Dataset:
        """Creates a dataset of rows: element i is row i of each tensor. The data are copied.

        tensors: one tensor, or a list of tensors with equal first dimensions.
        """
        handle = self._native("Strategy.dataset_from_tensors")
        given = _tensors.give_all(tensors if isinstance(tensors, (list, tuple)) else [tensors])
        native = dataset_options(**options)
        made = _cdist.dist_dataset_create_from_tensors(handle, given, len(given), native)
        return Dataset._of(self._owner(), made)

    def dataset_from_callback(self, fn: Callable[[int], Any], **options: Unpack[DatasetOptions]) -> Dataset:
        """Creates a dataset whose elements the function `fn(index)` returns.

        libdist calls the function ahead of time on another thread, one call at a time. It raises StopIteration to end
        the pass.
        """
        source = Source(fn, self._owner())
        made = source.make(_cdist.dist_dataset_create_from_callback, self._native(), dataset_options(**options))
        return Dataset._of(self._owner(), made, source)

    def dataset_from_iterable(self, make: Callable[[], Iterable[Any]], **options: Unpack[DatasetOptions]) -> Dataset:
        """Creates a dataset of the elements of an iterable.

        make: called once for each pass; returns an iterable. It can be a generator function, or `lambda: rows`.
        """
        source = Source.of_iterables(make, self._owner())
        made = source.make(_cdist.dist_dataset_create_from_callback, self._native(), dataset_options(**options))
        return Dataset._of(self._owner(), made, source)

    def dataset_from_files(
        self, names: Sequence[str], fn: Callable[[int, str, int], Any], **options: Unpack[DatasetOptions]
    ) -> Dataset:
        """Creates a dataset of the elements of files.

        fn: `fn(file, name, index)` returns element `index` of a file, which is given by its index in `names` and its
        name. It opens and reads the file itself, and raises StopIteration at the end of the file.
        """
        handle = self._native("Strategy.dataset_from_files")
        source = FileSource(fn, self._owner())
        native = dataset_options(**options)
        texts = list(names)
        made = source.make(_cdist.dist_dataset_create_from_files, handle, texts, len(texts), native)
        return Dataset._of(self._owner(), made, source)

    def dataset_from_function(self, fn: DatasetFn, **options: Unpack[DatasetOptions]) -> Dataset:
        """Creates a dataset of the datasets that `fn(context)` returns for an InputContext.

        Each batch of such a dataset goes to one replica as a whole. Of the options, only `prefetch` and
        `replication_mode` may be set; fn sets the others (TensorFlow: distribute_datasets_from_function).
        """
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
    """Returns the sizes of the pieces into which one of several workers splits its batches.

    There is one piece for each replica of all workers. Every step of all workers together has global_batch_size
    examples.
    """
    n = max(0, num_workers * num_replicas_per_worker)
    sizes: Union[int, list[int]] = _cdist.dist_batch_sizes_for_worker(
        global_batch_size, num_workers, num_replicas_per_worker, worker, n
    )
    return list(sizes) if isinstance(sizes, list) else [sizes]
