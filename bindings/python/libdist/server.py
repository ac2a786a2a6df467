# SPDX-License-Identifier: Apache-2.0
"""Servers: the tasks of a cluster to which a Coordinator sends work (TensorFlow: tf.distribute.Server).

A parameter server is a task of job "ps" and stores variables; a worker is a task of job "worker" and runs closures. The
header dist/experimental/server.h describes the environment variables, and what happens to closures that are lost.
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
    """Returns the arguments for a function of another process as a tuple value; None for none."""
    return values.make(_cdist.dist_get_strategy(), tuple(arguments)) if arguments else None


def given_to(args: int) -> Sequence[Any]:
    """Returns the arguments of a function: the items of a tuple or list, none for None, one for anything else."""
    given = values.borrowed(args)
    if isinstance(given, (list, tuple)):
        return given
    return () if given is None else (given,)


def slices_of(slices: Any) -> Value:
    """Converts rows of a variable: a pair (values, indices), or a Value."""
    if isinstance(slices, Value):
        return slices
    if not isinstance(slices, tuple) or len(slices) != 2:
        raise TypeError("slices are a pair, (values, indices), or Strategy.indexed_slices()")
    from .strategy import current_strategy

    return current_strategy().indexed_slices(*slices)


@checked
class Reader:
    """The methods that Closure and Coordinator have in common."""

    def _read(self, names: Sequence[str]) -> list[Any]:
        raise NotImplementedError

    @overload
    def read(self, names: str) -> Array: ...

    @overload
    def read(self, names: Union[list[str], tuple[str, ...]]) -> list[Array]: ...

    def read(self, names: Union[str, list[str], tuple[str, ...]]) -> Any:
        """Reads a variable, or a list of variables. The values from one parameter server are of the same moment.

        Do not write to the arrays.
        """
        if isinstance(names, str):
            return self._read([names])[0]
        return self._read(list(names))

    def assign(self, name: str, value: Any, how: Assign = Assign.SET) -> None:
        """Assigns a value to a variable, or adds or subtracts it; `how` is an Assign."""
        raise NotImplementedError

    def assign_add(self, name: str, value: Any) -> None:
        """Adds a value to a variable: assign() with Assign.ADD."""
        self.assign(name, value, Assign.ADD)

    def assign_sub(self, name: str, value: Any) -> None:
        """Subtracts a value from a variable: assign() with Assign.SUB."""
        self.assign(name, value, Assign.SUB)


@checked
class Closure(Returned, Reader):
    """A running closure on a worker, for the thread that runs its function.

        def train(closure, batch):
            gradient = compute(closure.read("w"), batch)
            closure.assign_sub("w", gradient)

    The changes that a closure makes are applied after its function has returned, and its own reads do not see them.
    Each parameter server applies all of a closure's changes or none. Do not change an array that was passed to these
    methods until then.
    """

    __slots__ = ("name", "id", "worker", "_handle")

    def _init(self, handle: int) -> None:
        self._handle = handle
        self.name = str(_cdist.dist_closure_name(handle))
        """The name under which the closure was scheduled."""
        self.id = int(_cdist.dist_closure_id(handle))
        """The number of closures scheduled before this one; -1 if the function creates a per-worker value."""
        self.worker = int(_cdist.dist_closure_worker(handle))
        """The index of the task that runs the closure."""

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer needed, because another closure has failed or the coordinator is gone."""
        return not self._handle or bool(_cdist.dist_cancel_signalled(_cdist.dist_closure_cancel(self._handle)))

    def _read(self, names: Sequence[str]) -> list[Any]:
        return [values.owned(handle) for handle in _cdist.dist_closure_read(self._native(), names, len(names))]

    def read_rows(self, name: str, indices: Any) -> Array:
        """Reads rows of a variable, for example of an embedding.

        indices: row numbers, int32 or int64 [k]. The result has the shape [k, ...].
        """
        given = values.make_tensor(_cdist.dist_get_strategy(), indices)
        rows: Array = values.owned(_cdist.dist_closure_read_rows(self._native(), name, given._handle))
        return rows

    def assign(self, name: str, value: Any, how: Assign = Assign.SET) -> None:
        """Changes a variable after the closure has succeeded; `how` is an Assign."""
        given = values.make_tensor(_cdist.dist_get_strategy(), value)
        _cdist.dist_closure_assign(self._native(), name, int(how), given._handle)

    def scatter(self, name: str, how: Scatter, slices: Any) -> None:
        """Changes rows of a variable after the closure has succeeded.

        how: a Scatter.

        slices: a pair of values [k, ...] and indices [k], or the result of Strategy.indexed_slices().
        """
        given = slices_of(slices)
        _cdist.dist_closure_scatter(self._native(), name, int(how), given._handle)

    def update(self, function: str, names: Sequence[str], *arguments: Any) -> None:
        """Changes colocated variables after the closure has succeeded, with a function of Server.register_update()."""
        given = arguments_of(arguments)
        _cdist.dist_closure_update(self._native(), function, list(names), len(names), values.handle_of(given))

    def per_worker(self, name: str) -> Any:
        """Returns the object that Coordinator.create_per_worker() created on this worker."""
        given = values.owned(_cdist.dist_closure_per_worker(self._native(), name))
        return given.thing if isinstance(given, _Own) else given

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the closure is over")
        return self._handle


