# SPDX-License-Identifier: Apache-2.0
"""Serving: functions that run on one free replica each, for programs that answer requests."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Generator, Optional, TypeVar

from . import _calls, _cdist, values
from ._arguments import Wait, checked, nanoseconds, wait_limit
from ._arrivals import cannot_take, queue_of, running_loop, taken
from ._context import Context
from ._interrupt import Watch
from ._native import Native
from ._option_fields import InstancesOptions, SubmitOptions, instances_options, submit_options
from ._runs import current
from .errors import DistError
from .replica import Replica

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy

T = TypeVar("T")

SLICE = 0.05  # seconds after which who waits in C looks for signals, and for a loop's end


# ---- requests ---------------------------------------------------------------------------------------------


@checked
class Request(Native, concurrent.futures.Future[T]):
    """What one replica's function comes to: Strategy.submit(). To be awaited, and a future for threads.

    It is done when the request has ended: result() is what the function returned, or raises what it raised, or a DistError
    of libdist's. `await request` is the same; to cancel the task that awaits it cancels the request.
    """

    def __init__(self, strategy: Strategy, fn: Callable[[Replica], T]) -> None:
        super().__init__()
        self._strategy = strategy
        self._fn = fn
        self._context = Context()
        self._loop = running_loop()
        self._queue = queue_of(self._loop)
        self._own: Optional[BaseException] = None
        self._value: Any = None
        self._token = 0
        self._work = 0  # it is not there, or has ended
        self._submitting = threading.RLock()
        self._notified = False  # that it was cancelled

    def _begin(self, strategy: int, options: SubmitOptions) -> None:
        queue = self._queue.handle
        self._hand_over(lambda token: submit_options(strategy, token, queue, **options))

    def _hand_over(self, submit: Callable[[int], int]) -> None:
        with self._submitting:  # it may end before its handle is here
            self._token = _calls.keep(self)
            try:
                self._work = submit(self._token)
            except BaseException:
                _calls.release(self._token)
                raise

    def on_replica(self, handle: int) -> int:
        """Called on the thread of the replica that is free."""
        replica = Replica._of(handle, self._strategy, values.Shared())
        current.replicas.append(replica)
        try:
            self._value = self._context.call(self._fn, replica)
            return 0
        except BaseException as error:
            self._own = error
            return _calls.tell(error)
        finally:
            replica._over = True
            current.replicas.pop()

    def _arrived(self, work: int) -> None:
        """It has ended."""
        report: Optional[BaseException] = None
        with self._submitting:
            try:
                _cdist.dist_request_wait(work, 0)
            except DistError as error:
                report = error
            _cdist.dist_request_destroy(work)
            _cdist.dist_request_destroy(self._work)
            self._work = 0
        _calls.release(self._token)
        with taken:
            taken.notify_all()
        own, self._own = self._own, None
        if report is not None and own is not None and not _calls.is_of_a_peer(own):
            report = own
        value, self._value = self._value, None
        try:
            if report is None:
                self.set_result(value)
            else:
                self.set_exception(report)
        except concurrent.futures.InvalidStateError:  # it was cancelled
            pass

    def _has_ended(self) -> bool:
        """Whether it has ended, and that has not arrived."""
        with self._submitting:
            if not self._work:
                return False
            try:
                return bool(_cdist.dist_request_test(self._work))
            except DistError:  # how it has failed
                return True

    def _takes_here(self) -> bool:
        """Whether a loop would take what has ended that cannot now."""
        return self._loop is not None and cannot_take(self._loop)

    def _settle(self, ended: bool = False) -> None:
        """Where it has ended, waits until that has arrived: nothing of it is left then. `ended`: libdist says that it has."""
        while self._work if ended else self._has_ended():
            if self._takes_here() or self._queue.taker == threading.get_ident():
                self._queue.take(0)
                continue
            with taken:
                if self._work:
                    taken.wait(SLICE)

    def cancel(self) -> bool:
        """Cancels the request: at once if it is queued; if its function runs, Replica.check() raises Cancelled.

        True: the request is cancelled, also if it was before. False: it has ended.
        """
        with self._submitting:
            if self._work:
                _cdist.dist_request_cancel(self._work)
        if not super().cancel():
            return False
        with self._submitting:
            notify, self._notified = not self._notified, True
        if notify:
            self.set_running_or_notify_cancel()
        return True

    def result(self, timeout: Optional[float] = None) -> T:
        """What the function returned, or raises what it raised; waits for it, at most `timeout` seconds."""
        return super().result(self._wait(timeout))

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What result() raises; None: it raises nothing."""
        return super().exception(self._wait(timeout))

    def _wait(self, timeout: Optional[float]) -> Optional[float]:
        """Waits where a loop would take what has ended that cannot now; what is left of the time."""
        if self._loop is None or self.done():
            return timeout
        end = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            left = SLICE if end is None else min(end - time.monotonic(), SLICE)
            if left <= 0:
                return 0
            if self._takes_here():
                self._queue.take(nanoseconds(left))
            else:
                concurrent.futures.wait([self], left)
        return 0

    def __await__(self) -> Generator[Any, None, T]:
        loop = asyncio.get_running_loop()
        if not self.done():
            waiter = loop.create_future()

            def ended() -> None:
                if not waiter.done():
                    waiter.set_result(None)

            def wake(_: Any) -> None:
                if running_loop() is loop:
                    ended()
                elif not loop.is_closed():
                    loop.call_soon_threadsafe(ended)

            self.add_done_callback(wake)
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        if self.cancelled():
            raise asyncio.CancelledError
        return super().result(0)


