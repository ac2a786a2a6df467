# SPDX-License-Identifier: Apache-2.0
"""libdist.tf's logical devices beside recordings of TensorFlow (tests/golden/cases), and what is libdist's own."""

import contextlib
import json
import math
import pathlib
import threading
import unittest

import numpy as np

import libdist
import libdist.tf as tf

CASES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "cases"
Topology, DeviceAssignment = tf.tpu.experimental.Topology, tf.tpu.experimental.DeviceAssignment


def cases(area):
    """(kind, case) of an area; the kind is the first part of the id."""
    path = CASES / f"{area}.json"
    if not path.exists():
        raise unittest.SkipTest("the recordings are in libdist's source tree")
    return [(case["id"].split("/")[0], case) for case in json.loads(path.read_text())["cases"]]


def line_of(devices):
    """A topology of devices in a row."""
    return Topology(mesh_shape=[1, 1, 1, devices], device_coordinates=[[(0, 0, 0, d) for d in range(devices)]])


def strategy_of(devices, **options):
    """One replica of so many logical devices."""
    assignment = DeviceAssignment.build(line_of(devices), [1, 1, 1, devices])
    return tf.distribute.TPUStrategy(None, assignment, **options)


def split(strategy, x, dimensions):
    """The whole, and what each logical device has."""
    parts = []

    def step():
        whole = strategy.experimental_split_to_logical_devices(x, dimensions)
        strategy.run_on_logical_devices(lambda part: parts.append(part.ravel().tolist()), (whole,))
        return whole

    return strategy.run(step), parts


