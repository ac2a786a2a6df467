# SPDX-License-Identifier: Apache-2.0
"""Log lines in Python's logging, and metrics in a registry of prometheus_client."""

import importlib.util
import logging
import threading
import unittest

import numpy as np

from libdist import DeadlineExceeded, LogLevel, ReduceOp, Strategy, Threads


def leave_a_function(log):
    """A request that does not end in time: libdist replaces its thread, and logs that."""
    over = threading.Event()
    strategy = Strategy(1, threads=Threads.LIBRARY, log=log)
    with strategy, strategy.instances(stuck=0.01):
        request = strategy.submit(lambda replica: over.wait(60), timeout=0.01)
        try:
            request.result(timeout=60)
        except DeadlineExceeded:
            return True
        finally:
            over.set()
    return False


class Logs(unittest.TestCase):
    def test_a_logger(self):
        with self.assertLogs("app.libdist", logging.INFO) as seen:
            self.assertTrue(leave_a_function(logging.getLogger("app.libdist")))
        self.assertIn(logging.WARNING, {record.levelno for record in seen.records})
        self.assertIn("a function has not returned on replica 0", " ".join(record.getMessage() for record in seen.records))

    def test_a_function(self):
        lines = []
        self.assertTrue(leave_a_function(lambda level, line: lines.append((level, line))))
        self.assertIn(LogLevel.WARNING, {level for level, _ in lines})
        self.assertTrue(all(isinstance(line, str) for _, line in lines))


@unittest.skipIf(importlib.util.find_spec("prometheus_client") is None, "prometheus_client is not installed")
class Metrics(unittest.TestCase):
    def test_strategies_of_one_registry(self):
        import prometheus_client

        def step(replica):
            replica.all_reduce(ReduceOp.SUM, np.ones(2))

        def page():
            return prometheus_client.generate_latest(registry).decode()

        registry = prometheus_client.CollectorRegistry()
        with Strategy(2) as one:
            with Strategy(3) as other:
                one.register_metrics(registry, "one")
                other.register_metrics(registry, "other")
                other.register_metrics(registry, "another")  # the last name counts
                one.run(step)
                lines = page().splitlines()
                self.assertIn('dist_runs_total{replica="1",strategy="one"} 1.0', lines)
                self.assertIn('dist_runs_total{replica="2",strategy="another"} 0.0', lines)
                self.assertIn('strategy="another"', page())
                self.assertNotIn('strategy="other"', page())
                types = [line for line in lines if line.startswith("# TYPE")]
                self.assertEqual(len(types), len(set(types)))
            self.assertNotIn("another", page())
        self.assertEqual(page(), "")

    def test_the_default_registry(self):
        import prometheus_client

        with Strategy(1) as strategy:
            strategy.register_metrics()
            self.assertIn("dist_", prometheus_client.generate_latest().decode())
        self.assertNotIn("dist_", prometheus_client.generate_latest().decode())


class Registries(unittest.TestCase):
    def test_what_is_no_registry(self):
        with Strategy(1) as strategy:
            with self.assertRaisesRegex(TypeError, "registry is 3, but must be a prometheus_client.CollectorRegistry"):
                strategy.register_metrics(3)


if __name__ == "__main__":
    unittest.main()
