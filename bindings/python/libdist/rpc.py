# SPDX-License-Identifier: Apache-2.0
"""Remote procedure calls: a server registers functions by name, and clients call them (TensorFlow: experimental.rpc).

Both communicate over gRPC. The header dist/experimental/rpc.h describes the environment variables, the values that can
be sent, and the limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _calls, _cdist, values
from ._arguments import Wait, checked, wait_limit
from ._exit import RPC_CLIENT, RPC_SERVER, close_at_exit, finalizing
from ._interrupt import Watch
from ._native import Native, Returned
from ._option_fields import (
    RpcCallOptions,
    RpcClientOptions,
    RpcServerOptions,
    rpc_call_options,
    rpc_client_options,
    rpc_server_options,
)
from .cancel import Cancel
from .errors import FailedPrecondition

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RpcCall:
    """Information about a call, for its method."""

    __slots__ = ("method", "timeout", "_cancel")

    def __init__(self, method: str, cancel: int, timeout_ns: int) -> None:
        self.method = method
        """The name of the method."""
        self.timeout: Optional[float] = timeout_ns / 1e9 if timeout_ns else None
        """How long the client waits in total, in seconds; None = it waits without limit."""
        self._cancel = cancel

    @property
    def cancelled(self) -> bool:
        """Whether no client waits for the result any more."""
        return not self._cancel or bool(_cdist.dist_cancel_signalled(self._cancel))


class _Method:
    """The target of a method's token."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def on_method(self, name: str, cancel: int, timeout_ns: int, args: int) -> int:
        call = RpcCall(name, cancel, timeout_ns)
        try:
            given = values.borrowed(args)
            if not isinstance(given, (list, tuple)):
                given = () if given is None else (given,)
            return values.hand_over(_cdist.dist_get_strategy(), self.fn(call, *given))
        except BaseException as error:
            return -_calls.tell_another_process(error)
        finally:
            call._cancel = 0  # libdist's; not valid after the call


@checked
class RpcServer(Native):
    """Offers functions to clients in other processes.

        with libdist.RpcServer("127.0.0.1:29600") as server:
            server.register("add", lambda call, a, b: a + b)
            server.start()
            ...
    """

    def __init__(self, address: str, **options: Unpack[RpcServerOptions]) -> None:
        """Creates a server. It does not listen before start().

        address: "host:port"; with port 0, the system chooses a port. If the host is a name other than localhost, the
        server listens on all interfaces.
        """
        self._handle = 0
        self._handle = _cdist.dist_rpc_server_create(None, address, rpc_server_options(**options))
        close_at_exit(self, RPC_SERVER)

    def register(self, method: str, fn: Callable[..., Any]) -> None:
        """Registers fn(call, *arguments) under a name, before start(); call is an RpcCall.

        The function runs on threads of the server, several at a time. The client gets its result or its exception: a
        DistError with its status, a ValueError or TypeError as InvalidArgument, a NotImplementedError as Unimplemented,
        a MemoryError as ResourceExhausted, errors of files as NotFound, AlreadyExists and PermissionDenied, and
        anything else as Unknown.
        """
        handle = self._native()
        token = _calls.keep(_Method(fn))
        try:
            _cdist.dist_rpc_server_register(handle, method, token)
        except BaseException:
            _calls.release(token)
            raise

    def start(self) -> None:
        """Starts to listen."""
        _cdist.dist_rpc_server_start(self._native())

    @property
    def address(self) -> str:
        """The address for clients, "host:port", with the port that the system has chosen."""
        return str(_cdist.dist_rpc_server_address(self._native()))

    def close(self) -> None:
        """Stops the server. Not inside a method.

        RpcCall.cancelled becomes true in running methods, and close() waits until they have returned.
        """
        self._end(_cdist.dist_rpc_server_destroy)

    def __enter__(self) -> RpcServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_rpc_server_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the server is closed")
        return self._handle


@checked
class RemoteValue(Returned):
    """The future result of a call or of a closure.

    If nothing refers to the object any more, a call in progress is cancelled, but not a closure.
    """

    __slots__ = ("_owner", "_handle", "__weakref__")

    def _init(self, handle: int, owner: object) -> None:
        self._handle = handle  # takes over the reference
        self._owner = owner  # the client or coordinator, which must not be closed before the call has completed

    def result(self, timeout: Wait = None) -> Any:
        """Waits for the call to complete and returns its result or raises its error, the same each time.

        timeout: seconds; None = no limit except the call's own timeout. If it expires, raises DeadlineExceeded, and the
        call continues.
        """
        wait = wait_limit(timeout)
        with Watch(self.cancel):
            handle = _cdist.dist_remote_value_get(self._handle, wait)
        return values.owned(handle)

    def done(self) -> bool:
        """Returns whether the call has completed."""
        return bool(_cdist.dist_remote_value_ready(self._handle))

    def cancel(self) -> None:
        """Cancels the call, which completes with Cancelled, and notifies the server.

        If it has already completed, nothing happens. A running closure continues and has its effects.
        """
        _cdist.dist_remote_value_cancel(self._handle)

    def __del__(self, _release: Any = _cdist.dist_remote_value_release) -> None:
        if getattr(self, "_handle", 0):
            _release(self._handle)


@checked
class RpcClient(Native):
    """Calls the methods of one server, which may be started later.

        with libdist.RpcClient("127.0.0.1:29600") as client:
            print(client.call("add", 1.0, 2.0))
    """

    def __init__(self, address: str, **options: Unpack[RpcClientOptions]) -> None:
        """address: "host:port" of the server."""
        self._handle = 0
        self._handle = _cdist.dist_rpc_client_create(None, address, rpc_client_options(**options))
        close_at_exit(self, RPC_CLIENT)

    def call(self, method: str, *arguments: Any, **options: Unpack[RpcCallOptions]) -> Any:
        """Calls a method, waits for its result and returns it. If the method raised, raises its error."""
        return self.begin(method, *arguments, **options).result()

    def begin(self, method: str, *arguments: Any, **options: Unpack[RpcCallOptions]) -> RemoteValue:
        """Calls a method without waiting. Do not change arrays in the arguments before they have been sent."""
        given = values.make(_cdist.dist_get_strategy(), tuple(arguments)) if arguments else None
        native = rpc_call_options(**options)
        return RemoteValue._of(_cdist.dist_rpc_begin(self._native(), method, values.handle_of(given), native), self)

    def methods(self, **options: Unpack[RpcCallOptions]) -> list[str]:
        """Returns the names of the server's methods, sorted."""
        options["cancel"] = cancel = options.get("cancel") or Cancel()
        with Watch(cancel.signal):
            handle = _cdist.dist_rpc_client_methods(self._native(), rpc_call_options(**options))
        return [str(name) for name in values.owned(handle)]

    def close(self) -> None:
        """Closes the client. Calls without an answer complete with Cancelled."""
        self._end(_cdist.dist_rpc_client_destroy)

    def __enter__(self) -> RpcClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_rpc_client_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the client is closed")
        return self._handle
