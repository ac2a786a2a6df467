# SPDX-License-Identifier: Apache-2.0
"""Batches: requests that an instance answers together, step by step."""

import asyncio
import unittest

from libdist import Cancelled, FailedPrecondition, InvalidArgument, Strategy, Threads, _calls


def decode(replica, batch):
    """Each item gives as many tokens as its user data says."""
    for i in range(len(batch)):
        left = batch.state(i)
        left = batch.user_data(i) - 1 if left is None else left - 1
        batch.set_state(i, left)
        batch.emit(i, f"token {left}")
        if left == 0:
            batch.end(i)


def tokens(n):
    return [f"token {left}" for left in reversed(range(n))]


class Batches(unittest.TestCase):
    def strategy(self, replicas=2):
        strategy = Strategy(replicas, threads=Threads.LIBRARY)
        self.addCleanup(strategy.close)
        return strategy

    def test_items_are_answered_together(self):
        strategy, steps = self.strategy(), []

        def step(replica, batch):
            self.assertIn(batch.bucket, (8, 64))
            self.assertIs(replica.strategy, strategy)
            for i in range(len(batch)):
                batch.check(i)
                batch.user_data(i).append(replica.id)
                self.assertIsNone(batch.state(i))
            for i in (-1, len(batch)):
                with self.assertRaises(InvalidArgument):
                    batch.check(i)
            steps.append((len(batch), batch))

        with strategy.batcher(step, max_items=4, buckets=[8, 64]) as batcher:
            answers = [[] for _ in range(100)]
            items = [batcher.submit(answer, length=i % 65) for i, answer in enumerate(answers)]
            self.assertEqual([item.result() for item in items], [None] * 100)
            self.assertEqual({len(answer) for answer in answers}, {1})
            self.assertIs(items[7].user_data, answers[7])
            self.assertEqual(list(items[7].results()), [])
            self.assertEqual(sum(n for n, _ in steps), 100)
            self.assertLessEqual(max(n for n, _ in steps), 4)
            with self.assertRaises(FailedPrecondition):
                steps[0][1].user_data(0)
            self.assertEqual(batcher.count, (0, 0))
            with self.assertRaises(InvalidArgument):
                batcher.submit(length=65)
        with self.assertRaises(FailedPrecondition):
            batcher.submit()
        with self.assertRaises(TypeError):
            strategy.batcher(3)
        with self.assertRaises(InvalidArgument):
            strategy.batcher(step, buckets=[2, 1])

    def test_what_items_fail_with(self):
        strategy, boom, mine = self.strategy(), KeyError("boom"), ValueError("mine")

        def step(replica, batch):
            for i in range(len(batch)):
                if batch.user_data(i) == "well":
                    batch.end(i)
                elif batch.user_data(i) == "mine":
                    batch.end(i, mine)
            raise boom

        with strategy.batcher(step) as batcher:
            items = [batcher.submit(data) for data in ("well", "mine", "none")]
            self.assertEqual([item.exception() for item in items], [None, mine, boom])

    def test_items_stay_and_give_results(self):
        strategy, before = self.strategy(), len(_calls._targets)
        batcher = strategy.batcher(decode, continuous=True, max_results=2)
        lengths = (3, 1, 50, 7)
        items = [batcher.submit(n) for n in lengths]
        self.assertEqual([list(item.results()) for item in items], [tokens(n) for n in lengths])
        slow = batcher.submit(1000, timeout=3600)  # nobody takes: it stays
        self.assertEqual(next(slow.results()), "token 999")
        with self.assertRaises(FailedPrecondition):
            batcher.close()
        slow.cancel()
        strategy.close_instances()
        batcher.close()
        strategy.close()
        self.assertEqual(len(_calls._targets), before)

    def test_a_loop_takes_results(self):
        strategy = self.strategy()

        async def answer(batcher, n):
            return [token async for token in batcher.submit(n)]

        async def main():
            with strategy.batcher(decode, continuous=True, max_results=2) as batcher:
                return await asyncio.gather(*(answer(batcher, n) for n in range(1, 20)))

        self.assertEqual(asyncio.run(main()), [tokens(n) for n in range(1, 20)])

    def test_what_ends_in_a_busy_loop_arrives(self):
        strategy = self.strategy(1)

        async def main():
            with strategy.batcher(decode, continuous=True, max_results=2) as batcher:
                item = batcher.submit(1000)
                async for _ in item:
                    break
                item.cancel()
                strategy.close_instances()
                self.assertTrue(item.cancelled())

        asyncio.run(main())

    def test_what_ends_while_its_loop_stands_still_arrives(self):
        strategy, loop = self.strategy(1), asyncio.new_event_loop()
        self.addCleanup(loop.close)

        async def submit(to, *given):
            return to.submit(*given)

        request = loop.run_until_complete(submit(strategy, lambda replica: replica.id))
        self.assertEqual(request.result(), 0)
        with strategy.batcher(decode, continuous=True, max_results=2) as batcher:
            item = loop.run_until_complete(submit(batcher, 2))
            self.assertEqual(list(item.results()), tokens(2))
            item = loop.run_until_complete(submit(batcher, 1000))
            self.assertEqual(next(item.results()), "token 999")
            item.cancel()
            strategy.close_instances()

    def test_a_closed_server_ends_items(self):
        strategy = self.strategy(1)
        batcher = strategy.batcher(decode, continuous=True, max_results=1)
        slow = batcher.submit(1000)
        with self.assertRaises(TimeoutError):
            strategy.close_instances(0)
        self.assertIsInstance(slow.exception(), Cancelled)
        batcher.close()


if __name__ == "__main__":
    unittest.main()
