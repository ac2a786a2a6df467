# SPDX-License-Identifier: Apache-2.0
"""Versions: something that all replicas read, weights for example, and that is replaced while they run."""

from __future__ import annotations

import time
from typing import Any, Callable, Generic, Optional, TypeVar

from . import _calls, _cdist
from ._arguments import Wait, checked, nanoseconds
from ._native import Native
from .errors import DeadlineExceeded, FailedPrecondition

T = TypeVar("T")

SLICE = 0.05  # seconds after which who waits in C looks for signals


class _Published:
    """What a version's token stands for, until it is released."""

    def __init__(self, content: Any, release: Optional[Callable[[Any], Any]]) -> None:
        self.content = content
        self._release = release

    def on_release(self) -> None:
        try:
            if self._release is not None:
                self._release(self.content)
        except Exception:  # nobody is there to be told
            pass


@checked
class Versions(Native, Generic[T]):
    """A series of something that all replicas read, and that is replaced while they run. Any thread may use it.

    All replicas of a run see one version, the latest when the first of them asks, to the end of the run; so do its logical
    devices. A request is a run of one. A version stays until it is neither the latest nor seen by a run.

    release(content): ends a version that nobody sees any more: called once for each, on the thread that lets go of it last;
    it waits for no request or version, and what it raises is dropped. None: nothing is done.
    """

    def __init__(self, release: Optional[Callable[[T], Any]] = None) -> None:
        self._handle = 0
        self._release = release
        self._handle = _cdist.dist_versions_create(None)

    def publish(self, content: T) -> int:
        """Makes content the latest version; its number: 1, 2, 3 and so on.

        Also inside a replica, whose run goes on with the version that it sees.
        """
        token = _calls.keep(_Published(content, self._release))
        try:
            return int(_cdist.dist_versions_publish(self._native("Versions.publish"), token))
        except BaseException:
            _calls.release(token)
            raise

    @property
    def latest(self) -> int:
        """The number of the latest version; 0: there is none."""
        return int(_cdist.dist_versions_latest(self._native("Versions.latest")))

    def wait(self, number: int, timeout: Wait = None) -> None:
        """Waits until all versions before `number` have been released, at most `timeout` seconds.

        None, or negative: no limit. DeadlineExceeded says which versions runs still see. Outside the replicas' functions: a run may see such a version.
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
        """Gives up the series: the latest version is released when no run sees it any more. Runs may be under way."""
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
