# SPDX-License-Identifier: Apache-2.0
"""The examples, which a user would copy: what they print, and that they reach the same bits as C's."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PYTHON = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = PYTHON / "examples"


def run(name, *arguments):
    program = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=300).stdout


def run_c(variable, *arguments):
    """What the C program says; skips where it is not built."""
    if variable not in os.environ:
        raise unittest.SkipTest(f"{variable} is not set: the C program is not built")
    program = [os.environ[variable], *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=300).stdout


def parameters(text):
    return re.search(r"^parameters: (\w{64})$", text, re.MULTILINE).group(1)


class Examples(unittest.TestCase):
    def test_all_reduce(self):
        self.assertEqual(run("all_reduce"), "".join(f"replica {r}: [10. 20. 30.]\n" for r in range(4)))

    def test_batch_reduce_to(self):
        self.assertEqual([run("batch_reduce_to", r) for r in (2, 1)], ["2.0 2.0\n", "1.0\n"])

    def test_resume(self):
        self.assertTrue(run("resume").endswith("all rows: 276, as 276 should be\n"))

    def test_overlap(self):
        self.assertEqual(run("overlap"), "[-4.5, -7.5, -10.5] on every replica: True\n")

    def test_logical_devices(self):
        self.assertEqual(run("tpu_split"), run_c("TPU_SPLIT"))

    def test_the_training_loop_reaches_the_bits_of_c(self):
        for replicas in (1, 2, 3):
            self.assertEqual(run("training_loop", replicas), run_c("TRAINING_LOOP", replicas))

    def test_the_digits_trainer_reaches_the_bits_of_c(self):
        for options in (["--replicas", 2], ["--replicas", 3, "--numerics", "reproducible"]):
            arguments = ["--epochs", 1, *options]
            self.assertEqual(parameters(run("digits", *arguments)), parameters(run_c("TRAIN_DIGITS", *arguments)))

    def test_the_readmes_programs(self):
        text = (PYTHON / "README.md").read_text(encoding="utf-8")
        programs = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", text, re.DOTALL)
        self.assertEqual(len(programs), 2)
        for program, printed in programs:
            with tempfile.TemporaryDirectory() as elsewhere:  # where no folder is called libdist
                result = subprocess.run(
                    [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=elsewhere
                )
            self.assertEqual(result.stdout, printed)


if __name__ == "__main__":
    unittest.main()
