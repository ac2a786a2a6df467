# SPDX-License-Identifier: Apache-2.0
"""Methods of other processes: a server offers functions by name, a client calls them (TensorFlow: experimental.rpc).

Both speak gRPC. What the environment says of it, what goes over and the limits are in libdist's headers, rpc.h.
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
    """What a method knows of a call, while it is in it."""

    __slots__ = ("method", "timeout", "_cancel")

    def __init__(self, method: str, cancel: int, timeout_ns: int) -> None:
        self.method = method
        """Its name."""
        self.timeout: Optional[float] = timeout_ns / 1e9 if timeout_ns else None
        """Seconds, how long the client waits in all; None: without limit."""
        self._cancel = cancel

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""
        return not self._cancel or bool(_cdist.dist_cancel_signalled(self._cancel))


class _Method:
    """What a method's token stands for."""

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
            call._cancel = 0  # libdist's, until the call is over


@checked
class RpcServer(Native):
    """Offers methods to other processes.

    with libdist.RpcServer("127.0.0.1:29600") as server:
        server.register("add", lambda call, a, b: a + b)
        server.start()
    """

    def __init__(self, address: str, **options: Unpack[RpcServerOptions]) -> None:
        """It listens from start() on. address: "host:port"; with port 0 the system chooses one. If the host is a name
        other than localhost, the server listens on all interfaces.
        """
        self._handle = 0
        self._handle = _cdist.dist_rpc_server_create(None, address, rpc_server_options(**options))
        close_at_exit(self, RPC_SERVER)

    def register(self, method: str, fn: Callable[..., Any]) -> None:
        """Offers fn(call, *arguments) under a name, before start(); call is an RpcCall.

        It is called on threads of the server's, several at a time. What it returns goes to the client, and what it raises
        too: a DistError with its status, a ValueError or TypeError as InvalidArgument, a NotImplementedError as
        Unimplemented, a MemoryError as ResourceExhausted, errors of files as NotFound, AlreadyExists and
        PermissionDenied, and anything else as Unknown.
        """
        handle = self._native()
        token = _calls.keep(_Method(fn))
        try:
            _cdist.dist_rpc_server_register(handle, method, token)
        except BaseException:
            _calls.release(token)
            raise

    def start(self) -> None:
        """Listens."""
        _cdist.dist_rpc_server_start(self._native())

    @property
    def address(self) -> str:
        """Where clients find it, with the port that the system has chosen."""
        return str(_cdist.dist_rpc_server_address(self._native()))

    def close(self) -> None:
        """Ends the server; waits for methods that run, whose calls are told. Not inside a method."""
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
    """What a call, or a closure, comes to, later. A call whose value nobody holds any more is given up; a closure is not."""

    __slots__ = ("_owner", "_handle", "__weakref__")

    def _init(self, handle: int, owner: object) -> None:
        self._handle = handle  # takes over the reference
        self._owner = owner  # a client or coordinator, whose end would end the call

    def result(self, timeout: Wait = None) -> Any:
        """Waits for the result, or raises the call's error; the same each time.

        timeout: seconds; DeadlineExceeded, where it is not there by then, ends nothing. None: as long as the call may take.
        """
        wait = wait_limit(timeout)
        with Watch(self.cancel):
            handle = _cdist.dist_remote_value_get(self._handle, wait)
        return values.owned(handle)

    def done(self) -> bool:
        """Whether result() would not wait."""
        return bool(_cdist.dist_remote_value_ready(self._handle))

    def cancel(self) -> None:
        """Ends it with Cancelled, unless it has ended, and tells the server. A closure that runs has its effects."""
        _cdist.dist_remote_value_cancel(self._handle)

    def __del__(self, _release: Any = _cdist.dist_remote_value_release) -> None:
        if getattr(self, "_handle", 0):
            _release(self._handle)


@checked
class RpcClient(Native):
    """Calls methods of the server at an address, which need not be there yet.

    with libdist.RpcClient("127.0.0.1:29600") as client:
        print(client.call("add", 1.0, 2.0))
    """

    def __init__(self, address: str, **options: Unpack[RpcClientOptions]) -> None:
        """address: "host:port"."""
        self._handle = 0
        self._handle = _cdist.dist_rpc_client_create(None, address, rpc_client_options(**options))
        close_at_exit(self, RPC_CLIENT)

    def call(self, method: str, *arguments: Any, **options: Unpack[RpcCallOptions]) -> Any:
        """The result of a method; waits for it."""
        return self.begin(method, *arguments, **options).result()

    def begin(self, method: str, *arguments: Any, **options: Unpack[RpcCallOptions]) -> RemoteValue:
        """As call(), without waiting. The memory of arrays is used until they have been sent."""
        given = values.make(_cdist.dist_get_strategy(), tuple(arguments)) if arguments else None
        native = rpc_call_options(**options)
        return RemoteValue._of(_cdist.dist_rpc_begin(self._native(), method, values.handle_of(given), native), self)

    def methods(self, **options: Unpack[RpcCallOptions]) -> list[str]:
        """The names of the server's methods, sorted."""
        options["cancel"] = cancel = options.get("cancel") or Cancel()
        with Watch(cancel.signal):
            handle = _cdist.dist_rpc_client_methods(self._native(), rpc_call_options(**options))
        return [str(name) for name in values.owned(handle)]

    def close(self) -> None:
        """Ends the client: calls that have no answer are Cancelled."""
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