def requests_of(strategy: Strategy) -> list[Request[Any]]:
    """Those that have not ended."""
    targets = list(_calls._targets.values())
    return [each for each in targets if isinstance(each, Request) and each._strategy is strategy]


def settle_requests(strategy: Strategy) -> None:
    """Waits until those who wait for them have been told of all that have ended."""
    for request in requests_of(strategy):
        request._settle()


# ---- instances --------------------------------------------------------------------------------------------


class _State:
    def __init__(self, state: Any) -> None:
        self.state = state


class InstanceFunctions:
    """The functions of one Strategy.instances(), until the last state has ended."""

    def __init__(self) -> None:
        self.create: Any = None
        self.destroy: Any = None
        self.warm: Any = None
        self.context = Context()
        self.failures = _calls.Failures()
        self.token = _calls.keep(self)
        self._lock = threading.Lock()
        self._live = 0
        self._over = False

    def set(self, native: Any, create: Any, destroy: Any, warm_up: Any) -> None:
        """`create_state`, `destroy_state` and `warm_up` of the options."""
        self.create, self.destroy, self.warm = create, destroy, warm_up
        native.set_functions(self.token, int(create is not None), int(warm_up is not None))

    def end(self) -> None:
        """No state is made any more; those that are there may outlast this inside a function."""
        with self._lock:
            self._over = True
            self._forget_unused()

    def _forget_unused(self) -> None:
        if self._over and self._live == 0:
            _calls.release(self.token)

    def _call(self, handle: int, fn: Callable[[Replica], Any]) -> Any:
        from .strategy import strategy_of

        replica = Replica._of(handle, strategy_of(_cdist.dist_replica_strategy(handle)), values.Shared())
        current.replicas.append(replica)
        try:
            return self.context.call(fn, replica)
        except BaseException as error:
            return -self.failures.add(error, replica.id)
        finally:
            replica._over = True
            current.replicas.pop()

    def on_create_state(self, handle: int) -> int:
        def made(replica: Replica) -> int:
            state = self.create(replica)
            with self._lock:
                self._live += 1
            return _calls.keep(_State(state))

        return int(self._call(handle, made))

    def on_destroy_state(self, state: int) -> None:
        held = _calls.target_of(state).state
        _calls.release(state)
        try:
            if self.destroy is not None:
                self.context.call(self.destroy, held)
        except Exception:  # nobody is there to be told
            pass
        finally:
            with self._lock:
                self._live -= 1
                self._forget_unused()

    def on_warm_up(self, handle: int) -> int:
        def warmed(replica: Replica) -> int:
            self.warm(replica)
            return 0

        return -int(self._call(handle, warmed))


