# SPDX-License-Identifier: Apache-2.0
"""Functions that workers run. TensorFlow sends graphs; here each process runs the program and finds functions by name.

A tf.function is named after its module and itself, and numbered if several have the same name: the second `f` that the
program creates is "f#1" in every process, even if the first one no longer exists. Other functions are looked up in
their modules.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Union

import numpy as np

import libdist
from libdist import _calls
from libdist.errors import carried

from ._copies import in_place, scatter_in_place
from ._rpc import received, sent
from ._tensor import plain

if TYPE_CHECKING:
    from ._composites import IndexedSlices
    from ._parameter_servers import ParameterServerStrategy

RUN = "tf.function"
"""The closure that runs a function by name and returns tensors."""
MAKE = "tf.per_worker"
"""The closure that runs a function by name and keeps its result on the worker."""
ITERATE = "tf.per_worker.iterator"
"""The closure that starts a pass over a dataset of the worker."""

_functions: weakref.WeakValueDictionary[str, Callable[..., Any]] = weakref.WeakValueDictionary()
_counts: dict[str, Iterator[int]] = {}
_lock = threading.Lock()


def _path(fn: Any) -> tuple[str, str]:
    own = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return getattr(fn, "__module__", None) or "__main__", own


def _register(fn: Callable[..., Any], of: Any) -> str:
    base = ".".join(_path(of))
    with _lock:
        number = next(_counts.setdefault(base, itertools.count()))
        name = f"{base}#{number}" if number else base
        _functions[name] = fn
    return name


def make_function(fn: Callable[..., Any], of: Any) -> None:
    """Makes `fn` a tf.function, which workers find by the name of the function `of`."""
    fn.__dict__["_tf_function"] = _register(fn, of)


def name_of(fn: Any) -> Optional[str]:
    """Returns the name of a tf.function; None for anything else."""
    name = getattr(fn, "_tf_function", None)
    return name if isinstance(name, str) and _functions.get(name) is fn else None


def any_name_of(fn: Any) -> str:
    """Returns a name for any function: its name in its module, or else one that only this process knows."""
    name = name_of(fn)
    if name is not None:
        return name
    module, own = _path(fn)
    return f"{module}:{own}" if _look_up(module, own) is fn else _register(fn, fn)


def _look_up(module: str, own: str) -> Any:
    thing: Any = sys.modules.get(module)
    for part in own.split("."):
        thing = getattr(thing, part, None)
    return thing


def _find(name: str) -> Callable[..., Any]:
    fn: Any = _look_up(*name.split(":", 1)) if ":" in name else _functions.get(name)
    if not callable(fn):
        raise libdist.NotFound(
            f"this process has no function {name}: the program that runs here has to make it, in the same order, before "
            "server.join(); inside of another function it needs @tf.function"
        )
    made: Callable[..., Any] = fn
    return made


# ---- sending ---------------------------------------------------------------------------------------------------------

_MARK = "libdist.tf"


class Reference:
    """An object that is sent as its name; the worker has an object of its own for the name."""

    _sent_kind = ""
    _sent_name = ""


def packed(nest: Any) -> Any:
    """Converts arguments for a worker: to copies of tensors, texts, None and references."""
    if isinstance(nest, Reference):
        return {_MARK: nest._sent_kind, "name": nest._sent_name}
    if isinstance(nest, (list, tuple)):
        items = [packed(item) for item in nest]
        return items if isinstance(nest, list) else tuple(items)
    if isinstance(nest, Mapping):
        return {key: packed(nest[key]) for key in nest}
    if isinstance(nest, np.ndarray):
        return sent(np.array(plain(nest)))  # copied, because the program may change it while the closure waits
    return sent(nest)


def _unpacked(nest: Any, running: Running) -> Any:
    if isinstance(nest, dict):
        kind = nest.get(_MARK)
        if isinstance(kind, str):
            return running.refer(kind, nest["name"])
        return {key: _unpacked(item, running) for key, item in nest.items()}
    if isinstance(nest, (list, tuple)):
        return type(nest)(_unpacked(item, running) for item in nest)
    return received(nest)


# ---- running ---------------------------------------------------------------------------------------------------------


class Running:
    """A function that a worker runs.

    libdist changes variables after the function has returned. This class keeps the changes, so that the function reads
    what it has written, as in TensorFlow.
    """

    def __init__(self, closure: libdist.Closure, number: int) -> None:
        self.closure = closure
        self.number = number
        self.strategy = strategies.get(number)
        self._changes: dict[str, list[Callable[[Any], Any]]] = {}

    def refer(self, kind: str, name: str) -> Any:
        """Returns this worker's object for a reference of the coordinator."""
        if kind == "per worker":
            return self.closure.per_worker(name)
        if self.strategy is None:
            raise libdist.NotFound(
                f"variable {name} is of a ParameterServerStrategy that this process has not: the program has to make it before "
                "server.join()"
            )
        part, _, whole = name.partition("/") if kind == "part" else ("", "", name)
        variable = self.strategy._variable(whole)
        return variable.variables[int(part)] if part else variable

    def read(self, name: str) -> Any:
        """Reads a variable, including the changes of this function."""
        value = self.closure.read(name)
        changes = self._changes.get(name, ())
        if changes:
            value = np.array(value)
            for change in changes:
                change(value)
        return value

    def read_rows(self, name: str, indices: Any) -> Any:
        """Reads rows of a variable, including the changes of this function."""
        if name in self._changes:
            return self.read(name)[indices]
        return self.closure.read_rows(name, indices)

    def assign(self, name: str, value: Any, how: libdist.Assign) -> None:
        """Changes a variable. The caller must not change the value afterwards."""
        self.closure.assign(name, value, how)
        self._changes.setdefault(name, []).append(lambda array: in_place(array, how, value))

    def scatter(self, name: str, how: libdist.Scatter, slices: IndexedSlices) -> None:
        """Changes rows of a variable. The caller must not change the slices afterwards."""
        self.closure.scatter(name, how, (plain(slices.values), plain(slices.indices)))
        self._changes.setdefault(name, []).append(lambda array: scatter_in_place(array, how, slices))


