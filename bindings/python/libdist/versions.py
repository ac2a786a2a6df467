# SPDX-License-Identifier: Apache-2.0
"""Versions: replace data that all replicas read, such as model weights, while they run."""

from __future__ import annotations

import time
from typing import Any, Callable, Generic, Optional, TypeVar

from . import _calls, _cdist
from ._arguments import Wait, checked, nanoseconds
from ._native import Native
from .errors import DeadlineExceeded, FailedPrecondition

T = TypeVar("T")

SLICE = 0.05  # seconds after which a thread that waits in C checks for signals


class _Published:
    """The target of a version's token, kept until the version is released."""

    def __init__(self, content: Any, release: Optional[Callable[[Any], Any]]) -> None:
        self.content = content
        self._release = release

    def on_release(self) -> None:
        try:
            if self._release is not None:
                self._release(self.content)
        except Exception:  # no caller could receive it
            pass


@checked
class Versions(Native, Generic[T]):
    """A series of versions of data that all replicas read, for example model weights. Any thread may use it.

        versions = libdist.Versions()
        versions.publish(load_model("v1"))
        strategy.submit(lambda replica: infer(replica.version(versions)[0], question))
        number = versions.publish(load_model("v2"))
        versions.wait(number)  # until v1 has been released

    All replicas of a run see the same version until the run ends: the latest one when the first of them asks. A request
    counts as a run of one replica. libdist keeps a version until a newer one is published and no run sees it any more.

    release: a function release(content), called once for each version when no run sees it any more, on the thread that
    stops using it last. It must not wait for a request or a version. Its exceptions are ignored. None = no function.
    """

    def __init__(self, release: Optional[Callable[[T], Any]] = None) -> None:
        self._handle = 0
        self._release = release
        self._handle = _cdist.dist_versions_create(None)

    def publish(self, content: T) -> int:
        """Makes `content` the latest version and returns its number: 1, 2, 3 and so on.

        It may be called inside a replica, whose run continues with the version that it sees.
        """
        token = _calls.keep(_Published(content, self._release))
        try:
            return int(_cdist.dist_versions_publish(self._native("Versions.publish"), token))
        except BaseException:
            _calls.release(token)
            raise

    @property
    def latest(self) -> int:
        """The number of the latest version; 0 if there is none."""
        return int(_cdist.dist_versions_latest(self._native("Versions.latest")))

    def wait(self, number: int, timeout: Wait = None) -> None:
        """Waits until all versions before `number` have been released. Not inside replica functions.

        timeout: seconds; None or negative = no limit. If it expires, raises DeadlineExceeded, which lists the versions
        that runs still see.
        """
        end = None if timeout is None or timeout < 0 else time.monotonic() + timeout
        while True:
            left = SLICE if end is None else min(end - time.monotonic(), SLICE)
            try:
                _cdist.dist_versions_await(self._native("Versions.wait"), number, nanoseconds(left) if left > 0 else 0)
                return
            except DeadlineExceeded:
                if end is not None and time.monotonic() >= end:
                    raise

    def _seen(self, replica: int) -> tuple[T, int]:
        token, number = _cdist.dist_replica_version(replica, self._native("Replica.version"))
        return _calls.target_of(token).content, number

    def close(self) -> None:
        """Closes the series. The latest version is released when no run sees it any more. Runs may be in progress."""
        self._end(_cdist.dist_versions_destroy)

    def __enter__(self) -> Versions[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_versions_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    def _native(self, name: str) -> int:
        if not self._handle:
            raise FailedPrecondition(f"{name}(): the series of versions is closed")
        return self._handle
