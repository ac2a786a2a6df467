# SPDX-License-Identifier: Apache-2.0
"""Batches: requests that an instance processes together, step by step."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterator, Optional

from . import _calls, _cdist, values
from ._arguments import checked, nanoseconds
from ._arrivals import running_loop, take_here, taken
from ._context import Context
from ._native import Native, Returned
from ._option_fields import BatcherOptions, ItemOptions, batcher_options, item_options
from ._runs import current
from .errors import Cancelled, DistError, FailedPrecondition, InvalidArgument
from .replica import Replica
from .serve import SLICE, Request

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy


class _Object:
    """An item's state or result; libdist has its token."""

    __slots__ = ("object",)

    def __init__(self, given: Any) -> None:
        self.object = given


@checked
class Item(Request[None]):
    """A request in a Batcher. In addition to its result, it has partial results, which steps emit.

    Take them with `async for result in item`, or on a thread with results(). The item itself has no result: result()
    returns None, or raises the item's error.
    """

    def __init__(self, strategy: Strategy, batcher: Batcher, user_data: Any) -> None:
        super().__init__(strategy, _no_function)
        self.batcher = batcher
        """The batcher to which the item was submitted."""
        self.user_data = user_data
        """The object that was passed to Batcher.submit()."""
        self._ends = False  # Batch.end() was called
        self._left: list[Any] = []  # results that had not been taken when the item completed
        self._more: list[Callable[[], None]] = []

    def _begin_item(self, batcher: int, options: ItemOptions) -> None:
        queue = self._queue.handle
        self._hand_over(lambda token: item_options(batcher, token, queue, **options))

    def _arrived(self, work: int) -> None:
        with self._submitting:
            over = self._has_ended()
            while over and (token := _cdist.dist_request_take(self._work, 0)):
                self._left.append(_calls.target_of(token).object)
                _calls.release(token)
        if over:
            super()._arrived(work)
        else:  # partial results, or another arrival after completion
            _cdist.dist_request_destroy(work)
            with taken:
                taken.notify_all()
        more, self._more = self._more, []
        for wake in more:
            wake()

    def _take(self) -> tuple[bool, Any]:
        """Returns whether there is a partial result, and the result."""
        with self._submitting:
            if self._work:
                token = _cdist.dist_request_take(self._work, 0)
                if not token:
                    return False, None
                result = _calls.target_of(token).object
                _calls.release(token)
                return True, result
            return (True, self._left.pop(0)) if self._left else (False, None)

    def results(self) -> Iterator[Any]:
        """Iterates over the partial results until the item has completed, then raises its error if it has failed.

        The iterator blocks. In a coroutine, use `async for result in item`.
        """
        while True:
            there, result = self._take()
            if there:
                yield result
            elif self.done():
                there, result = self._take()
                if not there:
                    break
                yield result
            elif self._takes_here():
                self._queue.take(nanoseconds(SLICE))
            else:
                with taken:
                    if not self.done():
                        taken.wait(SLICE)
        self.result()

    async def __aiter__(self) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        while True:
            waiter = loop.create_future()

            def ended(waiter: asyncio.Future[None] = waiter) -> None:
                if not waiter.done():
                    waiter.set_result(None)

            def wake(ended: Callable[[], None] = ended) -> None:
                if running_loop() is loop:
                    ended()
                elif not loop.is_closed():
                    loop.call_soon_threadsafe(ended)

            self._more.append(wake)  # before looking for a result, so that none is missed
            over = self.done()
            there, result = self._take()
            if there:
                yield result
            elif over:
                break
            else:
                await waiter
        await self


def _no_function(replica: Replica) -> None:
    """The function of an item, which is processed by the step function of its batcher instead."""