strategies: weakref.WeakValueDictionary[int, ParameterServerStrategy] = weakref.WeakValueDictionary()
"""The strategies by their numbers, in the order in which the program creates them."""


class _Thread(threading.local):
    running: Optional[Running] = None


_thread = _Thread()


def running() -> Optional[Running]:
    """Returns the function that this thread runs for a coordinator; None outside closures."""
    return _thread.running


@contextmanager
def _inside(now: Running) -> Iterator[None]:
    before, _thread.running = _thread.running, now
    try:
        scope: AbstractContextManager[Any] = nullcontext()
        if now.strategy is not None:
            scope = now.strategy._native.scope()
        with scope:
            yield
    finally:
        _thread.running = before


def _call(name: str, closure: libdist.Closure, number: Any, args: Any, kwargs: Any, out: Callable[[Any], Any]) -> Any:
    """Calls a function. If it raises, the error names the function."""
    now = Running(closure, int(number))
    try:
        with _inside(now):
            return out(_find(name)(*_unpacked(args, now), **_unpacked(kwargs, now)))
    except StopIteration as end:
        raise libdist.OutOfRange(f"{name}: End of sequence") from end
    except Exception as error:
        text = error.message if isinstance(error, libdist.DistError) else _calls.described(error)
        raise carried(error, f"{name}: {text}") from error


def _run(closure: libdist.Closure, name: str, number: Any, args: Any, kwargs: Any) -> Any:
    return _call(name, closure, number, args, kwargs, sent)


def _make(closure: libdist.Closure, name: str, number: Any, args: Any, kwargs: Any) -> Any:
    return _call(name, closure, number, args, kwargs, lambda result: result)


class WorkerIterator:
    """A pass over a dataset of a worker. Closures on several threads may use it."""

    def __init__(self, dataset: Any) -> None:
        self._elements = iter(dataset)
        self._lock = threading.Lock()
        self.element_spec = getattr(dataset, "element_spec", None)
        """The spec of an element."""

    def __iter__(self) -> WorkerIterator:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._elements)

    def get_next(self) -> Any:
        """Returns the next element. Raises OutOfRange at the end."""
        try:
            return next(self)
        except StopIteration:
            raise libdist.OutOfRange("End of sequence") from None


def _iterate(closure: libdist.Closure, dataset: str, number: Any) -> WorkerIterator:
    with _inside(Running(closure, int(number))):
        return WorkerIterator(closure.per_worker(dataset))


def serve(server: libdist.Server) -> None:
    """Registers the closures that every server of a program has."""
    server.register(RUN, _run)
    server.register(MAKE, _make)
    server.register(ITERATE, _iterate)


Place = Union[Running, libdist.Coordinator]
"""The object that reads and changes variables."""