class _Own:
    """A per-worker value, wrapped because libdist would convert a list to a nest and an array to a tensor."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing


class _Function:
    """The target of a closure's token."""

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
            closure._handle = 0  # libdist's; not valid after the function has returned


class _UpdateFunction:
    """The target of an update function's token."""

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
    """A task to which a coordinator sends work.

        server = libdist.Server()      # the task that TF_CONFIG specifies
        server.register("train", train)
        server.start()
        server.join()                  # until the coordinator ends the job
        server.close()
    """

    def __init__(
        self,
        cluster: Optional[ClusterSpec] = None,
        job: Optional[str] = None,
        index: TaskId = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        """Creates the server of a task. It does not listen before start().

        Its address is that of the task; with port 0, the system chooses a port.

        cluster, job, index: the cluster, and the task in it that this process is; None = as in TF_CONFIG.
        """
        self._handle = 0
        spec = 0 if cluster is None else cluster._handle
        self._begin(_cdist.dist_server_create(spec, job, id_number(index), server_options(**options)))

    @classmethod
    def local(cls, **options: Unpack[ServerOptions]) -> Server:
        """Creates a server for experiments, on 127.0.0.1. A coordinator can use it as any worker or parameter server.
        """
        server = cls.__new__(cls)
        server._handle = 0
        server._begin(_cdist.dist_server_create_local(server_options(**options)))
        return server

    def _begin(self, handle: int) -> None:
        self._handle = handle
        close_at_exit(self, SERVER)

    def register(self, name: str, fn: Callable[..., Any]) -> None:
        """Registers a closure under a name, before start(): fn(closure, *arguments), where closure is a Closure.

        The function runs on threads of the server. The coordinator gets its result or its exception, which is converted
        as in RpcServer.register(). If it raises, no parameter server changes anything. The result for
        Coordinator.create_per_worker() stays on this worker, unchanged.
        """
        self._register(_cdist.dist_server_register, name, fn, _Function)

    def register_update(self, name: str, fn: Callable[..., None]) -> None:
        """Registers an update function under a name, before start(): fn(variables, *arguments).

        variables: colocated variables, as arrays to change in place. For a divided variable the function is called for
        each part, and arguments that have the shape of the variable are replaced by the rows of the part. If the
        function raises, nothing changes on this server.
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
        """Starts to listen."""
        _cdist.dist_server_start(self._native())

    @property
    def target(self) -> str:
        """The address for coordinators, "grpc://host:port", with the port that the system has chosen."""
        return str(_cdist.dist_server_target(self._native()))

    def join(self, timeout: Wait = None, cancel: Optional[Cancel] = None) -> None:
        """Waits until the coordinator ends, or until stop() is called. The server listens until close().

        timeout: seconds; None = no limit. Raises DeadlineExceeded if it expires or if no coordinator has connected
        within start_timeout, and Unavailable if the coordinator has been silent for two leases.
        """
        cancel = Cancel() if cancel is None else cancel
        with Watch(cancel.signal):
            wait = wait_limit(timeout)
            _cdist.dist_server_join(self._native(), wait, cancel._native())

    def write_trace(self) -> str:
        """Returns what the server has done as a JSON trace for Perfetto or chrome://tracing.

        The trace of a worker has one row per thread, with a slice for each closure. That of a parameter server has one
        row, with a slice for each call. The traces of all tasks of a job can be merged.
        """
        text = _cdist.Text()
        text.write_server_trace(self._native())
        return str(text.text())

    def stop(self) -> None:
        """Makes join() return."""
        _cdist.dist_server_stop(self._native())

    def close(self) -> None:
        """Stops and closes the server. Not inside a closure.

        Closure.cancelled becomes true in running closures, and close() waits until they have returned.
        """
        _cdist.dist_server_stop(self._handle)
        self._end(_cdist.dist_server_destroy)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The default keeps the function: the names of the module are gone when the interpreter exits.
    def __del__(self, _destroy: Any = _cdist.dist_server_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the server is closed")
        return self._handle
