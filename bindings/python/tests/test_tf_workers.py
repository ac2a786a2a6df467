# SPDX-License-Identifier: Apache-2.0
"""libdist.tf: MultiWorkerMirroredStrategy, whose workers are strategies of this process, a thread each.

A strategy has as many replicas as its thread may use CPUs: where a test wants one, the thread has one CPU.
"""

import json
import os
import pathlib
import threading
import unittest
from unittest import mock

import numpy as np

import libdist
import libdist.tf as tf

CASES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "cases" / "multi_worker.json"
MultiWorkerMirroredStrategy = tf.distribute.MultiWorkerMirroredStrategy


def config(task_type, task_id, **cluster):
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": task_id}})


def on_workers(count, program):
    """program(worker) on a thread each, which may use one CPU: what they returned, or raised."""
    results = [None] * count

    def play(w):
        try:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of this thread
            results[w] = program(w)
        except BaseException as error:
            results[w] = error

    threads = [threading.Thread(target=play, args=(w,)) for w in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in results:
        if isinstance(error, AssertionError):
            raise error
    return results


def replica_id():
    return int(tf.distribute.get_replica_context().replica_id_in_sync_group)


class Documented(unittest.TestCase):
    """The programs of TensorFlow's pages."""

    def step(self, strategy):
        """Of the page of MultiWorkerMirroredStrategy."""
        with strategy.scope():
            v = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
            seen = tf.Variable(
                0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
            )

        def train_step():
            seen.assign_add(replica_id() + 1.0)
            return v.assign_add(1.0).read_value()

        results = strategy.run(train_step)
        per_replica = strategy.experimental_local_results(results)
        return [float(one) for one in per_replica], float(seen.read_value())

    def test_tf_config_of_two_workers(self):
        os_environ = {"TF_CONFIG": json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker"}})}
        network = libdist.Network(2)

        def worker(w):
            resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver(task_id=w)
            strategy = MultiWorkerMirroredStrategy(resolver, network=network)
            self.assertIs(strategy.cluster_resolver, resolver)
            self.assertEqual((resolver.task_type, resolver.task_id), ("worker", w))
            self.assertEqual(strategy.num_replicas_in_sync, 2)
            return self.step(strategy)

        with mock.patch.dict(os.environ, os_environ):
            self.assertEqual(on_workers(2, worker), [([2.0], 3.0)] * 2)

    def test_a_given_cluster_with_a_chief(self):
        network = libdist.Network(3)
        spec = tf.train.ClusterSpec({"chief": ["a:1"], "worker": ["b:1", "c:1"]})

        def worker(w):
            resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
                spec, task_type="worker" if w else "chief", task_id=max(w - 1, 0)
            )
            options = tf.distribute.experimental.CommunicationOptions(
                implementation=tf.distribute.experimental.CommunicationImplementation.RING
            )
            strategy = MultiWorkerMirroredStrategy(
                cluster_resolver=resolver, communication_options=options, network=network
            )
            extended = strategy.extended
            self.assertEqual(extended.should_checkpoint, w == 0)
            self.assertEqual(extended.should_save_summary, w == 0)
            self.assertIn(f"worker {w} of 3", repr(strategy))
            return self.step(strategy)

        self.assertEqual(on_workers(3, worker), [([3.0], 6.0)] * 3)

    def test_a_single_worker(self):
        for value in config("worker", 0, worker=["localhost:12345"]), "{}", None:
            environment = {} if value is None else {"TF_CONFIG": value}

            def program(_, value=value):
                strategy = tf.distribute.MultiWorkerMirroredStrategy()
                resolver = strategy.cluster_resolver
                self.assertIsInstance(resolver, tf.distribute.cluster_resolver.TFConfigClusterResolver)
                self.assertEqual(strategy.num_replicas_in_sync, 1)
                self.assertTrue(strategy.extended.experimental_between_graph)
                self.assertTrue(strategy.extended.should_checkpoint)
                in_cluster = value not in (None, "{}")
                self.assertEqual(strategy._native.query().in_multi_worker_mode, in_cluster)
                return self.step(strategy)

            with mock.patch.dict(os.environ, environment):
                if value is None:
                    os.environ.pop("TF_CONFIG", None)
                self.assertEqual(on_workers(1, program), [([1.0], 1.0)])

    def test_datasets_as_of_one_process(self):
        """Worker w gets what replica w of one process gets, with an option of libdist's own."""

        def rows(strategy, as_one_process):
            options = tf.distribute.InputOptions(as_one_process=as_one_process)
            dataset = tf.data.Dataset.range(7).batch(4)
            seen = []
            for batch in strategy.experimental_distribute_dataset(dataset, options):
                strategy.run(lambda x: seen.append((replica_id(), x.numpy().tolist())), args=(batch,))
            return [[x for replica, x in seen if replica == r] for r in range(4)]

        def of_workers(as_one_process):
            network = libdist.Network(4)
            spec = tf.train.ClusterSpec({"worker": [f"w{w}:1" for w in range(4)]})

            def worker(w):
                resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=w)
                return rows(MultiWorkerMirroredStrategy(resolver, network=network), as_one_process)[w]

            return on_workers(4, worker)

        wanted = rows(tf.distribute.MirroredStrategy([f"CPU:{r}" for r in range(4)]), False)
        self.assertEqual(wanted, [[[0], [4]], [[1], [5]], [[2], [6]], [[3], []]])
        self.assertEqual(of_workers(True), wanted)

        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        options = tf.distribute.InputOptions(as_one_process=True)
        with self.assertRaisesRegex(ValueError, "in the function"):  # whose batches are for one replica
            strategy.distribute_datasets_from_function(lambda _: tf.data.Dataset.range(2).batch(1), options)

    def test_as_many_replicas_as_mirrored_strategy(self):
        mirrored = tf.distribute.MirroredStrategy()
        with mock.patch.dict(os.environ, {"TF_CONFIG": config("worker", 0, worker=["a:1"])}):
            alone = tf.distribute.experimental.MultiWorkerMirroredStrategy(
                tf.distribute.experimental.CollectiveCommunication.AUTO
            )
        self.assertEqual(alone.num_replicas_in_sync, mirrored.num_replicas_in_sync)
        self.assertIsInstance(alone, MultiWorkerMirroredStrategy)
        self.assertEqual(len(alone.extended.worker_devices), alone.num_replicas_in_sync)


