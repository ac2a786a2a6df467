# SPDX-License-Identifier: Apache-2.0
"""Serving: functions that run on single replicas to answer requests."""

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

SLICE = 0.05  # seconds after which a thread that waits in C checks for signals and for a loop that has ended


# ---- requests ---------------------------------------------------------------------------------------------


@checked
class Request(Native, concurrent.futures.Future[T]):
    """A call to a function on one replica; Strategy.submit() creates it. It is a future that can also be awaited.

        request = strategy.submit(lambda replica: answer(question))
        print(request.result())  # on a thread; in a coroutine: await request

    result() and `await` return the function's result, or raise its exception or a DistError of libdist. Cancelling a
    task that awaits the request cancels the request.
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
        self._work = 0  # 0 before it is submitted and after it has completed
        self._submitting = threading.RLock()
        self._notified = False  # set_running_or_notify_cancel() has been called

    def _begin(self, strategy: int, options: SubmitOptions) -> None:
        queue = self._queue.handle
        self._hand_over(lambda token: submit_options(strategy, token, queue, **options))

    def _hand_over(self, submit: Callable[[int], int]) -> None:
        with self._submitting:  # because it may complete before self._work is set
            self._token = _calls.keep(self)
            try:
                self._work = submit(self._token)
            except BaseException:
                _calls.release(self._token)
                raise

    def on_replica(self, handle: int) -> int:
        """Called on the thread of the replica."""
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
        """Called when the request has completed."""
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
        except concurrent.futures.InvalidStateError:  # the future was cancelled
            pass

    def _has_ended(self) -> bool:
        """Returns whether the request has completed, but _arrived() has not been called."""
        with self._submitting:
            if not self._work:
                return False
            try:
                return bool(_cdist.dist_request_test(self._work))
            except DistError:  # the request's own error
                return True

    def _takes_here(self) -> bool:
        """Returns whether the loop that would take the completed request cannot do so now."""
        return self._loop is not None and cannot_take(self._loop)

    def _settle(self, ended: bool = False) -> None:
        """If the request has completed, waits until _arrived() has been called. ended: it is known to have completed.
        """
        while self._work if ended else self._has_ended():
            if self._takes_here() or self._queue.taker == threading.get_ident():
                self._queue.take(0)
                continue
            with taken:
                if self._work:
                    taken.wait(SLICE)

    def cancel(self) -> bool:
        """Cancels the request.

        If it is queued, it completes at once. If its function is running, Replica.check() raises Cancelled there.
        Returns True if the request is cancelled, even if it was before; False if it has completed.
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
        """Waits until the function has returned, and returns its result or raises its exception.

        timeout: seconds; None = no limit. If it expires, raises TimeoutError, and the request continues.
        """
        return super().result(self._wait(timeout))

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """Waits like result(), and returns the exception that result() would raise, or None."""
        return super().exception(self._wait(timeout))

    def _wait(self, timeout: Optional[float]) -> Optional[float]:
        """Waits, and takes the completed request itself if the loop cannot. Returns the time that is left."""
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
    """Returns the requests of a strategy that have not completed."""
    targets = list(_calls._targets.values())
    return [each for each in targets if isinstance(each, Request) and each._strategy is strategy]


def settle_requests(strategy: Strategy) -> None:
    """Waits until _arrived() has been called for all completed requests of a strategy."""
    for request in requests_of(strategy):
        request._settle()


# ---- instances --------------------------------------------------------------------------------------------


class _State:
    def __init__(self, state: Any) -> None:
        self.state = state


class InstanceFunctions:
    """The functions of one call of Strategy.instances(), kept until the last state has been destroyed."""

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
        """Sets `create_state`, `destroy_state` and `warm_up` of the options."""
        self.create, self.destroy, self.warm = create, destroy, warm_up
        native.set_functions(self.token, int(create is not None), int(warm_up is not None))

    def end(self) -> None:
        """Call this when no more states are created. Existing ones may still be used by a function."""
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
        except Exception:  # no caller could receive it
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
    """The open instances of a strategy; Strategy.instances() returns it. Use it as a context manager to close them."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        """The strategy to which the instances belong."""

    def close(self, timeout: Wait = None) -> None:
        """Closes the instances like Strategy.close_instances(). Does nothing if the strategy is closed."""
        if self.strategy._handle:
            self.strategy.close_instances(timeout)

    def __enter__(self) -> Instances:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked
class Serving:
    """The methods of Strategy that serve requests."""

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
        """Schedules one call of fn(replica) on the next idle replica and returns at once: `await strategy.submit(fn)`.

        Requests and runs share one queue, which is ordered by priority, then by arrival. The first request opens the
        instances, like instances(). Raises ResourceExhausted if the queue is full (max_queued), and Unavailable if the
        instances are closing or closed.

        Inside fn the replica works alone: parallel_for() and run_on_devices() work, while collectives, groups and merge
        calls raise FailedPrecondition. fn runs in a copy of the context of the call to submit().
        """
        handle = self._native("Strategy.submit")
        request = Request(self, fn)
        request._begin(handle, options)
        return request

    def instances(self: Any, **options: Unpack[InstancesOptions]) -> Instances:
        """Opens the instances: each replica creates its state and warms up: `with strategy.instances():`.

        Raises what create_state or warm_up raised, and FailedPrecondition with Threads.CALLER, the default. With
        Threads.HOST the instances are the threads that call serve(). If libdist replaces the thread of a batcher's
        step, all items of that instance complete; those that had time left raise Unavailable.
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
        """Stops serving: accepted requests run to completion, then each instance destroys its state.

        New calls to submit() raise Unavailable.

        timeout: seconds until libdist cancels the remaining requests; 0 = at once; None, negative or infinite = no
        limit. If it cancels any, raises DeadlineExceeded, which states how many. Ctrl-C cancels them too.

        The instances can be opened again afterwards.
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
        """Makes this thread instance `replica_id` of a strategy with Threads.HOST, until the instances close.

        It opens the instances if they are not open. Raises what create_state or warm_up raised. Ctrl-C closes the
        instances.
        """
        handle = self._native("Strategy.serve")
        functions = self._instance_functions
        failures = functions.failures if functions is not None else _calls.Failures()

        def interrupted() -> None:
            try:
                _cdist.dist_instances_close(handle, 0)
            except DistError:  # raised if requests were cancelled
                pass

        with Watch(interrupted):
            _calls.call(failures, _cdist.dist_serve, handle, replica_id)
