# SPDX-License-Identifier: Apache-2.0
"""libdist.info() and `python -m libdist info`, with the program dist-info in PATH."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import libdist
from libdist import _info


def environment(**variables):
    return mock.patch.dict(os.environ, variables)


@contextlib.contextmanager
def program(text):
    """PATH has only this dist-info; none if the text is empty."""
    with tempfile.TemporaryDirectory() as folder, environment(PATH=folder):
        if text:
            path = pathlib.Path(folder, "dist-info")
            path.write_text(text)
            path.chmod(0o755)
        yield folder


def run_module(*arguments):
    return subprocess.run([sys.executable, "-m", "libdist", *arguments], capture_output=True, text=True, check=False)


class Info(unittest.TestCase):
    def test_it_describes_the_library_of_this_process(self):
        report = libdist.info()
        self.assertEqual(report["version"], libdist.__version__)
        self.assertTrue(os.path.samefile(report["library"], _info.library()))
        self.assertNotIn("check", report)

    def test_it_finds_a_problem_in_tf_config(self):
        with environment(TF_CONFIG="{"):
            check = libdist.info(check=True)["check"]
        self.assertFalse(check["ok"])
        problems = [finding["text"] for finding in check["findings"] if finding["outcome"] == "problem"]
        self.assertTrue(any("TF_CONFIG" in text for text in problems), problems)

    def test_a_program_beside_the_library_comes_first(self):
        with tempfile.TemporaryDirectory() as folder, program("#!/bin/sh\nexit 9\n"):
            for place in ["lib", "bin"]:
                os.mkdir(os.path.join(folder, place))
            with mock.patch.object(_info, "library", lambda: os.path.join(folder, "lib", "libdist.so.1")):
                for place in ["bin", "lib"]:
                    path = pathlib.Path(folder, place, "dist-info")
                    answer = f'{{"version": "{libdist.__version__}", "place": "{place}", "libraries": "%s"}}'
                    path.write_text(f"#!/bin/sh\nprintf '{answer}' \"$LD_LIBRARY_PATH\"\n")
                    path.chmod(0o755)
                    report = libdist.info()
                    self.assertEqual(report["place"], place)
                    self.assertEqual(report["libraries"].split(":")[0], os.path.join(folder, "lib"))

    def test_a_missing_program_is_not_found(self):
        with program("") as folder, self.assertRaises(libdist.NotFound) as raised:
            libdist.info()
        own = os.path.dirname(_info.library())
        for place in [own, os.path.join(os.path.dirname(own), "bin"), folder, "Install the programs"]:
            self.assertIn(place, str(raised.exception))

    def test_a_program_that_fails_is_an_error_with_its_words(self):
        with program("#!/bin/sh\necho 'no library' >&2\nexit 127\n") as folder:
            with self.assertRaises(libdist.FailedPrecondition) as raised:
                libdist.info()
        self.assertEqual(str(raised.exception), f"info(): {folder}/dist-info failed with status 127: no library")
        with program("not a program") as folder, self.assertRaises(libdist.FailedPrecondition) as raised:
            libdist.info()
        self.assertIn(f"cannot run {folder}/dist-info", str(raised.exception))

    def test_a_program_of_another_version_is_refused(self):
        with program("""#!/bin/sh\necho '{"version": "0.0.1", "library": "/x/libdist.so.1"}'\n"""):
            with self.assertRaisesRegex(libdist.FailedPrecondition, r"describes libdist 0.0.1 \(/x/libdist.so.1\)"):
                libdist.info()

    def test_a_program_that_does_not_end_is_killed(self):
        with program("#!/bin/sh\nexec /usr/bin/tail -f /dev/null\n"), mock.patch.object(_info, "_TIMEOUT", 0.1):
            with self.assertRaises(libdist.DeadlineExceeded):
                libdist.info()

    def test_the_command_passes_arguments_and_the_status(self):
        report = run_module("info", "--version")
        self.assertEqual(report.stdout, f"dist-info (libdist) {libdist.__version__}\n")
        self.assertEqual(report.returncode, 0)
        with environment(TF_CONFIG="{"):
            checked = run_module("info", "--check")
        self.assertEqual(checked.returncode, 1)
        self.assertIn("TF_CONFIG", checked.stdout)
        self.assertEqual(run_module("info", "--chekc").returncode, 2)
        self.assertEqual(run_module("infos").returncode, 2)
        with program(""):
            missing = run_module("info")
        self.assertEqual((missing.returncode, missing.stdout), (125, ""))
        self.assertIn("Install the programs", missing.stderr)


if __name__ == "__main__":
    unittest.main()