class Trouble(unittest.TestCase):
    def strategy(self, w, **given):
        spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=w)
        return MultiWorkerMirroredStrategy(resolver, **given)

    def test_a_worker_that_does_not_come(self):
        options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=0.02)
        strategy = self.strategy(0, communication_options=options, network=libdist.Network(2))
        with strategy.scope(), self.assertRaisesRegex(libdist.DeadlineExceeded, "worker 1"):
            tf.Variable(1.0)
        with self.assertRaisesRegex(libdist.DeadlineExceeded, "worker 1"):
            strategy.reduce("SUM", 1.0)
        with self.assertRaisesRegex(libdist.Unavailable, "worker 0 cannot reach the other workers"):
            self.strategy(0).reduce("SUM", 1.0)

    def test_what_fails_in_one_worker(self):
        network = libdist.Network(2)

        def worker(w):
            strategy = self.strategy(w, network=network)

            def step():
                if w == 1:
                    raise KeyError("mine")
                return tf.distribute.get_replica_context().all_reduce("SUM", 1.0)

            return strategy.run(step)

        told, own = on_workers(2, worker)
        self.assertIsInstance(own, KeyError)
        self.assertIsInstance(told, libdist.Aborted)
        self.assertIn("mine", str(told))

    def test_what_is_no_resolver(self):
        for wrong in 3, "worker", tf.train.ClusterSpec({}):
            with self.assertRaises(TypeError):
                MultiWorkerMirroredStrategy(wrong)
        spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})
        with self.assertRaises(ValueError):  # which task it is must be given
            MultiWorkerMirroredStrategy(tf.distribute.cluster_resolver.SimpleClusterResolver(spec))
        with self.assertRaises(TypeError):
            self.strategy(0, network="localhost")

    def test_a_resolver_of_ones_own(self):
        class Own(tf.distribute.cluster_resolver.ClusterResolver):
            def cluster_spec(self):
                return tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})

        network = libdist.Network(2)

        def worker(w):
            resolver = Own()
            resolver.task_type, resolver.task_id = "worker", w
            strategy = MultiWorkerMirroredStrategy(resolver, network=network)
            self.assertIs(strategy.cluster_resolver, resolver)
            return float(strategy.reduce("SUM", 1.0 + w))

        self.assertEqual(on_workers(2, worker), [3.0, 3.0])


