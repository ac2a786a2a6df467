# SPDX-License-Identifier: Apache-2.0
"""Batches: requests that an instance answers together, step by step."""

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
    """An item's state, or a result, as libdist has its token."""

    __slots__ = ("object",)

    def __init__(self, given: Any) -> None:
        self.object = given


@checked
class Item(Request[None]):
    """A request in a Batcher: as a Request, and what it gives step by step: take(), or `async for result in item`."""

    def __init__(self, strategy: Strategy, batcher: Batcher, user_data: Any) -> None:
        super().__init__(strategy, _no_function)
        self.batcher = batcher
        """Whose it is."""
        self.user_data = user_data
        """What Batcher.submit() got."""
        self._ends = False  # by Batch.end()
        self._left: list[Any] = []  # results that nobody had taken at its end
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
        else:  # results, or that it has come once more after its end
            _cdist.dist_request_destroy(work)
            with taken:
                taken.notify_all()
        more, self._more = self._more, []
        for wake in more:
            wake()

    def _take(self) -> tuple[bool, Any]:
        """Whether there is a result, and which."""
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
        """What it gives, until its end; then raises how it failed. It waits: `async for result in item` does not."""
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

            self._more.append(wake)  # before the look
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
    """An item is in the steps of its batcher."""


@checked
class Batch(Returned):
    """A step, inside its function: items 0 .. len(batch) - 1."""

    def _init(self, handle: int) -> None:
        self._handle = handle

    def _item(self, i: int) -> Item:
        if not self._handle:
            raise FailedPrecondition("the step is over")
        if not 0 <= i < len(self):
            raise InvalidArgument(f"the step has no item {i}: it has {len(self)}")
        item: Optional[Item] = _calls.known(_cdist.dist_batch_user_data(self._handle, i))
        if item is None:  # whatever it does, the step was stuck
            raise Cancelled("the items of this step have already completed, because its function did not return in time, and the replica has a new thread")
        return item

    def __len__(self) -> int:
        return int(_cdist.dist_batch_size(self._handle))

    @property
    def bucket(self) -> int:
        """The items' bucket: none of them has a greater length. 0: there are no buckets."""
        return int(_cdist.dist_batch_bucket(self._handle))

    def user_data(self, i: int) -> Any:
        """What Batcher.submit() got for item i."""
        return self._item(i).user_data

    def state(self, i: int) -> Any:
        """What a step has set for item i; None: nothing yet."""
        self._item(i)
        token = _cdist.dist_batch_state(self._handle, i)
        return _calls.target_of(token).object if token else None

    def set_state(self, i: int, state: Any) -> None:
        """Keeps a state with item i, until it ends."""
        self._item(i)
        before = _cdist.dist_batch_state(self._handle, i)
        _cdist.dist_batch_set_state(self._handle, i, _calls.keep(_Object(state)))
        _calls.release(before)

    def check(self, i: int) -> None:
        """Raises where nobody waits for item i any more."""
        self._item(i)
        _cdist.dist_batch_check(self._handle, i)

    def emit(self, i: int, result: Any) -> None:
        """Gives a partial result of item i. ResourceExhausted: max_results of it have not been taken.

        A step that emits one result for each item never sees that.
        """
        self._item(i)
        token = _calls.keep(_Object(result))
        try:
            _cdist.dist_batch_emit(self._handle, i, token)
        except BaseException:
            _calls.release(token)
            raise

    def end(self, i: int, error: Optional[BaseException] = None) -> None:
        """Item i ends after this step: well, or with an error, which its result() raises."""
        item = self._item(i)
        item._ends, item._own = True, error
        _cdist.dist_batch_end(self._handle, i, 0 if error is None else _calls.tell(error))


StepFn = Callable[[Replica, Batch], Any]
"""step(replica, batch): one step, on one instance; what it raises ends all items that Batch.end() has not ended."""


class _Steps:
    """What a batcher's token stands for."""

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
    """Who waits for steps, and who is in them: Strategy.batcher().

    Where a step is stuck (Strategy.instances()), all items of its instance end: with Unavailable where they were not to.
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
        """How many items wait, and how many are on instances."""
        waiting, active = _cdist.dist_batcher_count(self._native("Batcher.count"))
        return int(waiting), int(active)

    def close(self) -> None:
        """Ends a batcher that has no items: FailedPrecondition while items have not ended. Before the strategy."""
        if not self._handle:
            return
        patience = time.monotonic() + 30.0
        while True:
            try:
                _cdist.dist_batcher_destroy(self._handle)
                break
            except DistError:
                # Where all items have ended, what of them has still to arrive, an end or results, is over in a moment.
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
    """The part of Strategy that makes batchers."""

    _part_of = "Strategy"

    def batcher(self: Any, step: StepFn, **options: Unpack[BatcherOptions]) -> Batcher:
        """Creates a batcher, whose steps run on the strategy's instances. It opens the instances if they are not open.

        step: a function step(replica, batch) that answers the batch's items. An item with max_results untaken results
        is in no step.
        """
        native = batcher_options(**options)
        native.set_tokens()
        return Batcher(self, step, native)
