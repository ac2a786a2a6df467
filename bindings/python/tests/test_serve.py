# SPDX-License-Identifier: Apache-2.0
"""Requests: functions that run on one free replica each, for threads and for asyncio."""

import asyncio
import concurrent.futures
import gc
import threading
import unittest

import libdist
from libdist import (
    Cancel,
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Strategy,
    Threads,
    Unavailable,
)
from libdist import _calls


class Served(unittest.TestCase):
    def strategy(self, replicas=2, threads=Threads.LIBRARY, **options):
        strategy = Strategy(replicas, threads=threads, **options)
        self.addCleanup(strategy.close)
        return strategy

    def occupied(self):
        """A strategy whose only instance is inside a function until the event is set."""
        strategy, inside, over = self.strategy(1), threading.Event(), threading.Event()

        def hold(replica):
            inside.set()
            over.wait()

        held = strategy.submit(hold)
        self.addCleanup(lambda: (over.set(), held.result()))
        inside.wait()
        return strategy, over


class Requests(Served):
    def test_a_function_runs_on_one_replica(self):
        strategy, calls, sums = self.strategy(), [], []

        def answer(replica):
            calls.append(replica.id)
            replica.parallel_for(0, 100, 10, lambda begin, end: sums.append(end - begin))
            with self.assertRaisesRegex(FailedPrecondition, "barrier"):
                replica.barrier()
            self.assertIs(replica.strategy, strategy)
            self.assertIsNone(replica.instance_state)
            replica.check()
            return "answer"

        request = strategy.submit(answer, priority=libdist.PRIORITY_MAX)
        self.assertEqual(request.result(), "answer")
        self.assertTrue(request.done())
        self.assertIsNone(request.exception())
        self.assertEqual((len(calls), sum(sums)), (1, 100))
        self.assertFalse(request.cancel())
        self.assertEqual(strategy.run(lambda replica: replica.id), [0, 1])  # they share the replicas

    def test_what_it_raises_is_the_requests(self):
        strategy, boom = self.strategy(), KeyError("boom")

        def fail(replica):
            raise boom

        def missing(replica):
            raise NotFound("no row 7")

        failing, other = strategy.submit(fail), strategy.submit(missing)
        self.assertIs(failing.exception(), boom)
        with self.assertRaisesRegex(NotFound, "no row 7"):
            other.result()
        self.assertEqual(strategy.submit(lambda replica: 1).result(), 1)

    def test_misuse(self):
        with Strategy(2) as caller:
            with self.assertRaisesRegex(FailedPrecondition, "Threads.LIBRARY"):
                caller.submit(lambda replica: None)
        strategy = self.strategy()
        for priority in (libdist.PRIORITY_MIN - 1, libdist.PRIORITY_MAX + 1):
            with self.assertRaises(InvalidArgument):
                strategy.submit(lambda replica: None, priority=priority)
        with self.assertRaises(OverflowError):
            strategy.submit(lambda replica: None, priority=1 << 40)
        for wrong in (None, 3):
            with self.assertRaises(TypeError):
                strategy.submit(wrong)
        with self.assertRaises(TypeError):
            strategy.submit(lambda replica: None, cancel=3)
        with self.assertRaises(InvalidArgument):
            strategy.instances(max_queued=-1)
        with self.assertRaises(FailedPrecondition):
            strategy.serve(0)
        kept = strategy.submit(lambda replica: replica).result()
        for ask in (kept.check, lambda: kept.instance_state):
            with self.assertRaises(FailedPrecondition):
                ask()
        tokens = len(_calls._targets)
        with self.assertRaises(InvalidArgument):
            strategy.submit(lambda replica: None, priority=99)
        self.assertEqual(len(_calls._targets), tokens)
        strategy.close()
        with self.assertRaises(FailedPrecondition):
            strategy.submit(lambda replica: None)

    def test_queued_requests_end_at_once(self):
        strategy, over = self.occupied()
        calls = []
        queued = strategy.submit(calls.append)
        with self.assertRaises(concurrent.futures.TimeoutError):
            queued.result(0)
        self.assertTrue(queued.cancel())
        self.assertTrue(queued.cancelled())
        with self.assertRaises(concurrent.futures.CancelledError):
            queued.result()
        self.assertEqual(concurrent.futures.wait([queued]).done, {queued})
        self.assertIsInstance(strategy.submit(calls.append, timeout=1e-6).exception(), DeadlineExceeded)
        with Cancel() as stop:
            stopped = strategy.submit(calls.append, cancel=stop)
            stop.signal("the client is gone")
            with self.assertRaisesRegex(Cancelled, "the client is gone"):
                stopped.result()
            with self.assertRaises(Cancelled):
                strategy.submit(calls.append, cancel=stop)
        with self.assertRaisesRegex(FailedPrecondition, "request"):
            strategy.close()
        over.set()
        self.assertEqual(calls, [])

    def test_running_requests_are_told(self):
        strategy, inside, told = self.strategy(), threading.Event(), []

        def run(replica):
            inside.set()
            try:
                while True:
                    replica.check()
            except Cancelled as error:
                told.append(error)
                raise

        request = strategy.submit(run)
        inside.wait()
        self.assertTrue(request.cancel())
        strategy.close_instances()
        self.assertEqual(len(told), 1)
        with self.assertRaises(Unavailable):
            strategy.submit(run)

    def test_a_second_cancel_changes_nothing(self):
        strategy, over = self.occupied()
        queued, ended, awaited = (strategy.submit(lambda replica: replica.id) for _ in range(3))
        told = []
        queued.add_done_callback(told.append)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(queued.cancel())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [True] * 8)
        self.assertEqual(told, [queued])

        async def main():
            task = asyncio.ensure_future(asyncio.wait_for(asyncio.shield(asyncio.wrap_future(awaited)), None))
            await asyncio.sleep(0)
            self.assertTrue(awaited.cancel())
            task.cancel()
            self.assertTrue(awaited.cancel())
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        over.set()
        self.assertEqual(ended.result(), 0)
        self.assertEqual([ended.cancel(), ended.cancel(), queued.cancel()], [False, False, True])

    def test_thousands(self):
        n, (strategy, over) = 2000, self.occupied()
        over.set()
        strategy.close_instances()
        with strategy.instances(max_queued=n):
            inside, over, threads = threading.Event(), threading.Event(), threading.active_count()
            held = strategy.submit(lambda replica: (inside.set(), over.wait()))
            inside.wait()
            requests = [strategy.submit(lambda replica, i=i: i) for i in range(n)]
            with self.assertRaisesRegex(ResourceExhausted, "max_queued"):
                strategy.submit(lambda replica: None)
            self.assertLessEqual(threading.active_count(), threads + 2)
            over.set()
            held.result()
            self.assertEqual([request.result() for request in requests], list(range(n)))
            self.assertEqual({r.result() for r in concurrent.futures.as_completed(requests)}, set(range(n)))

    def test_states(self):
        strategy, ended, warm = self.strategy(), [], []

        class Engine:
            def __init__(self, replica):
                self.id, self.answers = replica.id, 0

        tokens = len(_calls._targets)

        def warm_up(replica):
            warm.append(replica.instance_state.id == replica.id)

        def answer(replica):
            replica.instance_state.answers += 1  # on its instance's thread alone
            return replica.instance_state.id == replica.id

        with strategy.instances(
            create_state=Engine, destroy_state=lambda state: ended.append((state.id, strategy.num_replicas)), warm_up=warm_up
        ) as instances:
            self.assertEqual(warm, [True, True])
            self.assertIs(instances.strategy, strategy)
            with self.assertRaises(FailedPrecondition):
                strategy.instances()
            self.assertEqual([strategy.submit(answer).result() for _ in range(20)], [True] * 20)
        self.assertEqual(sorted(ended), [(0, 2), (1, 2)])
        boom = ValueError("boom")

        def second_fails(replica):
            if replica.id == 1:
                raise boom

        for functions in ({"warm_up": second_fails}, {"create_state": second_fails}):
            with self.assertRaises(ValueError) as raised:
                strategy.instances(**functions)
            self.assertIs(raised.exception, boom)
        # The strategy's end is theirs.
        ended.clear()
        strategy.instances(create_state=Engine, destroy_state=lambda state: ended.append(state.id))
        strategy.close()
        self.assertEqual(sorted(ended), [0, 1])
        self.assertEqual(len(_calls._targets), tokens)

    def test_an_end_cancels(self):
        strategy, inside = self.strategy(1), threading.Event()

        def run(replica):
            inside.set()
            while True:
                replica.check()

        running = strategy.submit(run)
        inside.wait()
        queued = strategy.submit(lambda replica: None)
        with self.assertRaisesRegex(DeadlineExceeded, "2 requests"):
            strategy.close_instances(0)
        for request in (running, queued):
            self.assertIsInstance(request.exception(), Cancelled)

    def test_a_shutdown_cancels(self):
        strategy, inside, release = Strategy(1, threads=Threads.LIBRARY), threading.Event(), threading.Event()
        ended = threading.Event()
        strategy.instances(create_state=lambda replica: 1, destroy_state=lambda state: ended.set())
        running = strategy.submit(lambda replica: (inside.set(), release.wait(), replica.check()))
        inside.wait()
        queued = strategy.submit(lambda replica: None)
        with self.assertRaises(DeadlineExceeded):
            strategy.shutdown(0)
        self.assertIsInstance(queued.exception(), Cancelled)
        release.set()
        self.assertIsInstance(running.exception(), Cancelled)
        ended.wait()

    def test_threads_of_the_program_serve(self):
        strategy, boom, ready, failed = self.strategy(threads=Threads.HOST), ValueError("boom"), [], []
        warm = threading.Semaphore(0)

        def fail(replica):
            raise boom

        strategy.instances(create_state=fail)
        with self.assertRaises(ValueError) as raised:
            strategy.serve(0)
        self.assertIs(raised.exception, boom)
        strategy.close_instances()
        strategy.instances(helper_threads=True, warm_up=lambda replica: (ready.append(replica.id), warm.release()))
        with self.assertRaises(InvalidArgument):
            strategy.serve(2)

        def serve(replica_id):
            try:
                strategy.serve(replica_id)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=serve, args=[i]) for i in range(2)]
        for thread in threads:
            thread.start()
        for _ in threads:
            warm.acquire()
        with self.assertRaises(FailedPrecondition):
            strategy.serve(1)
        requests = [strategy.submit(lambda replica: threading.get_ident()) for _ in range(50)]
        self.assertLessEqual({request.result() for request in requests}, {thread.ident for thread in threads})
        strategy.close_instances()
        for thread in threads:
            thread.join()
        self.assertEqual((failed, sorted(ready)), ([], [0, 1]))