@checked
class Batch(Returned):
    """A step: the items 0 .. len(batch) - 1 that it processes. Valid only inside the step function."""

    def _init(self, handle: int) -> None:
        self._handle = handle

    def _item(self, i: int) -> Item:
        if not self._handle:
            raise FailedPrecondition("the step is over")
        if not 0 <= i < len(self):
            raise InvalidArgument(f"the step has no item {i}: it has {len(self)}")
        item: Optional[Item] = _calls.known(_cdist.dist_batch_user_data(self._handle, i))
        if item is None:  # the step was stuck, so its items have completed
            raise Cancelled("the items of this step have already completed, because its function did not return in time, and the replica has a new thread")
        return item

    def __len__(self) -> int:
        return int(_cdist.dist_batch_size(self._handle))

    @property
    def bucket(self) -> int:
        """The bucket of the items. No item has a greater length. 0 if there are no buckets."""
        return int(_cdist.dist_batch_bucket(self._handle))

    def user_data(self, i: int) -> Any:
        """Returns the object that was passed to Batcher.submit() for item i."""
        return self._item(i).user_data

    def state(self, i: int) -> Any:
        """Returns the state that a step has set for item i; None if none has been set."""
        self._item(i)
        token = _cdist.dist_batch_state(self._handle, i)
        return _calls.target_of(token).object if token else None

    def set_state(self, i: int, state: Any) -> None:
        """Stores a state with item i, until the item completes."""
        self._item(i)
        before = _cdist.dist_batch_state(self._handle, i)
        _cdist.dist_batch_set_state(self._handle, i, _calls.keep(_Object(state)))
        _calls.release(before)

    def check(self, i: int) -> None:
        """Checks whether item i is still wanted; raises Cancelled or DeadlineExceeded if it is not."""
        self._item(i)
        _cdist.dist_batch_check(self._handle, i)

    def emit(self, i: int, result: Any) -> None:
        """Emits a partial result of item i.

        Raises ResourceExhausted if max_results results of the item have not been taken. This cannot happen in a step
        that emits one result per item.
        """
        self._item(i)
        token = _calls.keep(_Object(result))
        try:
            _cdist.dist_batch_emit(self._handle, i, token)
        except BaseException:
            _calls.release(token)
            raise

    def end(self, i: int, error: Optional[BaseException] = None) -> None:
        """Completes item i after this step.

        error: the exception that the item's result() raises; None if the item has succeeded.
        """
        item = self._item(i)
        item._ends, item._own = True, error
        _cdist.dist_batch_end(self._handle, i, 0 if error is None else _calls.tell(error))


StepFn = Callable[[Replica, Batch], Any]
"""step(replica, batch) processes a step on one instance.

If it raises, all items of the step fail with the exception, except those for which Batch.end() was called.
"""


class _Steps:
    """The target of a batcher's token."""

    def __init__(self, strategy: Strategy, step: StepFn) -> None:
        self.strategy = strategy
        self.fn = step
        self.context = Context()

    def on_step(self, handle: int, batch: int) -> int:
        replica, members = Replica._of(handle, self.strategy, values.Shared()), Batch._of(batch)
        current.replicas.append(replica)
        try:
            self.context.call(self.fn, replica, members)
            return 0
        except BaseException as error:
            for i in range(len(members)):
                item = _calls.known(_cdist.dist_batch_user_data(batch, i))
                if item is not None and not item._ends:
                    item._own = error
            return _calls.tell(error)
        finally:
            members._handle = 0
            replica._over = True
            current.replicas.pop()


@checked
class Batcher(Native):
    """A queue of items and the steps that process them; Strategy.batcher() creates it.

        def step(replica, batch):
            for i in range(len(batch)):
                batch.emit(i, answer(batch.user_data(i)))

        with strategy.batcher(step, max_items=8) as batcher:
            item = batcher.submit("question")
            print(list(item.results()))

    If a step is stuck (option `stuck` of Strategy.instances()), all items of its instance complete. Those that were not
    due raise Unavailable.
    """

    def __init__(self, strategy: Strategy, step: StepFn, options: Any) -> None:
        self._handle = 0
        self._strategy = strategy
        self._token = _calls.keep(_Steps(strategy, step))
        try:
            self._handle = _cdist.dist_batcher_create(strategy._native("Strategy.batcher"), self._token, options)
        except BaseException:
            _calls.release(self._token)
            raise

    def submit(self, user_data: Any = None, **options: Unpack[ItemOptions]) -> Item:
        """Enqueues an item for a step and returns immediately: `await batcher.submit(question)`.

        user_data: any object; Batch.user_data() returns it.
        """
        item = Item(self._strategy, self, user_data)
        item._begin_item(self._native("Batcher.submit"), options)
        return item

    @property
    def count(self) -> tuple[int, int]:
        """The number of waiting items, and the number of items on instances."""
        waiting, active = _cdist.dist_batcher_count(self._native("Batcher.count"))
        return int(waiting), int(active)

    def close(self) -> None:
        """Closes a batcher without items; call this before closing the strategy.

        Raises FailedPrecondition if items have not completed.
        """
        if not self._handle:
            return
        patience = time.monotonic() + 30.0
        while True:
            try:
                _cdist.dist_batcher_destroy(self._handle)
                break
            except DistError:
                # All items have completed, but an arrival or a result is still being delivered, which takes a moment.
                if any(self.count) or time.monotonic() > patience:
                    raise
                if not take_here():
                    time.sleep(0.001)
        self._handle = 0
        _calls.release(self._token)

    def __enter__(self) -> Batcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _native(self, name: str) -> int:
        if not self._handle:
            raise FailedPrecondition(f"{name}(): the batcher is closed")
        return self._handle


@checked
class Batching:
    """The method of Strategy that creates batchers."""

    _part_of = "Strategy"

    def batcher(self: Any, step: StepFn, **options: Unpack[BatcherOptions]) -> Batcher:
        """Creates a batcher, whose steps run on the strategy's instances. It opens the instances if they are not open.

        step: a function step(replica, batch) that processes the batch's items. An item with max_results untaken results
        takes part in no step.
        """
        native = batcher_options(**options)
        native.set_tokens()
        return Batcher(self, step, native)
