# SPDX-License-Identifier: Apache-2.0
"""Calls from C into Python. C receives a token, which is a number, in place of a function; a registry has its target.

No exception may unwind through C. If a function raises, its exception is kept here, libdist receives a status and a
text, and the caller of the native function raises the same exception object again.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, NoReturn, Optional

from . import _cdist
from .constants import Status
from .errors import Aborted, DistError, carried

_targets: dict[int, Any] = {}
_tokens = itertools.count(1)


def keep(target: Any) -> int:
    """Registers a target and returns a new token for it. No token is used twice."""
    token = next(_tokens)
    _targets[token] = target
    return token


def target_of(token: int) -> Any:
    """Returns the target of a token."""
    return _targets[token]


def known(token: int) -> Any:
    """Returns the target of a token; None if it has been released."""
    return _targets.get(token)


def release(token: int, _targets: dict[int, Any] = _targets) -> None:
    """Releases a token."""
    _targets.pop(token, None)  # also works while the interpreter shuts down and has cleared the names of this module


def _plain(text: str) -> str:
    """Returns the text in a form that C accepts: UTF-8 without NUL."""
    return text.replace("\0", "\\0").encode("utf-8", "replace").decode("utf-8")


def described(error: BaseException) -> str:
    """Describes an exception on one line."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # raised by the __str__() of your exception
        text = "its text cannot be had"
    return f"{name}: {text}" if text else name


def tell(error: BaseException) -> int:
    """Sets this thread's libdist error to an exception that a function raised, and returns its status."""
    if isinstance(error, DistError):
        if error._told:
            return int(_cdist.fail_as_told(error.status, _plain(error._told)))
        return int(_cdist.fail(error.status, _plain(error.message)))
    status = Status.UNKNOWN
    if isinstance(error, KeyboardInterrupt):
        status = Status.CANCELLED
    elif isinstance(error, MemoryError):
        status = Status.RESOURCE_EXHAUSTED
    return int(_cdist.fail(status, _plain(described(error))))


def tell_another_process(error: BaseException) -> int:
    """Like tell(), for a function that another process has called."""
    if isinstance(error, Exception) and not isinstance(error, DistError):
        return tell(carried(error, described(error)))
    return tell(error)


class Failures:
    """The exceptions of the functions of one native call, with the id of their replica or logical device (-1 = none).
    """

    __slots__ = ("all", "of_devices")

    def __init__(self, of_devices: bool = False) -> None:
        self.of_devices = of_devices
        self.all: list[tuple[int, BaseException]] = []

    def add(self, error: BaseException, replica: int = -1) -> int:
        """Keeps an exception, tells libdist, and returns the status."""
        self.all.append((replica, error))
        return tell(error)

    def choose(self, report: Optional[DistError]) -> Optional[BaseException]:
        """Returns the exception to raise.

        This is the one of the replica that the report names, or else of the lowest replica that failed on its own
        account.
        """
        own = sorted((f for f in self.all if not is_of_a_peer(f[1])), key=lambda failure: failure[0])
        if not own:
            return report
        culprit = -1 if report is None else report.logical_device if self.of_devices else report.replica
        named = [failure for failure in own if failure[0] == culprit >= 0]
        chosen = (named or own)[0][1]
        for replica, other in own:
            repeated = isinstance(other, DistError) and report is not None and other.message == report.message
            if other is not chosen and not repeated and hasattr(chosen, "add_note"):
                member = "logical device" if self.of_devices else "replica"
                whose = f"{member} {replica}" if replica >= 0 else "another call"
                chosen.add_note(f"{whose} failed too: {described(other)}")
        return chosen

    def raise_for(self, report: Optional[DistError]) -> NoReturn:
        """Raises the exception that choose() returns."""
        error = self.choose(report)
        self.all.clear()  # a traceback refers to the frames, which refer to this object
        assert error is not None
        raise error


def is_of_a_peer(error: BaseException) -> bool:
    return isinstance(error, Aborted) and bool(error._told)


def call(failures: Failures, native: Callable[..., Any], *arguments: Any) -> Any:
    """Makes a native call whose functions keep their exceptions in `failures`, and raises the one to raise."""
    report: Optional[DistError] = None
    result = None
    try:
        result = native(*arguments)
    except DistError as error:
        report = error
    if report is not None or failures.all:
        failures.raise_for(report)
    return result


