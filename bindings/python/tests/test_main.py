# SPDX-License-Identifier: Apache-2.0
"""`python -m libdist`."""

import pathlib
import subprocess
import sys
import unittest

import libdist


class Main(unittest.TestCase):
    def test_it_prints_version_library_and_features(self):
        done = subprocess.run([sys.executable, "-m", "libdist"], check=True, capture_output=True, text=True)
        told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        major, minor, patch = (int(part) for part in told.pop("libdist").split("."))
        self.assertEqual(10000 * major + 100 * minor + patch, libdist.version())
        self.assertIn(b"dist_all_reduce", pathlib.Path(told.pop("library")).read_bytes())
        self.assertEqual(told, {name: "yes" if libdist.has_feature(name) else "no" for name in told})
        self.assertEqual(told["pinning"], "yes")


if __name__ == "__main__":
    unittest.main()
