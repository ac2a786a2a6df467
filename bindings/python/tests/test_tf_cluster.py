# SPDX-License-Identifier: Apache-2.0
"""tf.train.ClusterSpec, tf.distribute.cluster_resolver and the partitioners, beside recordings of TensorFlow."""

import json
import os
import pathlib
import unittest
from unittest import mock

import numpy as np

import libdist
import libdist.tf as tf

CASES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "cases"
RESOLVERS = tf.distribute.cluster_resolver
PARTITIONERS = tf.distribute.experimental.partitioners
SPEC = {"worker": ["a:1", "b:2"], "ps": {3: "c:4"}}

# On purpose, or TensorFlow's alone: tests/golden/differences.md has the reasons. (case, key); None: all of it.
DIFFERENT = {
    ("cluster_spec/job_empty", "job/worker"),
    ("cluster_spec/bytes_address", "str"),
    ("cluster_spec/bytes_address", "equal_to_copy"),
    ("slurm/resolver/no_gpus", "cluster_spec"),
    ("slurm/resolver/no_gpus", "task_info_after"),
    ("slurm/resolver/no_gpus", "master"),
    ("slurm/resolver/no_gpus", "master_worker_1"),
    *(("slurm/resolver/sorted_hosts", key) for key in ("cluster_spec", "master", "master_worker_1")),
    *(
        ("slurm/resolver/tasks_per_node_dict", key)
        for key in ("cluster_spec", "master", "master_worker_1", "cuda_visible_devices")
    ),
    ("cluster_device_filters", None),
}
NOT_PLAYED = {"constructor_kwargs", "task_info_before"}


def cases(area):
    path = CASES / f"{area}.json"
    if not path.exists():
        raise unittest.SkipTest("the recordings are in libdist's source tree")
    return json.loads(path.read_text())["cases"]


def written(thing):
    """A recorded argument as the program had it: dicts may be {dict: [[key, value], ...]}, bytes {bytes: text}."""
    if isinstance(thing, list):
        return [written(one) for one in thing]
    if isinstance(thing, dict) and set(thing) == {"dict"}:
        return {key: written(value) for key, value in thing["dict"]}
    if isinstance(thing, dict) and set(thing) == {"bytes"}:
        return thing["bytes"].encode()
    return {key: written(value) for key, value in thing.items()} if isinstance(thing, dict) else thing


def as_json(thing):
    """A value as a recording has it: keys are texts, tuples lists."""
    return json.loads(json.dumps(thing))