def _given_up() -> int:
    """Tells libdist that a replica starts after the deadline of its run."""
    return int(_cdist.fail(Status.CANCELLED, "the run was given up at its deadline, before this replica began"))


class _Callbacks(_cdist.Callbacks):
    """The object that receives all calls from libdist; see section 4 of dist.i."""

    def replica(self, token: int, replica: int) -> int:
        run = _targets.get(token)
        return int(run.on_replica(replica)) if run is not None else _given_up()

    def values(self, token: int, replica: int, args: int, kwargs: int) -> int:
        run = _targets.get(token)
        return int(run.on_values(replica, args, kwargs)) if run is not None else -_given_up()

    def merge(self, token: int, strategy: int, args: int, kwargs: int) -> int:
        return int(_targets[token].on_merge(strategy, args, kwargs))

    def update(self, token: int, replica: int, device: str, copy: int, args: int, kwargs: int) -> int:
        return int(_targets[token].on_update(replica, device, copy, args, kwargs))

    def source(self, token: int, index: int) -> int:
        return int(_targets[token].on_source(index))

    def file_source(self, token: int, file: int, name: str, index: int) -> int:
        return int(_targets[token].on_file_source(file, name, index))

    def dataset(self, token: int, num_pipelines: int, pipeline: int, num_replicas: int) -> int:
        return int(_targets[token].on_dataset(num_pipelines, pipeline, num_replicas))

    def dataset_reduce(self, token: int, state: int, batch: int) -> int:
        return int(_targets[token].on_dataset_reduce(state, batch))

    def value(self, token: int, replica: int, num_replicas: int) -> int:
        return int(_targets[token].on_value(replica, num_replicas))

    def initial(self, token: int) -> int:
        return int(_targets[token].on_initial())

    def method(self, token: int, name: str, cancel: int, timeout_ns: int, args: int) -> int:
        return int(_targets[token].on_method(name, cancel, timeout_ns, args))

    def closure(self, token: int, closure: int, args: int) -> int:
        return int(_targets[token].on_closure(closure, args))

    def create_state(self, token: int, replica: int) -> int:
        return int(_targets[token].on_create_state(replica))

    def destroy_state(self, token: int, state: int) -> None:
        _targets[token].on_destroy_state(state)

    def warm_up(self, token: int, replica: int) -> int:
        return int(_targets[token].on_warm_up(replica))

    def step(self, token: int, replica: int, batch: int) -> int:
        return int(_targets[token].on_step(replica, batch))

    def update_variables(self, token: int, variables: int, n: int, args: int) -> int:
        return int(_targets[token].on_update_variables(variables, n, args))

    def partition(self, token: int, spec: int, partitions: int) -> int:
        return int(_targets[token].on_partition(spec, partitions))

    def loop(self, token: int, begin: int, end: int) -> None:
        _targets[token].on_loop(begin, end)

    def reduce(self, token: int, acc: int, values: int, count: int, dtype: int) -> None:
        _targets[token].on_reduce(acc, values, count, dtype)

    def apply(
        self,
        token: int,
        tensor: int,
        first: int,
        count: int,
        dtype: int,
        gradient: int,
        parameter: int,
        num_states: int,
        states: int,
    ) -> None:
        _targets[token].on_apply(tensor, first, count, dtype, gradient, parameter, num_states, states)

    def reduce_components(self, token: int, op: int, components: int, n: int, out: int) -> int:
        return int(_targets[token].on_reduce_components(op, components, n, out))

    def broadcast_copies(self, token: int, value: int, copies: int, n: int) -> int:
        return int(_targets[token].on_broadcast_copies(value, copies, n))

    def gather_components(self, token: int, components: int, n: int, axis: int, out: int) -> int:
        return int(_targets[token].on_gather_components(components, n, axis, out))

    def execute(self, token: int, task: int, task_data: int) -> int:
        loops = _targets.get(token)
        return int(loops.on_execute(task, task_data)) if loops is not None else 1

    def log(self, token: int, level: int, message: str) -> None:
        _targets[token].on_log(level, message)

    def release(self, token: int, _release: Any = release, _targets: dict[int, Any] = _targets) -> None:
        try:
            ended = getattr(_targets.get(token), "on_release", None)
            if ended is not None:
                ended()
        finally:
            _release(token)


# Never destroyed: libdist still makes calls while the interpreter is clearing its modules.
_cdist.set_callbacks(_Callbacks().__disown__())
