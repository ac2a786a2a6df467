# SPDX-License-Identifier: Apache-2.0
"""The same ten errors in every language: bindings/errors.txt has what each says."""

import pathlib
import unittest

import numpy as np

import libdist
from libdist import ClusterResolver, DistError, ReduceOp, Strategy

FILE = pathlib.Path(__file__).parents[2] / "errors.txt"


def said_in(language):
    """name -> "function | parameter | message", from the file."""
    said, name = {}, ""
    for line in FILE.read_text("utf-8").splitlines():
        begin, _, rest = line.strip().partition(" | ")
        if not line.startswith(" "):
            name = line
        elif begin == language:
            said[name] = rest
    return said


class SameErrors(unittest.TestCase):
    maxDiff = None

    def test_what_python_says(self):
        strategy = Strategy(2)
        self.addCleanup(strategy.close)
        replicas = strategy.run(lambda replica: replica)
        variable = strategy.variable(np.zeros(2, np.float32), name="w")

        def other_shapes(replica):
            replica.all_reduce(ReduceOp.SUM, np.zeros(2 + replica.id, np.float32), tag="gradients")

        def one_returns(replica):
            if replica.id == 0:
                replica.barrier()

        resolver = ClusterResolver.tf_config(libdist.ClusterResolverOptions(tf_config="{"))
        errors = {
            "replicas": lambda: Strategy(-1),
            "group": lambda: strategy.group([0, 7]),
            "shapes": lambda: strategy.run(other_shapes),
            "left": lambda: strategy.run(one_returns),
            "root": lambda: strategy.run(lambda replica: replica.broadcast(7, np.zeros((), np.float32))),
            "stale": lambda: replicas[0].barrier(),
            "assign": lambda: variable.assign(np.zeros(3, np.float32)),
            "checkpoint": lambda: strategy.open_checkpoint("/nothing/here"),
            "tf_config": lambda: resolver.spec(),
            "device": lambda: libdist.canonical_device("GPU:x"),
        }
        said = {}
        for name, call in errors.items():
            with self.assertRaises(DistError, msg=name) as caught:
                call()
            error = caught.exception
            said[name] = f"{error.function} | {error.parameter} | {error}"
        self.assertEqual(said, said_in("Python"))


if __name__ == "__main__":
    unittest.main()