@checked
class Instances:
    """The replicas of a strategy, ready for requests until this is closed: Strategy.instances()."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        """Whose replicas they are."""

    def close(self, timeout: Wait = None) -> None:
        """Strategy.close_instances(); nothing where the strategy is closed."""
        if self.strategy._handle:
            self.strategy.close_instances(timeout)

    def __enter__(self) -> Instances:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked
class Serving:
    """The part of Strategy that serves requests."""

    _part_of = "Strategy"

    _instance_functions: Optional[InstanceFunctions] = None

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    def _cancel_quietly(self) -> None:
        raise NotImplementedError

    def submit(
        self: Any,
        fn: Callable[[Replica], T],
        **options: Unpack[SubmitOptions],
    ) -> Request[T]:
        """Schedules one call of fn(replica) on the next free replica and returns immediately: `await strategy.submit(fn)`.

        Requests and runs share one queue, which is ordered by priority, then by arrival. The first request opens the
        instances, like instances(). Raises ResourceExhausted if the queue is full (max_queued), and Unavailable if the
        instances are closing or closed.

        Inside fn the replica is alone: parallel_for() and run_on_devices() work, while collectives, groups and merge
        functions raise FailedPrecondition. fn runs in a copy of the context of the call to submit().
        """
        handle = self._native("Strategy.submit")
        request = Request(self, fn)
        request._begin(handle, options)
        return request

    def instances(self: Any, **options: Unpack[InstancesOptions]) -> Instances:
        """Opens the instances: each replica creates its state, warms up and is then ready: `with strategy.instances():`.

        Raises what create_state or warm_up raised, and FailedPrecondition with Threads.CALLER, the default. With
        Threads.HOST the instances are the threads that call serve(). If libdist replaces the thread of a batcher's step,
        all items of that instance end; those that had time left raise Unavailable.
        """
        handle = self._native("Strategy.instances")
        functions = InstanceFunctions()
        native = instances_options(functions, **options)
        try:
            with Watch(self._cancel_quietly):
                _calls.call(functions.failures, _cdist.dist_instances_open, handle, native)
        except BaseException:
            functions.end()
            raise
        self._end_instance_functions()
        self._instance_functions = functions
        return Instances(self)

    def _end_instance_functions(self) -> None:
        functions, self._instance_functions = self._instance_functions, None
        if functions is not None:
            functions.end()

    def close_instances(self: Any, timeout: Wait = None) -> None:
        """Ends the serving: submit() is Unavailable, what was accepted runs to its end, then each instance ends its state.

        Requests that have not ended after `timeout` seconds (0: at once; None, negative or inf: no limit) are cancelled,
        and so they are by Ctrl-C; DeadlineExceeded says how many. Afterwards instances() may open them again.
        """
        handle = self._native("Strategy.close_instances")
        patience = wait_limit(timeout)

        def interrupted() -> None:
            for request in requests_of(self):
                request.cancel()

        accepted = requests_of(self)
        try:
            with Watch(interrupted):
                _cdist.dist_instances_close(handle, patience)
        except BaseException:
            settle_requests(self)
            raise
        for request in accepted:
            request._settle(ended=True)

    def serve(self: Any, replica_id: int) -> None:
        """This thread serves as instance replica_id, of a strategy with Threads.HOST, until the instances close.

        Where none are open, it opens them. What create_state or warm_up raised is raised here. Ctrl-C closes them.
        """
        handle = self._native("Strategy.serve")
        functions = self._instance_functions
        failures = functions.failures if functions is not None else _calls.Failures()

        def interrupted() -> None:
            try:
                _cdist.dist_instances_close(handle, 0)
            except DistError:  # requests were cancelled
                pass

        with Watch(interrupted):
            _calls.call(failures, _cdist.dist_serve, handle, replica_id)