class Golden(unittest.TestCase):
    def answers(self, ask, recorded, where):
        """Compares what a call answers with {"value": ...} or {"error": ...}."""
        if isinstance(recorded, dict) and "error" in recorded:
            kind = {"ValueError": ValueError, "IndexError": IndexError}.get(recorded["error"]["type"], Exception)
            with self.assertRaises(kind, msg=where):
                ask()
            return
        wanted = recorded["value"] if isinstance(recorded, dict) and set(recorded) == {"value"} else recorded
        self.assertEqual(as_json(ask()), wanted, where)

    def compare(self, case, questions):
        """questions: a function for each key of the recording."""
        asked = 0
        for key, recorded in case["expected"].items():
            if (case["id"], key) in DIFFERENT or key in NOT_PLAYED:
                continue
            with self.subTest(case["id"], key=key):
                self.answers(questions[key], recorded, f"{case['id']}: {key}")
            asked += 1
        self.assertGreater(asked, 0)

    def of_resolver(self, resolver):
        return {
            "cluster_spec": lambda: resolver.cluster_spec().as_dict(),
            "task_type": lambda: resolver.task_type,
            "task_id": lambda: resolver.task_id,
            "rpc_layer": lambda: resolver.rpc_layer,
            "environment": lambda: resolver.environment,
            "master": lambda: resolver.master(),
            "master_worker_0": lambda: resolver.master("worker", 0),
            "master_worker_1": lambda: resolver.master("worker", 1),
            "master_worker_1_rpc_ssl": lambda: resolver.master("worker", 1, "ssl"),
            "num_accelerators": lambda: resolver.num_accelerators(),
        }

    def play_tf_config(self, case):
        with mock.patch.dict(os.environ):
            os.environ.pop("TF_CONFIG", None)
            if case["inputs"]["TF_CONFIG"] is not None:
                os.environ["TF_CONFIG"] = case["inputs"]["TF_CONFIG"]
            self.compare(case, self.of_resolver(RESOLVERS.TFConfigClusterResolver(**case["inputs"]["kwargs"])))

    def play_cluster_spec(self, case):
        spec = tf.train.ClusterSpec(written(case["inputs"]["cluster"]))
        questions = {
            "as_dict": spec.as_dict,
            "jobs": lambda: spec.jobs,
            "bool": lambda: bool(spec),
            "str": lambda: str(spec),
            "equal_to_copy": lambda: spec == tf.train.ClusterSpec(spec.as_dict()),
            "equal_to_other": lambda: spec == tf.train.ClusterSpec({"other": ["x:1"]}),
        }
        jobs = [key for key in case["expected"] if key.startswith("job/")]
        for key in jobs:
            if (case["id"], key) not in DIFFERENT:
                self.of_job(spec, key[len("job/") :], case["expected"][key], case["id"])
        plain = {key: value for key, value in case["expected"].items() if key not in jobs}
        self.compare({**case, "expected": plain}, questions)

    def of_job(self, spec, job, recorded, where):
        with self.subTest(where, job=job):
            for key in ("num_tasks", "task_indices", "job_tasks"):
                self.answers(lambda: getattr(spec, key)(job), recorded[key], key)  # noqa: B023
            for index, address in recorded["task_address"].items():
                self.answers(lambda: spec.task_address(job, int(index)), address, index)  # noqa: B023

    def play_simple(self, case):
        cluster = case["inputs"]["cluster"]
        if "kwargs" in case["inputs"]:
            cluster = tf.train.ClusterSpec(cluster)
        RESOLVERS.SimpleClusterResolver(cluster, **case["inputs"].get("kwargs", {}))

    def play_union(self, case):
        RESOLVERS.UnionResolver(*case["inputs"].get("resolvers", ()), **case["inputs"].get("kwargs", {}))

    def play_slurm(self, case):
        inputs = case["inputs"]
        kwargs = dict(inputs["kwargs"])
        if "gpus_per_node" not in kwargs:
            kwargs |= {"gpus_per_node": 2, "gpus_per_task": 1}
        with mock.patch.dict(os.environ, inputs["env"]):
            resolver = RESOLVERS.SlurmClusterResolver(**kwargs)
            questions = self.of_resolver(resolver)
            questions["task_info_after"] = resolver.get_task_info
            questions["cuda_visible_devices"] = lambda: resolver.gpu_ids() or None
            self.compare(case, questions)

    def test_types_and_indices_of_other_kinds(self):
        for task, kind, index in (
            ('{"type": 3, "index": 1.9}', "3", 1),
            ('{"type": null, "index": true}', "None", 1),
            ('{"type": 1.5, "index": " -1_0 "}', "1.5", -10),
            ('{"type": 2.0, "index": -0.5}', "2.0", 0),
            ('{"type": 1e22, "index": 1e2}', "1e+22", 100),
            ('{"type": 1e-5, "index": 1e-400}', "1e-05", 0),
            ('{"type": false, "index": "+7"}', "False", 7),
            ('{"type": -0, "index": -0}', "0", 0),
            ('{"type": NaN, "index": 5}', "nan", 5),
            ('{"type": -Infinity}', "-inf", None),
            ("[]", None, None),
            ('"text"', None, None),
            ('{"type": 100000000000000000000, "index": 0}', "100000000000000000000", 0),
        ):
            config = f'{{"task": {task}, "cluster": {{"ps": {{" 3 ": "a:1", "0_5": "b:1"}}}}}}'
            with self.subTest(task), mock.patch.dict(os.environ, TF_CONFIG=config):
                resolver = RESOLVERS.TFConfigClusterResolver()
                self.assertEqual((resolver.task_type, resolver.task_id), (kind, index))
                self.assertEqual(resolver.cluster_spec().as_dict(), {"ps": {3: "a:1", 5: "b:1"}})
                resolver.task_id = 4
                self.assertEqual((resolver.task_type, resolver.task_id), (kind, 4))
        for bad in ("NaN", "Infinity", "null", "[]", "{}", '"1.5"', '""', '"1__0"', '"_1"', "1e10", '"4294967296"'):
            with self.subTest(bad), mock.patch.dict(os.environ, TF_CONFIG=f'{{"task": {{"index": {bad}}}}}'):
                resolver = RESOLVERS.TFConfigClusterResolver()
                with self.assertRaises(ValueError):
                    resolver.task_id  # noqa: B018

    def test_clusters(self):
        count = 0
        for case in cases("cluster"):
            # These lists are expanded as by Slurm.
            if (case["id"], None) in DIFFERENT or case["id"].startswith("slurm/hostlist/"):
                continue
            play = getattr(self, f"play_{case['id'].split('/')[0]}")
            if "error" in case:
                kinds = {"ValueError": ValueError, "TypeError": TypeError}
                with self.subTest(case["id"]), self.assertRaises(kinds[case["error"]["type"]]):
                    play(case)
            else:
                play(case)
            count += 1
        self.assertGreater(count, 40)

    def test_partitioners(self):
        kinds = {
            "fixed": PARTITIONERS.FixedShardsPartitioner,
            "min_size": PARTITIONERS.MinSizePartitioner,
            "max_size": PARTITIONERS.MaxSizePartitioner,
        }
        count = 0
        for case in cases("partitioners"):
            kind, inputs = kinds.get(case["id"].split("/")[0]), dict(case["inputs"])

            def play(case=case, kind=kind, inputs=inputs):
                if kind is None:
                    if "class" not in inputs:
                        return PARTITIONERS.Partitioner()([10, 4], tf.float32)
                    made = getattr(PARTITIONERS, inputs["class"])(**inputs["kwargs"])
                    return made([10, 4], tf.float32)
                axis = {"axis": inputs.pop("axis")} if "axis" in inputs else {}
                shape, dtype = inputs.pop("shape"), inputs.pop("dtype")
                return kind(**inputs)(shape, dtype, **axis)

            with self.subTest(case["id"]):
                if "error" in case:
                    own = {"ValueError": ValueError, "NotImplementedError": NotImplementedError, "TypeError": TypeError}
                    with self.assertRaises(own.get(case["error"]["type"], libdist.InvalidArgument)):
                        play()
                else:
                    expected = case["expected"]
                    wanted = expected.get("partitions", expected.get("partitions_10x4_float32"))
                    self.assertEqual(play(), wanted)
            count += 1
        self.assertGreater(count, 100)