class Recordings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.topologies = {
            case["id"].split("/")[1]: Topology(**case["inputs"])
            for kind, case in cases("tpu_device_assignment")
            if kind == "topology"
        }

    def refused_or(self, case, answer):
        """What a function answers; None where TensorFlow raised, and it has: a ValueError for all but TypeErrors."""
        if "error" not in case:
            return answer()
        with self.assertRaises(TypeError if case["error"]["type"] == "TypeError" else ValueError):
            answer()
        return None

    def test_topologies(self):
        for kind, case in cases("tpu_device_assignment"):
            if kind != "topology":
                continue
            with self.subTest(case["id"]):
                topology, expected = self.topologies[case["id"].split("/")[1]], case["expected"]
                self.assertEqual(topology.mesh_shape.tolist(), expected["mesh_shape"])
                self.assertEqual(topology.missing_devices.tolist(), expected["missing_devices"])
                for name in ("mesh_rank", "num_tasks", "num_tpus_per_task"):
                    self.assertEqual(getattr(topology, name), expected[name])
                self.assertEqual(topology.serialized().hex(), expected["serialized_hex"])
                again = Topology(serialized=topology.serialized())
                self.assertEqual(again.device_coordinates.tolist(), topology.device_coordinates.tolist())
                for at in expected["at"]:
                    place = at["coordinates"]
                    self.assertEqual(topology.task_ordinal_at_coordinates(place), at["task_ordinal"])
                    self.assertEqual(topology.tpu_device_ordinal_at_coordinates(place), at["tpu_device_ordinal"])
                    self.assertEqual(topology.cpu_device_name_at_coordinates(place), at["cpu_device_name"])
                    self.assertEqual(topology.tpu_device_name_at_coordinates(place), at["tpu_device_name"])

    def test_bytes_of_topologies(self):
        count = 0
        for kind, case in cases("tpu_device_assignment"):
            if kind not in ("topology_serialized", "topology_bad") or "serialized_hex" not in case["inputs"]:
                continue
            with self.subTest(case["id"]):
                data = bytes.fromhex(case["inputs"]["serialized_hex"])
                topology = self.refused_or(case, lambda: Topology(serialized=data))  # noqa: B023
                count += 1
                if topology is not None:
                    self.assertEqual(topology.mesh_shape.tolist(), case["expected"]["mesh_shape"])
                    self.assertEqual(topology.device_coordinates.tolist(), case["expected"]["device_coordinates"])
                    self.assertEqual(topology.serialized(), data)
        self.assertGreater(count, 5)
        # Numbers one by one, unknown fields of each type, and a message that is ignored.
        data = bytes.fromhex("08010801080108011001180120002000200020003a00310000000000000000f53f010203042a020a00")
        topology = Topology(serialized=data)
        self.assertEqual((topology.mesh_shape.tolist(), topology.num_tasks), ([1, 1, 1, 1], 1))
        self.assertEqual(topology.serialized(), data)
        for bad in ("0a", "0a05", "80" * 11, "0000", "0b", "0c", "0f", "09", "31000000", "ffffffff7f00"):
            with self.subTest(bad), self.assertRaises(ValueError):
                Topology(serialized=bytes.fromhex(bad))
        random = np.random.default_rng(20261129)
        whole = Topology(mesh_shape=[2, 1, 1, 1], device_coordinates=[[(0, 0, 0, 0), (1, 0, 0, 0)]]).serialized()
        for _ in range(3000):
            data = bytearray(whole[: random.integers(len(whole) + 1)])
            for _ in range(random.integers(3)):
                if data:
                    data[random.integers(len(data))] = random.integers(256)
            with contextlib.suppress(ValueError):
                self.assertEqual(Topology(serialized=bytes(data)).serialized(), data)

    def test_built_assignments(self):
        count = 0
        for kind, case in cases("tpu_device_assignment"):
            if kind not in ("build", "build_stride"):
                continue
            with self.subTest(case["id"]):
                inputs, expected = case["inputs"], case.get("expected")
                order = tf.tpu.experimental.DeviceOrderMode[inputs["device_order_mode"]]
                given = [inputs[name] for name in ("computation_shape", "computation_stride", "num_replicas")]
                topology = self.topologies[inputs["topology"]]
                built = self.refused_or(case, lambda: DeviceAssignment.build(topology, *given, order))  # noqa: B023
                count += 1
                if built is None:
                    continue
                self.assertIs(built.topology, topology)
                self.assertEqual(built.core_assignment.tolist(), expected["core_assignment"])
                self.assertEqual(built.num_cores_per_replica, expected["num_cores_per_replica"])
                for one in expected.get("lookup", ()):
                    at = (one["replica"], one["logical_core"])
                    self.assertEqual(list(built.coordinates(*at)), one["coordinates"])
                    self.assertEqual(built.tpu_ordinal(*at), one["tpu_ordinal"])
                    self.assertEqual(built.tpu_device(*at, job="worker"), one["tpu_device_job_worker"])
                    self.assertEqual(built.host_device(*at), one["host_device"])
        self.assertGreater(count, 20)

    def test_assignments_by_hand_and_what_is_no_topology(self):
        mesh = [(x, y, 0, core) for x in (0, 1) for y in (0, 1) for core in (0, 1)]
        for kind, case in cases("tpu_device_assignment"):
            inputs, expected = case["inputs"], case.get("expected", {})
            if (
                kind != "constructor"
                and "topology_serialized_hex" not in inputs
                and inputs.get("topology") != "a string"
            ):
                continue
            with self.subTest(case["id"]):
                topology = inputs.get("topology", Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=[mesh]))
                if "topology_serialized_hex" in inputs:
                    topology = bytes.fromhex(inputs["topology_serialized_hex"])
                if kind == "constructor":
                    cores = inputs.get("core_assignment", [[[0, 0, 0, 0]]]) or np.zeros((0, 1, 4), np.int32)
                    made = self.refused_or(case, lambda: DeviceAssignment(topology, cores))  # noqa: B023
                else:
                    made = self.refused_or(case, lambda: DeviceAssignment.build(topology, num_replicas=2))  # noqa: B023
                if "core_assignment" in expected:
                    self.assertEqual(made.core_assignment.tolist(), expected["core_assignment"])
                if "value" in expected.get("lookup_replicas_0_0", {}):
                    self.assertEqual(made.lookup_replicas(0, 0), expected["lookup_replicas_0_0"]["value"])

    def test_split_tensors(self):
        count = 0
        for kind, case in cases("tpu_split"):
            shape, dimensions = case["inputs"]["shape"], case["inputs"].get("partition_dimensions")
            if dimensions is None or None in (shape or [None]):
                continue
            with (
                self.subTest(case["id"]),
                strategy_closed(strategy_of(case["strategy"]["logical_devices_per_replica"])) as strategy,
            ):
                x = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
                answer = self.refused_or(case, lambda: split(strategy, x, dimensions))  # noqa: B023
                count += 1
                if answer is not None:
                    whole, parts = answer
                    np.testing.assert_array_equal(whole, x)
                    shards = case["expected"].get("shards")
                    if shards is not None:
                        self.assertEqual(sorted(parts), sorted(one["data"] for one in shards))
        self.assertGreater(count, 25)

    def test_assigned_tensors(self):
        for kind, case in cases("tpu_split"):
            if kind != "assign":
                continue
            devices, spmd = (case["strategy"][name] for name in ("logical_devices_per_replica", "spmd"))
            options = {"experimental_spmd_xla_partitioning": spmd}
            with self.subTest(case["id"]), strategy_closed(strategy_of(devices, **options)) as strategy:
                x, device = np.ones(case["inputs"]["shape"]), case["inputs"]["logical_device_id"]
                step = strategy.experimental_assign_to_logical_device
                whole = self.refused_or(case, lambda: strategy.run(step, (x, device)))  # noqa: B023
                if whole is not None:
                    np.testing.assert_array_equal(whole, x)


class strategy_closed:  # noqa: N801
    """A strategy that is closed at the end."""

    def __init__(self, strategy):
        self.strategy = strategy

    def __enter__(self):
        return self.strategy

    def __exit__(self, *_):
        self.strategy.close()


