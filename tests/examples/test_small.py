#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The small examples print what their sources say. PROGRAM in the environment is the one to run."""

import os
import subprocess
import unittest

PROGRAM = os.environ["PROGRAM"]


def output_of(*arguments):
    return subprocess.run(
        [PROGRAM, *arguments], check=True, capture_output=True, text=True, timeout=60
    ).stdout


class Quickstart(unittest.TestCase):
    def test_every_replica_has_the_sum(self):
        self.assertEqual(output_of(), "".join(f"replica {r}: 60 64 68\n" for r in range(4)))

    def test_source_fits_on_the_first_screen(self):
        source = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "quickstart.c")
        with open(source, encoding="utf-8") as lines:
            self.assertLessEqual(len(lines.readlines()), 40)


class BatchReduceTo(unittest.TestCase):
    """The outcomes that TensorFlow has for its documented program, on 1 to 8 replicas."""

    def test_documented_outcomes(self):
        self.assertEqual(output_of(), "2.0 2.0\n")
        self.assertEqual(output_of("1"), "1.0\n")
        for replicas in (2, 3, 4, 8):
            self.assertEqual(output_of(str(replicas)), " ".join([f"{replicas}.0"] * replicas) + "\n")

    def test_an_impossible_number_is_an_error(self):
        done = subprocess.run([PROGRAM, "100000"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("batch_reduce_to: ", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