class Loops(Served):
    def test_a_request_is_awaited(self):
        strategy, boom = self.strategy(), KeyError("boom")

        def fail(replica):
            raise boom

        async def answers():
            self.assertEqual(await strategy.submit(lambda replica: 7), 7)
            with self.assertRaises(KeyError) as raised:
                await strategy.submit(fail)
            self.assertIs(raised.exception, boom)
            request = strategy.submit(lambda replica: 8)
            self.assertEqual((await request, await request), (8, 8))
            return await asyncio.gather(*(strategy.submit(lambda replica, i=i: i) for i in range(1000)))

        threads = threading.active_count()
        for _ in range(2):  # each with a loop of its own
            self.assertEqual(asyncio.run(answers()), list(range(1000)))
        gc.collect()
        self.assertLessEqual(threading.active_count(), threads + 2)  # the replicas

    def test_a_loop_does_not_wait(self):
        strategy, over = self.occupied()
        calls = []

        async def go_on():
            request = strategy.submit(lambda replica: "late")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(request, 0.001)
            self.assertTrue(request.cancelled())
            task = asyncio.ensure_future(strategy.submit(calls.append))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            request = strategy.submit(calls.append)
            request.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await request
            with self.assertRaises(DeadlineExceeded):
                await strategy.submit(calls.append, timeout=1e-6)
            over.set()
            return await strategy.submit(lambda replica: "free")

        self.assertEqual(asyncio.run(go_on()), "free")
        self.assertEqual(calls, [])

    def test_threads_and_loops(self):
        strategy = self.strategy()

        async def both():
            loop = asyncio.get_running_loop()
            # Of a thread, awaited here; of here, awaited by a thread; and the loop's own thread that waits.
            request = await loop.run_in_executor(None, lambda: strategy.submit(lambda replica: 1))
            mine = strategy.submit(lambda replica: 2)
            seen = [await request, await loop.run_in_executor(None, mine.result)]
            return [*seen, strategy.submit(lambda replica: 3).result()]

        self.assertEqual(asyncio.run(both()), [1, 2, 3])

    def test_a_loop_that_ends_first(self):
        strategy, over = self.occupied()

        async def leave():
            return strategy.submit(lambda replica: 5)

        request = asyncio.run(leave())
        over.set()
        self.assertEqual(request.result(), 5)


if __name__ == "__main__":
    unittest.main()
