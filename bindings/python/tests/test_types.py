# SPDX-License-Identifier: Apache-2.0
"""The package's annotations: mypy --strict on the package itself, and on a program that uses it."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

import libdist

if importlib.util.find_spec("mypy") is None:
    raise unittest.SkipTest("mypy is not installed for this Python")

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(libdist.__file__).resolve().parent
INSTALLED = PACKAGE.parent.name == "site-packages"  # where mypy looks by itself
ENVIRONMENT = {**os.environ, "MYPYPATH": "" if INSTALLED else str(PACKAGE.parent)}


STRICT = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull]
version = subprocess.run([*STRICT[:3], "--version"], capture_output=True, text=True).stdout.split()[1]
if tuple(int(number) for number in version.split(".")[:2]) < (1, 5):  # Debian 12's, to which Unpack is new
    STRICT.append("--enable-incomplete-feature=Unpack")


class Types(unittest.TestCase):
    def check(self, *arguments):
        result = subprocess.run(
            [*STRICT, *arguments],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_program(self):
        self.check(str(HERE / "typed_program.py"))

    def test_a_wrong_program_is_found(self):
        result = subprocess.run(
            [*STRICT, "-c", "import libdist\nlibdist.Strategy(2).run(lambda replica: replica.all_reduc(1, 2))\n"],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
        self.assertIn("all_reduc", result.stdout)

    def test_wrong_options_are_found(self):
        program = (
            "import libdist\n"
            "with libdist.Strategy(2, timeout=5.0, reform=libdist.Reform.EXPLICIT) as strategy:\n"
            "    strategy.run(print, timeout=1.0)\n"
            "    strategy.run(print, timeouts=1.0)\n"
            "    strategy.run(print, timeout='1')\n"
        )
        result = subprocess.run([*STRICT, "-c", program], capture_output=True, text=True, env=ENVIRONMENT)
        lines = [line.split(":")[1] for line in result.stdout.splitlines() if ": error: " in line]
        self.assertEqual(lines, ["4", "5"], result.stdout)

    def test_the_package(self):
        self.check("-p", "libdist")

    def test_the_program_runs(self):
        subprocess.run([sys.executable, str(HERE / "typed_program.py")], check=True, capture_output=True)


if __name__ == "__main__":
    unittest.main()
