# SPDX-License-Identifier: Apache-2.0
"""The part of Strategy that makes datasets; dataset.py has what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, TypedDict, Union

from . import _calls, _cdist, _tensors
from ._arguments import checked
from ._tensors import Tensors
from .constants import InputMode, ShardPolicy
from .dataset import Dataset, DatasetFn, FileSource, FromFunction, Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy


class DatasetOptions(TypedDict, total=False):
    """How batches are made of a source's elements, and cut up for the replicas of all workers."""

    global_batch_size: int
    """Elements of a batch for all replicas together; 0: the elements are global batches already."""
    drop_remainder: bool
    """Leave out a last batch that is not full."""
    shuffle: bool
    """Another order in every pass, drawn from seed and the pass's number."""
    seed: int
    prefetch: int
    """Batches made ahead; 0: one where that is faster, as measured; negative: none."""
    shard_policy: ShardPolicy
    """What of the source goes to which worker."""
    num_workers: int
    """That read this dataset together; 0: those of the strategy, and this one of them."""
    worker_index: int
    """Which of them this one is, where num_workers is given."""
    worker_batches: bool
    """global_batch_size counts what one worker gets of a batch."""
    as_one_process: bool
    """Replica r of all workers gets what replica r of one process with all of them would, so that training has the same
    bits however replicas are divided among workers; else workers take turns at the pieces, as TensorFlow's do. Every
    worker reads everything. Only with ShardPolicy.AUTO and DATA."""
    shard_hint: bool
    """The source wants to be sharded element by element; see ShardPolicy.HINT."""
    interleave: int
    """Files that are read in turn, an element each."""
    static_shapes: int
    """1: every batch has the same shape; -1: the last ones may be smaller; 0: as it follows from the rest."""
    replication_mode: InputMode
    """PER_REPLICA only of a function."""
    batch_sizes: Sequence[int]
    """Examples of the 1st, 2nd, ... piece, again from the first after the last."""


def native_options(options: dict[str, Any]) -> Any:
    """Options as the native object."""
    native = _cdist.dist_dataset_options()
    for name, given in options.items():
        if name == "batch_sizes":
            native.set_batch_sizes(list(given), len(given))
        else:
            setattr(native, name, int(given))
    return native


@checked
class Input:
    """See Strategy. Options are DatasetOptions."""

    _part_of = "Strategy"

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    def dataset_from_tensors(self, tensors: Tensors, **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset of rows: element i is row i of each tensor. The data are copied. One tensor, or a list of them."""
        handle = self._native("Strategy.dataset_from_tensors")
        given = _tensors.give_all(tensors if isinstance(tensors, (list, tuple)) else [tensors])
        native = native_options(dict(options))
        made = _cdist.dist_dataset_create_from_tensors(handle, given, len(given), native)
        return Dataset(self._owner(), made)

    def dataset_from_callback(self, fn: Callable[[int], Any], **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset whose elements `fn(index)` makes, ahead, on another thread; StopIteration ends the pass."""
        source = Source(fn, self._owner())
        made = source.make(_cdist.dist_dataset_create_from_callback, self._native(), native_options(dict(options)))
        return Dataset(self._owner(), made, source)

    def dataset_from_iterable(self, make: Callable[[], Iterable[Any]], **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset of what `make()` gives, an iterable for each pass: a generator function, or `lambda: rows`."""
        source = Source.of_iterables(make, self._owner())
        made = source.make(_cdist.dist_dataset_create_from_callback, self._native(), native_options(dict(options)))
        return Dataset(self._owner(), made, source)

    def dataset_from_files(
        self, names: Sequence[str], fn: Callable[[int, str, int], Any], **options: Unpack[DatasetOptions]
    ) -> Dataset:
        """A dataset of the elements of files: `fn(file, name, index)` makes one; StopIteration ends the file."""
        handle = self._native("Strategy.dataset_from_files")
        source = FileSource(fn, self._owner())
        native = native_options(dict(options))
        texts = list(names)
        made = source.make(_cdist.dist_dataset_create_from_files, handle, texts, len(texts), native)
        return Dataset(self._owner(), made, source)

    def dataset_from_function(self, fn: DatasetFn, **options: Unpack[DatasetOptions]) -> Dataset:
        """A dataset of what `fn(context)` makes for an InputContext; its batches go to replicas whole."""
        handle = self._native("Strategy.dataset_from_function")
        target = FromFunction(fn)
        token = _calls.keep(target)
        native = native_options(dict(options))
        try:
            made = _calls.call(target.failures, _cdist.dist_dataset_create_from_function, handle, token, native)
        finally:
            _calls.release(token)
        return Dataset(self._owner(), made, *target.sources)

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