class Recorded(unittest.TestCase):
    """Beside recordings of TensorFlow's own workers, which have one replica each."""

    maxDiff = None

    def decode(self, value):
        if isinstance(value, dict) and "kind" not in value:
            return {key: self.decode(one) for key, one in value.items()}
        if value["kind"] == "tensor":
            if "bits" in value:
                return np.array(value["bits"], np.uint16).view(value["dtype"]).reshape(value["shape"])
            return np.array(value["data"]).astype(value["dtype"]).reshape(value["shape"])
        return value["value"]

    def answer(self, strategy, case, w):
        what, inputs = case["id"].split("/")[1:], case["inputs"]
        own = inputs["per_worker"][w] if "per_worker" in inputs else None
        mine = self.decode(own) if isinstance(own, dict) else own
        if what[0] == "properties":
            extended, resolver = strategy.extended, strategy.cluster_resolver
            return {
                "num_replicas_in_sync": strategy.num_replicas_in_sync,
                "task_type": resolver.task_type,
                "task_id": resolver.task_id,
                "worker_devices": list(extended.worker_devices),
                "parameter_devices": list(extended.parameter_devices),
                "should_checkpoint": extended.should_checkpoint,
                "should_save_summary": extended.should_save_summary,
                "experimental_between_graph": extended.experimental_between_graph,
                "experimental_should_init": extended.experimental_should_init,
                "in_multi_worker_mode": strategy._native.query().in_multi_worker_mode,
            }
        context = tf.distribute.get_replica_context
        if what[0] == "replica_ids":
            return {"replica_id": strategy.run(lambda: np.int32(context().replica_id_in_sync_group))}
        if what[0] in ("reduce", "reduce_axis0", "reduce_axis0_uneven"):
            if what[-1] == "plain_python_value":
                return {"result": strategy.reduce(inputs["op"], inputs["value"])}
            value = strategy.run((lambda: 7.0 + w) if own is None else (lambda: mine))
            return {"result": strategy.reduce(inputs["op"], value, inputs.get("axis"))}
        if what[0] == "all_reduce":
            return {"result": strategy.run(lambda: context().all_reduce(inputs["op"], mine))}
        if what[0].startswith("gather"):
            return {"result": strategy.gather(strategy.run(lambda: mine), inputs["axis"])}
        if what[0].startswith("all_gather"):
            return {"result": strategy.run(lambda: context().all_gather(mine, inputs["axis"]))}
        if what[0] == "distribute_values":
            made = strategy.experimental_distribute_values_from_function(
                lambda context: np.int32(10 * context.replica_id_in_sync_group)
            )
            (result,) = strategy.experimental_local_results(made)
            return {"result": result}
        if what == ["variable", "initial_value_differs"]:
            with strategy.scope():
                return {"value": tf.Variable(10.0 + w).read_value()}
        if what[0] == "documented_example":
            with strategy.scope():
                v = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
            return {"local_value": strategy.run(lambda: v.assign_add(1.0).read_value())}
        if what[0] == "variable":
            with strategy.scope():
                v = tf.Variable(
                    inputs["initial"],
                    synchronization=tf.VariableSynchronization[inputs["synchronization"]],
                    aggregation=tf.VariableAggregation[inputs["aggregation"]],
                )
            strategy.run(lambda: getattr(v, inputs["method"])(np.float32(mine)) and None)
            answer = {"local_value": strategy.run(v.read_value)}
            try:
                answer["cross_replica_read"] = v.read_value()
            except Exception as error:
                answer["cross_replica_read"] = error
            return answer
        if what[0] == "dataset":
            options = tf.data.Options()
            options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[inputs["policy"]]
            dataset = tf.data.Dataset.range(inputs["total"]).batch(inputs["gb"]).with_options(options)
            return {"steps": self.steps(strategy.experimental_distribute_dataset(dataset))}
        return self.from_function(strategy, inputs["dataset_fn"])

    def from_function(self, strategy, written):
        contexts = []
        datasets = {
            "range(6).shard(num_input_pipelines, input_pipeline_id).batch(2)": lambda context: tf.data.Dataset.range(6)
            .shard(context.num_input_pipelines, context.input_pipeline_id)
            .batch(2),
            "range(2 + 3 * input_pipeline_id).batch(1)": lambda context: tf.data.Dataset.range(
                2 + 3 * context.input_pipeline_id
            ).batch(1),
        }

        def make(context):
            names = "num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync"
            size = context.get_per_replica_batch_size(12)
            contexts.append({**{name: getattr(context, name) for name in names}, "per_replica_batch_size_12": size})
            return datasets[written](context)

        steps = self.steps(strategy.distribute_datasets_from_function(make))
        return {"steps": steps, "input_contexts": contexts}

    def steps(self, dataset):
        return [np.asarray(batch).tolist() for batch in dataset]

    def play(self, case):
        tasks = case["strategy"]["tasks"]
        cluster = {}
        for task_type, task_id in tasks:
            cluster.setdefault(task_type, []).append(f"{task_type}{task_id}:1")
        network = libdist.Network(len(tasks))

        def worker(w):
            resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
                tf.train.ClusterSpec(cluster), task_type=tasks[w][0], task_id=tasks[w][1]
            )
            return self.answer(MultiWorkerMirroredStrategy(resolver, network=network), case, w)

        return on_workers(len(tasks), worker)

    def same(self, given, wanted):
        if isinstance(wanted, dict) and wanted.get("kind") == "per_replica":
            (wanted,) = wanted["values"]
        if isinstance(wanted, dict) and set(wanted) == {"value"}:
            wanted = wanted["value"]
        if isinstance(wanted, dict) and "error" in wanted:
            self.assertIsInstance(given, {"ValueError": ValueError}[wanted["error"]["type"]])
        elif isinstance(wanted, dict) and wanted["kind"] == "dict":
            self.assertEqual(list(given), wanted["keys"])
            for key, one in zip(wanted["keys"], wanted["items"]):
                self.same(given[key], one)
        elif isinstance(wanted, dict):
            expected, given = self.decode(wanted), np.asarray(given)
            self.assertEqual(given.dtype, np.asarray(expected).dtype)
            np.testing.assert_array_equal(given, expected)
        else:
            self.assertEqual(given, wanted)

    def test_cases(self):
        if not CASES.exists():
            self.skipTest("the recordings are in libdist's source tree")
        count = 0
        for case in json.loads(CASES.read_text())["cases"]:
            # These differ on purpose: tests/golden/differences.md. Where a process has to die, there is none.
            if case["id"].startswith("failure/") or "/all_reduce/MEAN/" in case["id"]:
                continue
            with self.subTest(case["id"]):
                for w, answer in enumerate(self.play(case)):
                    if isinstance(answer, BaseException):
                        raise answer
                    self.assertTrue(answer)
                    wanted = case["expected"]["per_worker"][w]["expected"]
                    for key, given in answer.items():
                        if key in wanted or key != "input_contexts":  # which were not recorded each time
                            self.same(given, wanted[key])
                count += 1
        self.assertGreater(count, 50)


if __name__ == "__main__":
    unittest.main()
