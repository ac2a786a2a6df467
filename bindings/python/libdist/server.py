# SPDX-License-Identifier: Apache-2.0
"""Servers: the tasks of a cluster that a Coordinator gives work to (TensorFlow: tf.distribute.Server).

A parameter server, a task of job "ps", keeps variables; a worker, a task of job "worker", runs closures. What the
environment says of how they speak, and what is promised of closures that are lost, are in libdist's headers, server.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union, overload

from . import _calls, _cdist, _tensors, values
from ._arguments import Wait, checked, wait_limit
from ._exit import SERVER, close_at_exit, finalizing
from ._interrupt import Watch
from ._native import Native, Returned
from ._option_fields import ServerOptions, server_options
from ._tensors import Array
from .cancel import Cancel
from .cluster import ClusterSpec, TaskId, id_number
from .constants import Assign, Scatter
from .errors import FailedPrecondition
from .values import Value

if TYPE_CHECKING:
    from typing_extensions import Unpack


def arguments_of(arguments: Sequence[Any]) -> Optional[Value]:
    """What goes to a function of another process, as its tuple of arguments; None for none."""
    return values.make(_cdist.dist_get_strategy(), tuple(arguments)) if arguments else None


def given_to(args: int) -> Sequence[Any]:
    """What a function gets: the items of a tuple or list, no argument for nothing, one for anything else."""
    given = values.borrowed(args)
    if isinstance(given, (list, tuple)):
        return given
    return () if given is None else (given,)


def slices_of(slices: Any) -> Value:
    """Rows of a variable: (values, indices), or a Value that has them."""
    if isinstance(slices, Value):
        return slices
    if not isinstance(slices, tuple) or len(slices) != 2:
        raise TypeError("slices are a pair, (values, indices), or Strategy.indexed_slices()")
    from .strategy import current_strategy

    return current_strategy().indexed_slices(*slices)


@checked
class Reader:
    """Variables by name: what a Closure and a Coordinator have in common."""

    def _read(self, names: Sequence[str]) -> list[Any]:
        raise NotImplementedError

    @overload
    def read(self, names: str) -> Array: ...

    @overload
    def read(self, names: Union[list[str], tuple[str, ...]]) -> list[Array]: ...

    def read(self, names: Union[str, list[str], tuple[str, ...]]) -> Any:
        """The value of a variable, or a list of those of several. Those of one parameter server are of one moment."""
        if isinstance(names, str):
            return self._read([names])[0]
        return self._read(list(names))

    def assign(self, name: str, value: Any, how: Assign = Assign.SET) -> None:
        """Gives a variable a value, or adds it to, or subtracts it from the variable: `how` is an Assign."""
        raise NotImplementedError

    def assign_add(self, name: str, value: Any) -> None:
        """assign() with Assign.ADD."""
        self.assign(name, value, Assign.ADD)

    def assign_sub(self, name: str, value: Any) -> None:
        """assign() with Assign.SUB."""
        self.assign(name, value, Assign.SUB)


@checked
class Closure(Returned, Reader):
    """What a function on a worker knows of the job, while it runs; for the thread that runs it.

    What it changes is changed once it has returned, all of it or nothing on each parameter server: its reads do not see that. The memory of
    arrays that it gives is used until then.
    """

    __slots__ = ("name", "id", "worker", "_handle")

    def _init(self, handle: int) -> None:
        self._handle = handle
        self.name = str(_cdist.dist_closure_name(handle))
        """By which it was scheduled."""
        self.id = int(_cdist.dist_closure_id(handle))
        """How many closures were scheduled before it; -1: it makes a per-worker value."""
        self.worker = int(_cdist.dist_closure_worker(handle))
        """Which worker runs it: the index of its task."""

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants its result any more: another closure has failed, or the coordinator is gone."""
        return not self._handle or bool(_cdist.dist_cancel_signalled(_cdist.dist_closure_cancel(self._handle)))

    def _read(self, names: Sequence[str]) -> list[Any]:
        return [values.owned(handle) for handle in _cdist.dist_closure_read(self._native(), names, len(names))]

    def read_rows(self, name: str, indices: Any) -> Array:
        """Rows of a variable, as an embedding is looked up: indices are int32 or int64 [k]."""
        given = values.make_tensor(_cdist.dist_get_strategy(), indices)
        rows: Array = values.owned(_cdist.dist_closure_read_rows(self._native(), name, given._handle))
        return rows

    def assign(self, name: str, value: Any, how: Assign = Assign.SET) -> None:
        """Changes a variable, once the closure has ended well: `how` is an Assign."""
        given = values.make_tensor(_cdist.dist_get_strategy(), value)
        _cdist.dist_closure_assign(self._native(), name, int(how), given._handle)

    def scatter(self, name: str, how: Scatter, slices: Any) -> None:
        """Changes rows, once the closure has ended well: `how` is a Scatter, slices are (values, indices)."""
        given = slices_of(slices)
        _cdist.dist_closure_scatter(self._native(), name, int(how), given._handle)

    def update(self, function: str, names: Sequence[str], *arguments: Any) -> None:
        """Changes variables that lie alike, once the closure has ended well, by what Server.register_update() has."""
        given = arguments_of(arguments)
        _cdist.dist_closure_update(self._native(), function, list(names), len(names), values.handle_of(given))

    def per_worker(self, name: str) -> Any:
        """What Coordinator.create_per_worker() has made on this worker: the very object."""
        given = values.owned(_cdist.dist_closure_per_worker(self._native(), name))
        return given.thing if isinstance(given, _Own) else given

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the closure is over")
        return self._handle


