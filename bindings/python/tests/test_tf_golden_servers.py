# SPDX-License-Identifier: Apache-2.0
"""libdist.tf's parameter servers beside TensorFlow's recorded answers: tests/golden/cases/parameter_server.json."""

import json
import pathlib
import unittest

import numpy as np
from servers_together import TfCluster, assert_equal

import libdist
import libdist.tf as tf

CASES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "cases" / "parameter_server.json"
Partitioners = tf.distribute.experimental.partitioners


def attempt(call):
    """What a call gives, as the recordings have it."""
    try:
        return {"value": call()}
    except libdist.DistError as error:
        return {"error": error}


class Recorded(unittest.TestCase):
    """One call for each of the recordings' cases, in their order."""

    def setUp(self):
        if not CASES.exists():
            self.skipTest("the recordings are in libdist's source tree")
        self.played = 0

    def test_cases(self):
        sections = {}
        for case in json.loads(CASES.read_text())["cases"]:
            section, _, name = case["id"].partition("/")
            sections.setdefault(section, []).append((name, case))
        for cases in sections.values():
            recorded = cases[0][1]["strategy"]
            self.begin(recorded["num_ps"], recorded["num_workers"])
            for name, case in cases:
                with self.subTest(case["id"]):
                    getattr(self, "case_" + name.partition("/")[0])(case)
                    self.played += 1
            self.strategy.close()
            self.cluster.close()
        self.assertEqual(self.played, 52)

    def begin(self, num_ps, num_workers):
        self.num_ps = num_ps
        self.cluster = TfCluster(num_ps, num_workers)
        self.strategy = tf.distribute.ParameterServerStrategy(
            self.cluster.resolver, variable_partitioner=Partitioners.FixedShardsPartitioner(num_ps + 1)
        )
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)
        self.cluster.wait_for_workers(self.coordinator, num_workers)

    def variable(self, value):
        with self.strategy.scope():
            return tf.Variable(value)

    def same(self, given, recorded):
        """A tensor and a recorded one."""
        self.assertEqual(list(given.shape), recorded["shape"])
        self.assertEqual(given.dtype, np.dtype(recorded["dtype"]))
        self.assertEqual(np.asarray(given).reshape(-1).tolist(), recorded["data"])

    def words(self, error, case):
        """An exception's text, of which the recordings have the beginning."""
        whole, (beginning, is_cut, _) = str(error), case["error"]["message"].partition("...[cut]")
        self.assertTrue(whole.startswith(beginning) if is_cut else whole == beginning, whole)

    def answers(self, given, expected):
        """What attempt() gave, and what was recorded."""
        self.assertEqual(set(given), set(expected))
        if "error" in expected:
            self.assertEqual(expected["error"]["type"], "InvalidArgumentError")
            self.assertIsInstance(given["error"], libdist.InvalidArgument)
            words = expected["error"]["message"].partition("[")[2].partition("]")[0]
            self.assertIn(f"assertion failed: [{words}]", str(given["error"]))
        else:
            self.assertEqual(given, expected)

    # ---- variables ------------------------------------------------------------------------------------------------

    def case_round_robin_scalars(self, case):
        variables = [self.variable(float(i)) for i in range(2 * self.num_ps + 1)]
        self.assertEqual([v.device for v in variables], case["expected"]["devices"])
        self.assertEqual(sorted({type(v).__name__ for v in variables}), case["expected"]["classes"])
        self.assertEqual(self.strategy.num_replicas_in_sync, case["expected"]["num_replicas_in_sync"])

    def case_sharded(self, case):
        shape = case["inputs"]["shape"]
        initial = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        if "error" in case:
            with self.assertRaises(ValueError) as raised:
                self.variable(initial)
            self.words(raised.exception, case)
            return
        v, expected = self.variable(initial), case["expected"]
        self.assertEqual(type(v).__name__, expected["class"])
        if "shards" in expected:
            self.assertEqual([shard.device for shard in v.variables], [one["device"] for one in expected["shards"]])
            for shard, one in zip(v.variables, expected["shards"]):
                self.same(shard.read_value(), one["value"])
        else:
            self.assertFalse(hasattr(v, "variables"))
            self.assertEqual(v.device, expected["device"])
            self.same(v.read_value(), expected["value"])

    def case_round_robin_continues_after_sharded(self, case):
        self.assertEqual(self.variable(0.0).device, case["expected"]["device"])

    # ---- closures -------------------------------------------------------------------------------------------------

    def case_schedule_join_fetch(self, case):
        v, coordinator, expected = self.variable(0.0), self.coordinator, case["expected"]

        @tf.function
        def f(x):
            v.assign_add(x)
            return x * 2

        remotes = [coordinator.schedule(f, args=(tf.constant(float(i + 1)),)) for i in range(7)]
        coordinator.join()
        self.assertEqual([float(remote.fetch()) for remote in remotes], expected["fetch"])
        self.assertEqual([float(x) for x in coordinator.fetch(remotes)], expected["fetch_nest"])
        self.assertEqual(float(v.read_value()), expected["variable"])
        self.assertEqual(coordinator.done(), expected["done"])
        self.assertEqual(type(remotes[0]).__name__, expected["remote_value_class"])

    def bad(self):
        @tf.function
        def bad(x, message="boom in closure"):
            assert_equal(x, 2, message)
            return tf.constant(1)

        return bad

    def case_failing_closure(self, case):
        coordinator, given = self.coordinator, {}
        remote = coordinator.schedule(self.bad(), args=(tf.constant(1),))
        given["join"] = attempt(coordinator.join)
        given["fetch_failed"] = attempt(remote.fetch)
        ok = tf.function(lambda: tf.constant(5.0))
        given["schedule_after"] = attempt(lambda: coordinator.schedule(ok) is not None)
        given["join_after"] = attempt(coordinator.join)
        given["done_after"] = attempt(coordinator.done)
        for name, expected in case["expected"].items():
            self.answers(given[name], expected)

    def case_failing_closure_with_others_queued(self, case):
        ok = tf.function(lambda: tf.constant(5.0))
        self.coordinator.schedule(self.bad(), args=(tf.constant(1),))
        raised = sum("error" in attempt(lambda: self.coordinator.schedule(ok)) for _ in range(5))
        raised += "error" in attempt(self.coordinator.join)
        # By whom it is raised is a matter of time: a schedule() had it in the recording, whose join() gives None.
        self.assertEqual(raised, 1)
        self.answers(attempt(self.coordinator.join), case["expected"]["join"])

    def case_usable_after_failure(self, case):
        remote = self.coordinator.schedule(tf.function(lambda: tf.constant(6.0)))
        self.assertEqual(float(remote.fetch()), case["expected"]["fetch"])

    def case_error_raised_by_later_calls(self, case):
        coordinator, given = self.coordinator, {}
        remote = coordinator.schedule(self.bad(), args=(tf.constant(1), "first"))
        attempt(remote.fetch)  # in place of the recording's second
        given["done"] = attempt(coordinator.done)
        ok = tf.function(lambda: tf.constant(1.0))
        given["schedule_second"] = attempt(lambda: coordinator.schedule(ok) is not None)
        given["join"] = attempt(coordinator.join)
        given["join_again"] = attempt(coordinator.join)
        given["fetch_failed"] = attempt(remote.fetch)
        for name, expected in case["expected"].items():
            self.answers(given[name], expected)

    def refused(self, case, fn):
        with self.assertRaises(TypeError) as raised:
            self.coordinator.schedule(fn)
        self.words(raised.exception, case)

    def case_schedule_python_function(self, case):
        self.refused(case, lambda: 3)

    def case_schedule_python_raises(self, case):
        self.refused(case, lambda: 1 / 0)

    def case_schedule_not_callable(self, case):
        self.refused(case, 5)

    def case_join_again(self, case):
        self.answers(attempt(self.coordinator.join), case["expected"]["join"])

    def case_join_empty(self, case):
        self.answers(attempt(self.coordinator.join), case["expected"]["join"])
        self.assertEqual(self.coordinator.done(), case["expected"]["done"])

    def case_per_worker_dataset(self, case):
        dataset = self.coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.range(4))
        iterator, expected = iter(dataset), case["expected"]
        f = tf.function(lambda i: next(i))
        remotes = [self.coordinator.schedule(f, args=(iterator,)) for _ in range(2)]
        self.coordinator.join()
        self.assertEqual(type(dataset).__name__, expected["dataset_class"])
        self.assertEqual(type(iterator).__name__, expected["iterator_class"])
        self.assertEqual(sorted(int(remote.fetch()) for remote in remotes), expected["fetched_sorted"])

    def case_fetch_non_remote(self, case):
        self.assertEqual(self.coordinator.fetch({"a": 1}), {"a": 1})

    # ---- the strategy ---------------------------------------------------------------------------------------------

    def case_run_outside_schedule(self, case):
        self.same(self.strategy.run(lambda: tf.constant(1)), case["expected"]["result"])
        self.same(self.strategy.run(lambda: 1), case["expected"]["result"])

    def case_reduce(self, case):
        self.same(self.strategy.reduce("SUM", tf.constant(3.0), axis=None), case["expected"]["result"])

    def case_strategy_property(self, case):
        self.assertIs(self.coordinator.strategy is self.strategy, case["expected"]["is_s"])

    def case_second_coordinator_same_strategy(self, case):
        second = tf.distribute.experimental.coordinator.ClusterCoordinator(self.strategy)
        self.assertIs(second is self.coordinator, case["expected"]["same_object"])

    def case_coordinator_of_other_strategy(self, case):
        with self.assertRaisesRegex(AttributeError, "has no attribute '_cluster_coordinator'"):
            tf.distribute.coordinator.ClusterCoordinator(tf.distribute.get_strategy())


if __name__ == "__main__":
    unittest.main()
