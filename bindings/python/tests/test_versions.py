# SPDX-License-Identifier: Apache-2.0
"""Versions: what replicas read, replaced while they run."""

import gc
import threading
import time
import unittest

from libdist import DeadlineExceeded, FailedPrecondition, InvalidArgument, Strategy, Threads, Versions, _calls


class Model:
    def __init__(self, number):
        self.number = number
        self.ended = 0

    def end(self):
        self.ended += 1


class OfVersions(unittest.TestCase):
    def strategy(self, replicas=2, **options):
        strategy = Strategy(replicas, threads=Threads.LIBRARY, **options)
        self.addCleanup(strategy.close)
        return strategy

    def test_a_swap_under_load(self):
        strategy, before, rounds = self.strategy(), len(_calls._targets), 50
        models, everyone, requests = Versions(Model.end), [], []

        def same(replica):
            first, number = replica.version(models)
            time.sleep(0)
            again = replica.version(models)
            return again == (first, number) and first.number == number and first.ended == 0

        for number in range(1, rounds + 1):
            everyone.append(Model(number))
            self.assertEqual(models.publish(everyone[-1]), number)
            self.assertEqual(models.latest, number)
            requests += [strategy.submit(same, request_id=1000 + number) for _ in range(4)]
        models.wait(rounds)
        self.assertEqual([each.ended for each in everyone], [1] * (rounds - 1) + [0])
        self.assertTrue(all(request.result() for request in requests))
        strategy.close_instances()
        models.close()
        models.close()
        self.assertEqual([each.ended for each in everyone], [1] * rounds)
        strategy.close()
        self.assertEqual(len(_calls._targets), before)

    def test_a_version_stays_while_it_is_seen(self):
        ended, inside, release = [], threading.Event(), threading.Event()

        def end(text):
            ended.append(text)
            raise ValueError(text)

        def holding(replica):
            first = replica.version(texts)
            self.assertEqual(texts.publish("two"), 2)
            with self.assertRaises(FailedPrecondition):
                texts.wait(2)
            inside.set()
            release.wait()
            return first, replica.version(texts)

        strategy = self.strategy()
        with Versions(end) as texts:
            texts.publish("one")
            request = strategy.submit(holding)
            inside.wait()
            for timeout in (0, 0.001):
                with self.assertRaises(DeadlineExceeded):
                    texts.wait(2, timeout)
            self.assertEqual(ended, [])
            release.set()
            texts.wait(2, 3600)
            self.assertEqual(ended, ["one"])
            self.assertEqual(request.result(), (("one", 1), ("one", 1)))
        self.assertEqual(ended, ["one", "two"])

    def test_a_forgotten_series_ends(self):
        ended = []
        texts = Versions(ended.append)
        texts.publish("one")
        del texts
        gc.collect()
        self.assertEqual(ended, ["one"])

    def test_close_inside_a_release(self):
        ended = []

        def end(text):
            ended.append(text)
            texts.close()

        texts = Versions(end)
        texts.publish("one")
        self.assertEqual(texts.publish("two"), 2)
        self.assertEqual(ended, ["one", "two"])
        with self.assertRaises(FailedPrecondition):
            texts.publish("three")

    def test_misuse(self):
        numbers, strategy, kept = Versions(), self.strategy(), []

        def refused(replica):
            with self.assertRaises(FailedPrecondition):
                replica.version(numbers)

        def seen(replica):
            kept.append(replica)
            return replica.version(numbers)

        self.assertEqual(numbers.latest, 0)
        with self.assertRaises(InvalidArgument):
            numbers.wait(1)
        strategy.run(refused)
        numbers.publish(None)
        self.assertEqual(strategy.run(seen), [(None, 1)] * 2)
        with self.assertRaises(FailedPrecondition):
            kept[0].version(numbers)
        numbers.close()
        strategy.run(refused)
        for call in (lambda: numbers.publish(1), lambda: numbers.latest, lambda: numbers.wait(1)):
            with self.assertRaisesRegex(FailedPrecondition, "closed"):
                call()
        with self.assertRaises(TypeError):
            Versions(3)

    def test_new_options(self):
        with self.assertRaises(InvalidArgument):
            self.strategy(cpus=[-1])
        with self.assertRaises(InvalidArgument):
            self.strategy().instances(stuck=-1)
        with self.strategy().instances(stuck=60, max_replaced=1):
            pass


if __name__ == "__main__":
    unittest.main()
