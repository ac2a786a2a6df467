#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the benchmark of examples/inference_host (./dev bench --host) with a small model. Its measurements are ignored.

Environment variables: PROGRAMS, the folder of inference_host and load; BENCH, the folder of bench.py; DATA, the folder
of the layer's weights."""

import http.server
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import types
import unittest

PROGRAMS, BENCH, DATA = (pathlib.Path(os.environ[name]) for name in ("PROGRAMS", "BENCH", "DATA"))
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(BENCH)]
import bench  # noqa: E402  (after the path is set)
import sentence_encoder  # noqa: E402
import servers  # noqa: E402
import swaps  # noqa: E402

TOKENS = 8
HOUR_US = "3600000000"  # a text waits for others as long as that


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.weights = cls.folder / "one.safetensors"
        layer = sentence_encoder.read(DATA / "weights.safetensors")
        sentence_encoder.write(cls.weights, sentence_encoder.with_embeddings(layer, 1))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def given(self, **more):
        return types.SimpleNamespace(folder=PROGRAMS, scratch=self.folder, tokens=TOKENS, seconds=0.3, queue=8, **more)

    def host(self, *options):
        server = servers.Server("host", [PROGRAMS / "inference_host", *options, self.folder, self.weights.name])
        self.addCleanup(server.stop)
        return server

    def run_bench(self, *options):
        command = [sys.executable, "-B", BENCH / "bench.py", PROGRAMS, self.weights, "--tokens", TOKENS, "--rounds", 2, *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Load(Bench):
    def load(self, *arguments):
        command = [PROGRAMS / "load", *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)

    def test_wrong_arguments(self):
        for arguments in [], [1, 1, 1], [1, 1, 0, 8], [1, -1, 1, 8], [1, 1, 1, 257], [1, 1, 1, 8, 0]:
            self.assertEqual(self.load(*arguments).returncode, 2, arguments)
        self.assertEqual(self.load(1, 1, 1, 8, 1, self.folder / "none" / "x").returncode, 1)

    def test_nobody_is_there(self):
        with socket.socket() as taken:  # by one that does not listen
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            done = self.load(port, 100, 1, 8)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"port {port}", done.stderr)

    def test_each_answer_has_its_line(self):
        server = self.host()
        said, lines = server.ask(self.given(), 100)
        self.assertEqual((said["asked"], said["answered"], said["failed"]), (30, 30, 0))
        begin = '{"version": 1, "embedding": [' + f"{server.answer(self.given())['embedding'][0]:.9g}"[:6]
        for line in lines:
            self.assertEqual(line[2][: len(begin)], begin)
        meant = sorted(float(line[0]) for line in lines)
        for number, at in enumerate(meant):  # as the rate says, whenever they were sent
            self.assertAlmostEqual(at, 10.0 * number, delta=0.002)
        self.assertAlmostEqual(servers.percentile([float(line[1]) for line in lines], 0.5), said["p50_ms"], delta=0.011)

    def test_what_is_refused_and_what_fails_is_counted(self):
        """Four wait for ever, the others are refused; who waits has not been answered when it ends."""
        said, lines = self.host("-r", 1, "-q", 4, "-b", 64, "-d", HOUR_US, "-t", 0).ask(self.given(), 50)
        self.assertEqual((said["asked"], said["refused"], said["failed"], lines), (15, 11, 4, []))


