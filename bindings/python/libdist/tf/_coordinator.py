# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.coordinator: ClusterCoordinator and the objects that it returns."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

import libdist
from libdist._arguments import OWN_CHECK, checked

from . import _closures
from ._closures import Reference
from ._job import reporting_losses
from ._missing import Refusing
from ._nest import map_leaves
from ._parameter_servers import ParameterServerStrategy
from ._rpc import received
from ._tensor import Tensor
from .data import Dataset


@checked
class RemoteValue(Refusing):
    """The future result of a scheduled function."""

    _tf_name = "tf.distribute.coordinator.RemoteValue"

    def fetch(self) -> Any:
        """Waits for the result and returns it as NumPy arrays and numbers, or raises the function's error."""
        raise NotImplementedError("ClusterCoordinator.schedule() gives remote values")

    def get(self) -> Any:
        """Waits for the result like fetch(), and returns it as tensors."""
        raise NotImplementedError("ClusterCoordinator.schedule() gives remote values")


class RemoteValueImpl(RemoteValue):
    """Implements RemoteValue."""

    def __init__(self, native: libdist.RemoteValue) -> None:
        self._native = native

    def fetch(self) -> Any:
        """See RemoteValue.fetch()."""
        return map_leaves(lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf, self.get())

    def get(self) -> Any:
        """See RemoteValue.get()."""
        with reporting_losses():
            return received(self._native.result())


class PerWorkerValues(Reference, Refusing):
    """An object that each worker has of its own. Pass it to schedule(), whose function gets that of its worker."""

    _tf_name = "tf.distribute.coordinator.PerWorkerValue"
    _sent_kind = "per worker"

    def __init__(self, coordinator: ClusterCoordinator, name: str) -> None:
        self._coordinator = coordinator
        self._sent_name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._sent_name}>"


class PerWorkerDistributedIterator(PerWorkerValues):
    """An iterator over the dataset of each worker."""

    def __next__(self) -> Any:
        return self.get_next()

    def get_next(self) -> Any:
        """Raises an error: each worker has its own elements."""
        raise NotImplementedError("Iterating over an `AsyncDistributedIterator` is not supported right now.")


class PerWorkerDatasetFromDatasetFunction(PerWorkerValues):
    """A dataset of each worker. iter() starts a pass on each."""

    def __iter__(self) -> PerWorkerDistributedIterator:
        coordinator = self._coordinator
        name = coordinator._new_name("iterator")
        number = coordinator.strategy._number
        coordinator._job().create_per_worker(name, _closures.ITERATE, self._sent_name, number)
        return PerWorkerDistributedIterator(coordinator, name)


@checked
class ClusterCoordinator(Refusing):
    """Runs functions on workers, which do not wait for each other. A strategy has one coordinator.

        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        for _ in range(steps):
            coordinator.schedule(step_fn, args=(per_worker_iterator,))
        coordinator.join()

    The changes that a function makes to the strategy's variables are applied once, after it has returned, even if
    workers are lost and run it again.
    """

    _tf_name = "tf.distribute.coordinator.ClusterCoordinator"

    def __new__(cls, strategy: Annotated[ParameterServerStrategy, OWN_CHECK]) -> Any:
        made = strategy._cluster_coordinator
        if made is None:
            made = strategy._cluster_coordinator = super().__new__(cls)
        return made

    def __init__(self, strategy: Annotated[ParameterServerStrategy, OWN_CHECK]) -> None:
        if "_strategy" in self.__dict__:
            return
        self._strategy = strategy
        self._names = itertools.count()
        self._scheduled: dict[str, Any] = {}  # keeps the functions of unfinished closures
        self._makers: list[Any] = []  # keeps the functions for workers that may arrive later

    @property
    def strategy(self) -> ParameterServerStrategy:
        """The strategy with which the coordinator was created."""
        return self._strategy

    def _job(self) -> libdist.Coordinator:
        return self._strategy._job("tf.distribute.coordinator.ClusterCoordinator")

    def _new_name(self, what: str) -> str:
        return f"{what} {next(self._names)}"

    # ---- functions -------------------------------------------------------------------------------------------------

    def schedule(
        self, fn: Annotated[Callable[..., Any], OWN_CHECK], args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None
    ) -> RemoteValue:
        """Schedules a tf.function on a worker, without waiting for it unless the queue is full.

        The function runs in the worker's process, in which the program has created the same function. If an earlier
        function has failed, raises its error, once, and schedules nothing.
        """
        name = _closures.name_of(fn)
        if name is None:
            if _closures.name_of(getattr(fn, "__func__", None)) is not None:
                raise TypeError(
                    f"schedule() of a method: the worker's process has another object than that of {fn!r}: schedule a function "
                    "that finds it by a name of the program's"
                )
            raise TypeError(
                "`tf.distribute.experimental.coordinator.ClusterCoordinator.schedule` only accepts a `tf.function` or a "
                "concrete function."
            )
        given = _closures.packed(tuple(args or ())), _closures.packed(dict(kwargs or {}))
        self._scheduled[name] = fn
        remote = self._job().schedule(_closures.RUN, name, self._strategy._number, *given, timeout=-1)
        return RemoteValueImpl(remote)

    def join(self) -> None:
        """Waits until all functions have returned. If one has failed, raises its error, once."""
        self._job().join(-1)
        self._scheduled.clear()

    def done(self) -> bool:
        """Returns whether all functions have returned. If one has failed, raises its error, once."""
        return self._job().done()

    def fetch(self, val: Any) -> Any:
        """Returns a nest with the results of its remote values. Other leaves stay unchanged."""
        return map_leaves(_fetch, val)

    # ---- objects of each worker -----------------------------------------------------------------------------------

    def create_per_worker_dataset(self, dataset_fn: Union[Dataset, Callable[[], Any]]) -> PerWorkerDatasetFromDatasetFunction:
        """Creates a dataset on each worker with dataset_fn(), a function that the program has created there too.

        You can pass a dataset in place of the function if the workers are in this process.
        """
        if isinstance(dataset_fn, Dataset):
            dataset = dataset_fn
            dataset_fn = lambda: dataset  # noqa: E731
        name = self._make("dataset", dataset_fn, (), {})
        return PerWorkerDatasetFromDatasetFunction(self, name)

    def create_per_worker_value(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> PerWorkerValues:
        """Calls fn() on each worker and keeps its result there, which can be any object.

        A worker that returns after a failure calls the function again.
        """
        return PerWorkerValues(self, self._make("value", fn, tuple(args), dict(kwargs or {})))

    def _make(self, what: str, fn: Any, args: Any, kwargs: Any) -> str:
        found = _closures.any_name_of(fn)
        self._makers.append(fn)
        name = self._new_name(what)
        given = _closures.packed(args), _closures.packed(kwargs)
        self._job().create_per_worker(name, _closures.MAKE, found, self._strategy._number, *given)
        return name


def _fetch(leaf: Any) -> Any:
    if isinstance(leaf, RemoteValue):
        return leaf.fetch()
    if isinstance(leaf, PerWorkerValues):
        raise libdist.Unimplemented("what workers have of their own stays there: schedule a function that gives it")
    return leaf


def experimental_get_current_worker_index() -> Any:
    """Returns the index of the worker that runs the calling function."""
    now = _closures.running()
    if now is None:
        raise RuntimeError("Cannot retrieve the worker index: this is not inside a function that a worker runs")
    return np.int64(now.closure.worker)