class _Own:
    """A per-worker value as it is: libdist would take a list for a nest, and an array for a tensor."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing


class _Function:
    """What the token of a closure's function stands for."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def on_closure(self, handle: int, args: int) -> int:
        closure = Closure._of(handle)
        try:
            result = self.fn(closure, *given_to(args))
            if closure.id < 0:
                result = _Own(result)
            return values.hand_over(_cdist.dist_get_strategy(), result)
        except BaseException as error:
            return -_calls.tell_another_process(error)
        finally:
            closure._handle = 0  # libdist's, until the function has returned


class _UpdateFunction:
    """What the token of an update function stands for."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., None]) -> None:
        self.fn = fn

    def on_update_variables(self, variables: int, n: int, args: int) -> int:
        try:
            self.fn([_tensors.view_at(variables, i, writable=True) for i in range(n)], *given_to(args))
            return 0
        except BaseException as error:
            return _calls.tell_another_process(error)


@checked
class Server(Native):
    """A task that a coordinator gives work to.

    server = libdist.Server()                  # the task that TF_CONFIG says
    server.register("train", train)
    server.start()
    server.join()                              # until the coordinator ends
    """

    def __init__(
        self,
        cluster: Optional[ClusterSpec] = None,
        job: Optional[str] = None,
        index: TaskId = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        """It listens from start() on, at the task's address; with port 0 the system chooses one.

        cluster, job, index: the cluster, and the task in it that this process is; None = as in TF_CONFIG.
        """
        self._handle = 0
        spec = 0 if cluster is None else cluster._handle
        self._begin(_cdist.dist_server_create(spec, job, id_number(index), server_options(**options)))

    @classmethod
    def local(cls, **options: Unpack[ServerOptions]) -> Server:
        """A server for trying things out, at 127.0.0.1: a coordinator may have it for any worker or parameter server."""
        server = cls.__new__(cls)
        server._handle = 0
        server._begin(_cdist.dist_server_create_local(server_options(**options)))
        return server

    def _begin(self, handle: int) -> None:
        self._handle = handle
        close_at_exit(self, SERVER)

    def register(self, name: str, fn: Callable[..., Any]) -> None:
        """Has closures of this name call fn(closure, *arguments), before start(); closure is a Closure.

        It is called on threads of the server's. What it returns goes to the coordinator, and what it raises too: a
        DistError with its status, other exceptions as in RpcServer.register(); nothing has changed then. For
        Coordinator.create_per_worker() the result stays here as it is.
        """
        self._register(_cdist.dist_server_register, name, fn, _Function)

    def register_update(self, name: str, fn: Callable[..., None]) -> None:
        """Has parameter servers change variables by fn(variables, *arguments), before start().

        variables are arrays that lie there alike, to be written to; of a divided variable it is called for each part,
        with the part's rows of those arguments that have the variable's shape. Where it raises nothing has changed on this server.
        """
        self._register(_cdist.dist_server_register_update, name, fn, _UpdateFunction)

    def _register(self, native: Callable[..., None], name: str, fn: Any, target: Callable[[Any], object]) -> None:
        handle = self._native()
        token = _calls.keep(target(fn))
        try:
            native(handle, name, token)
        except BaseException:
            _calls.release(token)
            raise

    def start(self) -> None:
        """Listens."""
        _cdist.dist_server_start(self._native())

    @property
    def target(self) -> str:
        """Where coordinators find it, "grpc://host:port", with the port that the system has chosen."""
        return str(_cdist.dist_server_target(self._native()))

    def join(self, timeout: Wait = None, cancel: Optional[Cancel] = None) -> None:
        """Waits for the end of its coordinator, or stop(). It goes on listening until close().

        timeout: seconds; None: without limit. DeadlineExceeded: not by then, or no coordinator has come within
        start_timeout; Unavailable: the coordinator has not been heard of for two leases.
        """
        cancel = Cancel() if cancel is None else cancel
        with Watch(cancel.signal):
            wait = wait_limit(timeout)
            _cdist.dist_server_join(self._native(), wait, cancel._native())

    def write_trace(self) -> str:
        """What the server has done, as a trace for Perfetto or chrome://tracing: JSON.

        A worker has a row for each thread, with closures and in them what they ask of parameter servers; a parameter
        server has one, with the calls to it. Traces of a job's servers and of its coordinator can be joined.
        """
        text = _cdist.Text()
        text.write_server_trace(self._native())
        return str(text.text())

    def stop(self) -> None:
        """Ends join()."""
        _cdist.dist_server_stop(self._native())

    def close(self) -> None:
        """Ends the server; waits for functions that run, which are told. Not inside a closure."""
        _cdist.dist_server_stop(self._handle)
        self._end(_cdist.dist_server_destroy)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The module's own names are gone when the interpreter ends: hence the default.
    def __del__(self, _destroy: Any = _cdist.dist_server_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the server is closed")
        return self._handle
