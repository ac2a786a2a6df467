# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.experimental.rpc, with libdist.RpcServer and libdist.RpcClient."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

import libdist
from libdist._arguments import checked

from ._missing import Refusing
from ._nest import map_leaves
from ._numbers import convert_to_tensor
from ._tensor import tensor_of


def sent(nest: Any) -> Any:
    """Converts numbers and arrays to tensors with TensorFlow's dtypes. Texts and None stay unchanged."""
    return map_leaves(_sent, nest)


def _sent(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, str):
        return leaf
    tensor = convert_to_tensor(leaf)
    if tensor.dtype == object:
        raise libdist.InvalidArgument(f"{type(leaf).__name__} is no tensor, and cannot be sent to another process")
    return tensor


def received(nest: Any) -> Any:
    return map_leaves(lambda leaf: tensor_of(leaf) if isinstance(leaf, np.ndarray) else leaf, nest)


class StatusOrResult:
    """The future result of a call. Each method waits for it."""

    def __init__(self, remote: libdist.RemoteValue) -> None:
        self._remote = remote
        self._error: Optional[libdist.DistError] = None
        self._value: Any = None
        self._known = False

    def _wait(self) -> None:
        if self._known:
            return
        try:
            self._value = received(self._remote.result())
        except libdist.DistError as error:
            self._error = error
        self._known = True

    def is_ok(self) -> Any:
        """Returns whether the method has returned a value."""
        self._wait()
        return tensor_of(np.asarray(self._error is None))

    def get_error(self) -> Any:
        """Returns the code of the error, 0 if there is none, and its text."""
        self._wait()
        if self._error is None:
            return tensor_of(np.asarray(0, np.int64)), ""
        return tensor_of(np.asarray(int(self._error.status), np.int64)), self._error.message

    def get_value(self) -> Any:
        """Returns the value, or raises the error."""
        self._wait()
        if self._error is not None:
            raise self._error
        return self._value


def _check_layer(rpc_layer: str) -> None:
    if rpc_layer != "grpc":
        raise ValueError("Only GRPC backend is supported at the moment.")


@checked
class Server(Refusing):
    """Offers functions to clients in other processes.

        server = tf.distribute.experimental.rpc.Server.create("grpc", "127.0.0.1:1234")
        server.register("addition", lambda a, b: a + b)
        server.start()
    """

    _tf_name = "tf.distribute.experimental.rpc.Server"

    def __init__(self, native: libdist.RpcServer) -> None:
        self._native = native

    @staticmethod
    def create(rpc_layer: str, address: str) -> Server:
        """Creates a server. It does not listen before start(). address: "host:port"."""
        _check_layer(rpc_layer)
        return Server(libdist.RpcServer(address))

    def register(self, method_name: str, func: Callable[..., Any]) -> None:
        """Registers func(*args) under a name, before start()."""
        if not callable(func):
            raise ValueError("Only TF functions are supported with Register method")  # TensorFlow's message
        try:
            self._native.register(method_name, lambda _, *args: sent(func(*received(args))))
        except libdist.AlreadyExists as error:  # TensorFlow raises this class
            raise libdist.InvalidArgument(f"{method_name} is already registered: {error.message}") from error

    def start(self) -> None:
        """Starts to listen."""
        self._native.start()


@checked
class Client(Refusing):
    """Calls the functions of a server.

        client = tf.distribute.experimental.rpc.Client.create("grpc", "127.0.0.1:1234")
        result = client.call("addition", args=(1.0, 2.0))
        if result.is_ok():
            print(result.get_value())
    """

    _tf_name = "tf.distribute.experimental.rpc.Client"

    def __init__(self, native: libdist.RpcClient, timeout_in_ms: int, address: str) -> None:
        self._native = native
        self._address = address
        self._timeout_in_ms = timeout_in_ms
        self._methods: Optional[list[str]] = None

    @staticmethod
    def create(rpc_layer: str, address: str, name: str = "", timeout_in_ms: int = 0) -> Client:
        """Creates a client of the server at an address, which may be started later.

        timeout_in_ms: timeout of calls; 0 = default (600,000).
        """
        _check_layer(rpc_layer)
        return Client(libdist.RpcClient(address), timeout_in_ms, address)

    def call(
        self,
        method_name: str,
        args: Any = None,
        output_specs: Any = None,
        timeout_in_ms: int = 0,
    ) -> StatusOrResult:
        """Calls a function without waiting, and returns its future result.

        output_specs: accepted without effect, because a value has its own structure.
        """
        if args is None:
            args = ()
        elif not isinstance(args, (list, tuple)):
            args = (args,)
        timeout = self._timeout(timeout_in_ms)
        return StatusOrResult(self._native.begin(method_name, *sent(tuple(args)), timeout=timeout))

    def _timeout(self, timeout_in_ms: int) -> Optional[float]:
        timeout_in_ms = timeout_in_ms or self._timeout_in_ms
        return timeout_in_ms / 1000 if timeout_in_ms else None

    def __getattr__(self, name: str) -> Any:
        """Calls a function by name: client.addition(1.0, 2.0). Asks the server once for the names of its functions.

        client.addition_blocking(1.0, 2.0) waits, and returns the value or raises the error.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        if self._methods is None:
            self._methods = self._native.methods(timeout=self._timeout(0))
        called = name.removesuffix("_blocking") if name not in self._methods else name
        if called not in self._methods:
            raise AttributeError(f"the server has no method {name}; it has {', '.join(self._methods) or 'none'}")

        def method(*args: Any, timeout_in_ms: int = 0) -> Any:
            result = self.call(called, args, timeout_in_ms=timeout_in_ms)
            return result if called == name else result.get_value()

        waits = "" if called == name else ", and returns its value"
        method.__name__ = name
        method.__doc__ = f"Calls the method {called} of the server at {self._address}{waits}."
        return method
