#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that bench.py runs and judges results, with simulated programs: a far slower and a far faster one."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).with_name("bench.py")


class Bench(unittest.TestCase):
    program = ""

    def bench(self, *peers, epochs=1, accuracy=0.9):
        """Runs bench.py next to peers that report these times. Returns its exit status, lines and figures."""
        with tempfile.TemporaryDirectory() as folder:
            figures = pathlib.Path(folder) / "figures.json"
            command = [sys.executable, BENCH, self.program, "--rounds", 2, "--epochs", epochs, "--json", figures]
            for step, scan in peers:
                told = {form: {"seconds": s, "accuracy": accuracy} for form, s in (("step", step), ("scan", scan))}
                script = pathlib.Path(folder) / "peer.py"
                script.write_text(f"print({json.dumps(told)!r})", encoding="utf-8")
                command += ["--peer", "made up", sys.executable, script]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=100)
            told = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else None
        return done.returncode, done.stdout + done.stderr, told

    def test_a_slow_peer(self):
        status, lines, told = self.bench((1e6, 1e-6))
        self.assertEqual(status, 0, lines)
        self.assertRegex(lines, r"(?m)^made up, step .* floor 0.5 goal 0.7: goal$")
        self.assertRegex(lines, r"(?m)^made up, scan .* shown beside$")
        self.assertEqual([set(one["sides"]) for one in told], 2 * [{"libdist", "made up, step", "made up, scan"}])
        self.assertGreater(told[0]["sides"]["libdist"]["seconds"], 0)

    def test_a_fast_peer(self):
        status, lines, _ = self.bench((1e-6, 1e6))
        self.assertEqual(status, 1, lines)
        self.assertRegex(lines, r"(?m)^made up, step .* MISSED$")

    def test_without_peers(self):
        status, lines, told = self.bench()
        self.assertEqual(status, 0, lines)
        self.assertEqual(set(told[0]["sides"]), {"libdist"})

    def test_a_peer_that_has_not_learned(self):
        status, lines, told = self.bench((1e6, 1e6), epochs=10, accuracy=0.2)
        self.assertEqual((status, told), (1, None))
        self.assertIn("made up, step has learned too little: 0.200", lines)


if __name__ == "__main__":
    Bench.program = sys.argv.pop(1)
    unittest.main(verbosity=2)