class Strategies(unittest.TestCase):
    def test_the_host(self):
        topology = tf.tpu.experimental.initialize_tpu_system()
        self.assertEqual(topology.num_tasks, 1)
        with self.assertRaises(ValueError):
            tf.tpu.experimental.initialize_tpu_system("grpc://somewhere")
        with self.assertRaises(ValueError):
            tf.distribute.TPUStrategy("grpc://somewhere")
        with self.assertRaises(ValueError):
            Topology()
        cpus = tf.config.list_logical_devices("CPU")
        self.assertEqual((len(cpus), cpus[0]), (topology.num_tpus_per_task, ("/device:CPU:0", "CPU")))
        self.assertEqual((tf.config.list_physical_devices("GPU"), tf.config.functions_run_eagerly()), ([], True))

    def test_without_an_assignment(self):
        for kind in (tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy):
            with self.subTest(kind), strategy_closed(kind()) as strategy:
                replicas = strategy.num_replicas_in_sync
                self.assertGreater(replicas, 0)
                context = tf.distribute.get_replica_context
                result = strategy.run(lambda: context().all_reduce("SUM", tf.constant(1.0)))  # noqa: B023
                self.assertEqual(float(strategy.experimental_local_results(result)[0]), replicas)

    def test_the_older_form(self):
        assignment = DeviceAssignment.build(line_of(2), num_replicas=2)
        with strategy_closed(tf.distribute.experimental.TPUStrategy(None, assignment)) as strategy:
            self.assertEqual(strategy.num_replicas_in_sync, 2)

    def test_a_divided_tensor_stays_divided(self):
        with strategy_closed(strategy_of(2)) as strategy:

            def step(x):
                split = strategy.experimental_split_to_logical_devices({"x": x}, [2])["x"]
                doubled = strategy.run_on_logical_devices(lambda part: 2 * part, (split,))
                back = []
                strategy.run_on_logical_devices(lambda part: back.append(len(part)), (doubled,))
                return doubled, back

            doubled, lengths = strategy.run(step, (np.arange(4.0),))
            self.assertEqual(doubled.tolist(), [0.0, 2.0, 4.0, 6.0])
            self.assertEqual(lengths, [2, 2])
            np.testing.assert_array_equal(doubled + 1, [1, 3, 5, 7])  # outside it is a tensor like any other

    def test_devices_meet(self):
        with strategy_closed(strategy_of(2)) as strategy:

            def on_device(part, *, scale):
                context = tf.distribute.get_replica_context()
                return scale * context.all_reduce(tf.distribute.ReduceOp.SUM, tf.reduce_sum(part))

            def step(x):
                split = strategy.experimental_split_to_logical_devices(x, [2])
                return strategy.run_on_logical_devices(on_device, (split,), {"scale": 2.0})

            self.assertEqual(float(strategy.run(step, (np.arange(4.0),))), 12.0)

    def test_functions_on_every_device(self):
        calls = []

        @tf.distribute.on_logical_devices
        def model(x, *, box):
            calls.append((threading.get_ident(), x.shape, box.shape))
            return x + box

        self.assertEqual(model(np.ones(2), box=np.ones(2)).tolist(), [2, 2])
        calls.clear()
        with strategy_closed(strategy_of(4)) as strategy:

            def step(x, box):
                x = strategy.experimental_split_to_logical_devices(x, [2, 2])
                box = strategy.experimental_replicate_to_logical_devices(box)
                return model(x, box=box)

            result = strategy.run(step, (np.arange(16.0).reshape(4, 4), np.ones((2, 2))))
            np.testing.assert_array_equal(result.numpy(), 1 + np.arange(16.0).reshape(4, 4))
            self.assertEqual(len({thread for thread, _, _ in calls}), 4)
            self.assertEqual([shapes for _, *shapes in calls], [[(2, 2), (2, 2)]] * 4)

    def test_the_host_as_a_mesh(self):
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
        self.assertIsNone(tf.config.experimental_connect_to_cluster(resolver))
        topology = tf.tpu.experimental.initialize_tpu_system(resolver)
        self.assertEqual((topology.mesh_shape.tolist(), resolver.num_accelerators()), ([1, 2, 2, 2], {"TPU": 8}))
        self.assertEqual((resolver.master(), resolver.task_type, resolver.task_id), ("", "worker", 0))
        self.assertEqual(resolver.get_tpu_system_metadata().num_cores, 8)
        self.assertFalse(resolver.cluster_spec())
        with strategy_closed(tf.distribute.TPUStrategy(resolver)) as strategy:
            self.assertEqual(strategy.num_replicas_in_sync, 8)
            self.assertIs(strategy.cluster_resolver, resolver)
        other = tf.distribute.cluster_resolver.TPUClusterResolver(mesh_shape=[1, 1, 1, 2])
        other.set_tpu_topology(topology.serialized())
        self.assertEqual(other.num_devices, 8)
        tf.tpu.experimental.shutdown_tpu_system(resolver)
        for bad in ({"tpu": "grpc://10.0.0.1"}, {"mesh_shape": [2, 2]}, {"mesh_shape": [0, 1, 1, 1]}):
            with self.subTest(str(bad)), self.assertRaises(ValueError):
                tf.distribute.cluster_resolver.TPUClusterResolver(**bad)

    def test_outside_of_a_replica(self):
        with strategy_closed(strategy_of(2)) as strategy:
            with self.assertRaises(libdist.FailedPrecondition):
                strategy.experimental_split_to_logical_devices(np.ones(2), [2])


if __name__ == "__main__":
    unittest.main()
