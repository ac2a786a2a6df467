# SPDX-License-Identifier: Apache-2.0
"""The documented programs of tf.distribute (examples/tf): their results are those of TensorFlow 2.21, unchanged."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np
from servers_together import free_addresses

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples" / "tf"
sys.path.insert(0, str(EXAMPLES))

# TensorFlow's results of the same programs, with "CPU:0" for "GPU:0".
PRINTED = [
    """MirroredVariable:{
  0: <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>,
  1: <tf.Variable 'Variable/replica_1:0' shape=() dtype=float32, numpy=2.0>
}""",
    "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>",
    "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>",
]
CUBE = [[0, 1, 2], [3, 4, 5]]
RESULTS = {
    "strategy_run": {
        "tensor_input": [6.0, 6.0],
        "distributed_values_input": 4,
        "all_reduce_inside": [1, 1],
        "reduce": 1,
    },
    "replica_context": {
        "replica_ids": [0, 1],
        "all_reduce": [2.0, 2.0],
        "all_reduce_list": [[2.0, 4.0], [2.0, 4.0]],
        "all_gather": [[1, 2, 3, 1, 2, 3]] * 2,
        "all_gather_nest": [[[1, 2, 3, 1, 2, 3]] * 2, [[1, 2, 3, 4, 1, 2, 3, 4]] * 2],
    },
    "merge_call": {"merged": [10, 11]},
    "batch_reduce_to": {"batch_reduce_to": PRINTED, "reduce_to": PRINTED},
    "strategy_page": {name: [[25.0, float(np.float32(3.1)), 2.5]] * 2 for name in ("mirrored", "one", "central")},
    "tpu_run": {"replicas": 8, "results": [16]},
    "split_page": {"shape": (4, 4, 8, 3), "all": True},
    "values_from_function": {"constant": [1.0, 1.0], "of_an_array": [3.0, 2.0], "num_replicas": [2, 2]},
    "datasets_from_function": {"distribute_dataset": [[[0], [2]], [[4], [6]]], "from_function": [8.0, 8.0, 8.0]},
    "tpu_split": {
        "split": {"shapes": [(4, 2, 2, 3)] * 8, "all": True},
        "assigned": 2.0,
        "replicated": [[2.0] * 4] * 2,
    },
    "mirrored_strategy": {
        "variable_in_scope": [("Variable:0", 1.0), ("Variable/replica_1:0", 1.0)],
        "variable_in_function": True,
        "training_loop": [45, 45],
    },
    "gather": {
        "two_replicas": [[1], [2], [1], [2]],
        "along_every_axis": [[CUBE] * 4, [CUBE * 4], [[row * 4 for row in CUBE]]],
    },
    "variable_aggregation": {
        "mean": [6.0, 6.0],
        "each_aggregation": {
            "NONE": [6.0, 7.0],
            "SUM": [8.0, 8.0],
            "MEAN": [6.5, 6.5],
            "ONLY_FIRST_REPLICA": [6.0, 6.0],
        },
        "on_read": 4.0,
        "update": [1.0, 1.0],
    },
}
# The tutorial in TensorFlow, with a Dense layer and SGD: loss, accuracy, test loss, test accuracy of each epoch.
HISTORY = [
    [0.4883885383605957, 90.83333587646484, 0.21290543675422668, 99.16666412353516],
    [0.16778311133384705, 99.58333587646484, 0.1342933624982834, 99.16666412353516],
    [0.11479835957288742, 99.58333587646484, 0.10444517433643341, 99.16666412353516],
    [0.09110226482152939, 99.58333587646484, 0.08832959085702896, 99.16666412353516],
]


class Examples(unittest.TestCase):
    def test_documented_programs(self):
        for name, expected in RESULTS.items():
            with self.subTest(name):
                self.assertEqual(importlib.import_module(name).main(), expected)

    def test_custom_training(self):
        program = importlib.import_module("custom_training")
        for replicas in (1, 2, 3):
            with self.subTest(replicas=replicas), contextlib.redirect_stdout(io.StringIO()) as printed:
                result = program.main(replicas)
                np.testing.assert_allclose(result["history"], HISTORY, rtol=2e-5)
                self.assertTrue(result["restored"])
                self.assertEqual(len(printed.getvalue().splitlines()), program.EPOCHS)

    @unittest.skipUnless("WORKERS_ARE_PROCESSES" in os.environ, "libdist-grpc is not built")
    def test_workers_that_are_processes(self):
        for replicas in (1, 2):  # of each worker
            with self.subTest(replicas=replicas):
                addresses = free_addresses(2)
                workers = [
                    subprocess.Popen(
                        [sys.executable, EXAMPLES / "multi_worker.py", str(w), *addresses],
                        env={**os.environ, "DIST_REPLICAS": str(replicas)},
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                    for w in range(2)
                ]
                printed = [worker.communicate(timeout=120)[0] for worker in workers]
                self.assertEqual([worker.returncode for worker in workers], [0, 0])
                total = 1.0 + sum(2.0 * (r + 1) for r in range(2 * replicas))
                expected = {
                    "replicas": 2 * replicas,
                    "variable": [total] * replicas,
                    "reduced": [2.0 * replicas] * replicas,
                }
                self.assertEqual([json.loads(one) for one in printed], [expected] * 2)

    @unittest.skipUnless("WORKERS_ARE_PROCESSES" in os.environ, "libdist-grpc is not built")
    def test_parameter_servers_that_are_processes(self):
        # One worker, for which the coordinator waits: one that came after the coordinator's end would wait for another.
        chief, *ps, worker = free_addresses(4)
        cluster = {"chief": [chief], "ps": ps, "worker": [worker]}
        tasks = [
            subprocess.Popen(
                [sys.executable, EXAMPLES / "parameter_server.py"],
                env={**os.environ, "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})},
                stdout=subprocess.PIPE,
                text=True,
            )
            for job, addresses in cluster.items()
            for index in range(len(addresses))
        ]
        first, *rest = [task.communicate(timeout=120)[0] for task in tasks]
        self.assertEqual([task.returncode for task in tasks], [0] * 4)
        self.assertEqual(rest, [""] * 3)
        result = json.loads(first.splitlines()[-1])
        self.assertGreater(result["history"][-1], 0.95)
        self.assertLess(result["loss"], 0.4)
        places = ["/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0"]
        self.assertEqual(result["shards"], places)

    def test_every_example_is_run(self):
        names = {path.stem for path in EXAMPLES.glob("*.py")}
        self.assertEqual(names, set(RESULTS) | {"custom_training", "multi_worker", "parameter_server"})

    def test_every_example_lists_its_changes(self):
        for path in EXAMPLES.glob("*.py"):
            with self.subTest(path.name):
                self.assertRegex(
                    path.read_text(), r"Lines that changed:\n    import tensorflow as tf +-> +import libdist.tf"
                )


if __name__ == "__main__":
    unittest.main()