class Capacity(Bench):
    def test_who_refuses_has_none(self):
        server = self.host("-r", 1, "-q", 4, "-b", 64, "-d", HOUR_US, "-t", 0)
        with self.assertRaisesRegex(SystemExit, "refuses some of 8 connections"):
            server.capacity_now(self.given())

    def test_it_is_the_median_of_rounds(self):
        given, rates = self.given(rounds=3), iter([30.0, 3.0, 10.0, 1.0, 20.0, 2.0])
        many = [types.SimpleNamespace(capacities=[], capacity_now=lambda _: next(rates)) for _ in range(2)]
        bench.measure_capacities(many, given)
        self.assertEqual([server.capacity for server in many], [20.0, 2.0])

    def test_common_rates_are_the_better_peers(self):
        one, two, three = (
            types.SimpleNamespace(capacity=capacity, sets_rates=peer) for capacity, peer in ((9.0, False), (4.0, True), (6.0, True))
        )  # fmt: skip
        loads = bench.plan([one, two, three])
        self.assertEqual([rate for server, kind, _, rate in loads if server is one and kind == bench.OWN], [4.5, 9.0, 18.0])
        self.assertEqual([rate for server, kind, _, rate in loads if server is one and kind == bench.SAME], [3.0, 6.0, 12.0])
        self.assertEqual([rate for server, kind, _, rate in loads if server is two and kind == bench.SAME], [3.0, 6.0, 12.0])
        self.assertNotIn((three, bench.SAME), [load[:2] for load in loads])
        self.assertEqual(len(bench.plan([one])), 3)

    def test_percentiles(self):
        times = [float(number) for number in range(1000, 0, -1)]
        self.assertEqual([servers.percentile(times, part) for part in (0.0, 0.5, 0.99, 0.999, 1.0)], [1, 501, 991, 1000, 1000])
        self.assertEqual(servers.percentile([], 0.99), 0.0)

    def test_a_tally_is_of_all_rounds(self):
        tally = servers.Tally(10.0)
        for times in [1.0, 2.0], [3.0]:
            tally.add(2.0, {"asked": 3, "rate": 0.5 * len(times), "refused": 1, "failed": 0, "cpu": 0.25}, times)
        self.assertEqual((tally.asked, tally.answered, tally.refused, tally.seconds, tally.cpu), (6, 3.0, 2, 4.0, 1.0))
        self.assertEqual((tally.times, tally.p99s), ([1.0, 2.0, 3.0], [2.0, 3.0]))


class Whole(Bench):
    def test_loads(self):
        said = self.run_bench("--seconds", 0.5)
        rows = [line.split(" | ") for line in said.splitlines() if line.startswith("| libdist")]
        self.assertEqual([row[1] for row in rows[1:]], ["half", "all", "twice"])
        capacity = float(rows[0][1].split()[0])
        for row, part in zip(rows[1:], (0.5, 1.0, 2.0)):
            self.assertAlmostEqual(float(row[2]), part * capacity, delta=0.1 + 0.1 * part)
            self.assertEqual(row[8], "0", "failed")

    def test_other_vectors_are_no_peer(self):
        one, two = (
            types.SimpleNamespace(name=name, answer=lambda _, by=by: {"embedding": [by]}) for name, by in (("a", 0.0), ("b", 2e-5))
        )  # fmt: skip
        bench.servers_agree([one, one], None)
        with self.assertRaisesRegex(SystemExit, "b answers another vector than a"):
            bench.servers_agree([one, two], None)

    def test_swaps(self):
        said = self.run_bench("--swap", "--seconds", 0.5, "--every", 0.05)
        self.assertGreater(int(re.search(r"(\d+) swaps, .* 0 failed", said)[1]), 0)
        self.assertIn("Torn: 0. Failed: 0.", said)


class Torn(Bench):
    def test_an_answer_of_the_other_model_is_seen(self):
        right = [[0.1] * 8, [0.1] * 7 + [0.1001]]
        text = '{"version": %d, "embedding": [0.1, 1e-01, 0.1, 0.1, 0.1, 0.1, 0.1, %s, 7'
        self.assertFalse(swaps.is_torn(text % (1, 0.1), right))
        self.assertFalse(swaps.is_torn(text % (4, 0.1001), right))
        self.assertTrue(swaps.is_torn(text % (2, 0.1), right))
        self.assertTrue(swaps.is_torn(text % (3, 0.1001), right))
        self.assertTrue(swaps.is_torn(text % (3, -0.1), right))

    def test_every_part_of_the_other_model_differs(self):
        """So that no mixture of the two is one of them."""
        swaps.make_other(self.weights, self.folder / "two.safetensors")
        one, two = sentence_encoder.read(self.weights), sentence_encoder.read(self.folder / "two.safetensors")
        changed = {name for name in one if one[name] != two[name]}
        self.assertEqual(changed, {name for name in one if name.endswith("LayerNorm.bias")})

    def test_a_swap_that_fails_is_counted(self):
        class Refuses(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_error(503)

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            made_up = types.SimpleNamespace(version=1, port=server.server_address[1])
            made_up.post = types.MethodType(servers.Server.post, made_up)
            with swaps.Swapper(made_up, 3600) as swapper:
                swapper.swap()
            thread.join()
        self.assertEqual((swapper.failed, swapper.took, made_up.version), (1, [], 1))


if __name__ == "__main__":
    unittest.main()