class Own(RESOLVERS.ClusterResolver):
    """A program's own."""

    def __init__(self):
        self.task_type, self.task_id = "worker", 1

    def cluster_spec(self):
        return tf.train.ClusterSpec({"worker": ["x:1", "y:2"]})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return f"{task_type}/{task_id}"

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        return {"GPU": 2, "TPU": 1}


class Clusters(unittest.TestCase):
    def test_specs(self):
        spec = tf.train.ClusterSpec(SPEC)
        self.assertEqual((spec.as_dict(), spec.num_tasks("ps"), spec.task_indices("ps")), (SPEC, 1, [3]))
        self.assertEqual(spec.job_tasks("ps"), [None, None, None, "c:4"])
        self.assertEqual(spec, tf.train.ClusterSpec(spec))
        self.assertNotEqual(spec, SPEC)
        self.assertEqual(str(spec), "ClusterSpec({'ps': {3: 'c:4'}, 'worker': ['a:1', 'b:2']})")
        with self.assertRaisesRegex(AttributeError, "as_cluster_def is not offered: .*as_dict"):
            spec.as_cluster_def()

    def test_simple(self):
        spec = tf.train.ClusterSpec(SPEC)
        resolver = RESOLVERS.SimpleClusterResolver(
            spec, "m:1", task_type="worker", task_id=0, num_accelerators={"GPU": 2}, rpc_layer="grpc"
        )
        self.assertEqual((resolver.master(), resolver.master("worker", 1, "x")), ("grpc://m:1", "x://b:2"))
        self.assertEqual((resolver.num_accelerators(), resolver.environment), ({"GPU": 2}, ""))
        self.assertEqual(resolver.cluster_spec(), spec)
        resolver.task_type, resolver.task_id, resolver.rpc_layer = "ps", 3, "ssl"
        self.assertEqual((resolver.task_type, resolver.task_id, resolver.master("ps", 3)), ("ps", 3, "ssl://c:4"))
        resolver.task_id = None
        self.assertIsNone(resolver.task_id)

    def test_unions(self):
        own = Own()
        other = RESOLVERS.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["z:3"]}))
        union = RESOLVERS.UnionResolver(own, other, rpc_layer="grpc")
        self.assertEqual(union.cluster_spec().as_dict(), {"worker": ["x:1", "y:2", "z:3"]})
        self.assertEqual((union.task_type, union.task_id, union.rpc_layer), ("worker", 1, "grpc"))
        self.assertEqual((union.master("worker", 2), union.num_accelerators()), ("grpc://z:3", {"GPU": 2, "TPU": 1}))
        union.task_id = 0
        self.assertEqual((union.task_id, own.task_id), (0, 1))
        with self.assertRaises(ValueError):
            RESOLVERS.UnionResolver()

    def test_slurm_and_kubernetes(self):
        with mock.patch.dict(os.environ, {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}):
            resolver = RESOLVERS.SlurmClusterResolver(tasks_per_node={"n1": 2, "n2": 1}, port_base=5)
            self.assertEqual(resolver.cluster_spec().as_dict(), {"worker": ["n1:5", "n1:6", "n2:5"]})
            self.assertEqual((resolver.get_task_info(), resolver.gpu_ids()), (("worker", 1), ""))
            self.assertNotIn("CUDA_VISIBLE_DEVICES", os.environ)
        pods = libdist.KubernetesOptions(host_name="t-1", num_workers=2)
        resolver = RESOLVERS.KubernetesClusterResolver(pods=pods)
        self.assertEqual(resolver.cluster_spec().as_dict(), {"worker": ["t-0:8470", "t-1:8470"]})
        self.assertEqual((resolver.task_id, resolver.master()), (1, "grpc://t-1:8470"))
        with self.assertRaisesRegex(ValueError, "job_to_label_mapping: no API server is asked"):
            RESOLVERS.KubernetesClusterResolver({"worker": ["app=x"]}, pods=pods)

    def test_a_strategys(self):
        class Extended(tf.distribute.StrategyExtended):
            def __init__(self, resolver):
                super().__init__()
                self._cluster_resolver = resolver

        for resolver in (Own(), RESOLVERS.SimpleClusterResolver(tf.train.ClusterSpec(SPEC))):
            strategy = tf.distribute.Strategy(Extended(resolver))
            self.addCleanup(strategy.close)
            self.assertIs(strategy.cluster_resolver, resolver)
            native = strategy.extended._native.cluster_resolver
            self.assertEqual(native.spec().as_dict(), resolver.cluster_spec().as_dict())
            self.assertEqual((native.task_type, native.task_id), (resolver.task_type, resolver.task_id))
        self.assertEqual(strategy.run(lambda: 3), 3)
        own = libdist.ClusterResolver.host(NativeFunctions())
        strategy = tf.distribute.Strategy(libdist.Strategy(1, cluster_resolver=own))
        self.addCleanup(strategy.close)
        resolver = strategy.cluster_resolver
        self.assertIsInstance(resolver, RESOLVERS.ClusterResolver)
        self.assertEqual((resolver.cluster_spec().as_dict(), resolver.task_type), (SPEC, None))
        resolver.task_type = "worker"
        self.assertEqual(resolver.task_type, "worker")

    def test_what_a_programs_own_raises(self):
        class Raises(Own):
            def cluster_spec(self):
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            RESOLVERS.UnionResolver(Raises()).cluster_spec()

    def test_partitioners_of_tensors(self):
        fixed = PARTITIONERS.FixedShardsPartitioner(num_shards=2)
        self.assertEqual(fixed(tf.constant(np.zeros((3, 4))).shape, tf.float32), [2, 1])
        self.assertEqual(fixed(np.zeros((3, 4)).shape, tf.float32, axis=1), [1, 2])
        self.assertEqual(PARTITIONERS.MinSizePartitioner(4, 10)([5], np.dtype("U3")), [5])
        with self.assertRaises(ValueError):
            PARTITIONERS.MaxSizePartitioner(0)


class NativeFunctions(libdist.ResolverFunctions):
    def spec(self):
        return libdist.ClusterSpec(SPEC)


class Tasks(unittest.TestCase):
    def test_what_is_no_task(self):
        for resolver in (tf.distribute.cluster_resolver.TFConfigClusterResolver(), Minimal()):
            for wrong in (-(2**31), 2**31):
                with self.assertRaisesRegex(ValueError, f"task_id is {wrong!r}, but must be the number of a task"):
                    resolver.task_id = wrong


class Minimal(tf.distribute.cluster_resolver.ClusterResolver):
    def cluster_spec(self):
        return tf.train.ClusterSpec({})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return ""


if __name__ == "__main__":
    unittest.main()
