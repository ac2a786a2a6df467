#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the pages that the examples write: they need no network, escape names, and report a busy machine.

The environment variable EXAMPLES is the folder of the examples.
"""

import copy
import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
from html.parser import HTMLParser

EXAMPLES = pathlib.Path(os.environ["EXAMPLES"])
sys.path[:0] = [str(EXAMPLES / "charts"), str(EXAMPLES / "digits"), str(EXAMPLES)]
import charts  # noqa: E402  (found through the path above)
import parameter_server_report  # noqa: E402
import report  # noqa: E402

HOSTILE = "</script><script>alert(1)</script><!--\"'&"


class Reader(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, page):
        super().__init__(convert_charrefs=False)
        self.elements, self.scripts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.lasttag == "script":
            self.scripts[-1] += data.strip()


class Pages(unittest.TestCase):
    def written(self, page):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.html"
            page.write(path)
            return path.read_text(encoding="utf-8")

    def hostile(self):
        page = charts.Page(HOSTILE)
        page.add(charts.table(("a", HOSTILE), [(HOSTILE, HOSTILE)], HOSTILE) + charts.tiles([(HOSTILE, HOSTILE)]))
        page.timeline(HOSTILE, [HOSTILE], [(HOSTILE, "wait")], [(0, 0, 0.0, 1.0, HOSTILE)])
        page.lines(HOSTILE, [1], "epoch", [(HOSTILE, "test", [0.5])])
        return self.written(page)

    def test_names_are_escaped(self):
        page = self.hostile()
        self.assertNotIn("<script>alert", page)
        data, code = Reader(page).scripts
        timeline, lines = json.loads(data)
        self.assertEqual((timeline["title"], timeline["rows"], timeline["spans"][0][4]), (HOSTILE, [HOSTILE], HOSTILE))
        self.assertEqual(lines["lines"][0]["name"], HOSTILE)
        self.assertIn("new uPlot(", code)

    def test_nothing_is_loaded(self):
        page = self.hostile()
        for tag, attributes in Reader(page).elements:
            self.assertNotIn(tag, ("link", "iframe", "object", "embed", "base"))
            for name in ("src", "href", "srcset", "action", "poster"):
                self.assertRegex(attributes.get(name) or "#", r"^(#|data:)")
        self.assertNotRegex(page, r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|importScripts|sendBeacon")
        self.assertIn("default-src 'none'", page)

    def test_license_of_the_chart_library_is_in_the_page(self):
        self.assertIn("Copyright (c) 2022 Leon Sorokin", self.hostile())

    def test_chart_library_is_what_its_readme_states(self):
        folder = EXAMPLES / "charts" / "uplot"
        stated = re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE)
        self.assertEqual({name for name, _ in stated}, {p.name for p in folder.iterdir()} - {"README.md"})
        for name, digest in stated:
            self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), digest, name)
        version = re.search(r"^# uPlot (\S+)$", (folder / "README.md").read_text(), re.MULTILINE)[1]
        self.assertIn(f"(v{version})", (folder / "uPlot.iife.min.js").read_text(encoding="utf-8"))

    def test_failed_closures_are_marked(self):
        def slice_of(category, status):
            return {"ts": 0, "dur": 5, "cat": category, "name": HOSTILE, "args": {"status": status}}

        closures = [slice_of("closure", "OK"), slice_of("closure", "ABORTED")]
        page, _ = parameter_server_report.make_page({"worker 0": closures, "ps 0": [slice_of("ps", "OK")]}, closures)
        self.assertEqual(sorted(kind for _, kind, *_ in page.charts[0]["spans"]), [0, 1, 2])
        self.assertIn("<dt>failed</dt><dd>1</dd>", self.written(page))


class BusyMachine(unittest.TestCase):
    """Two replicas that trained for 10 s in one process on two CPUs."""

    IDLE = {
        "num_replicas": 2,
        "machines": [
            {
                "machine": 0,
                "cpus": 2,
                "all_cpus": 2,
                "wall_ns": 10e9,
                "own_ns": 15e9,
                "delay_ns": 0.2e9,
                "busy_ns": 15.5e9,
                "stolen_ns": 0,
            }
        ],
        "replicas": 2 * [{"total_ns": {"compute": 6e9}, "cpu_ns": {"compute": 5.9e9}}],
    }

    def reason(self, **changes):
        run = copy.deepcopy(self.IDLE)
        run["machines"][0].update(changes)
        return report.busy_machine(run)

    def test_an_idle_machine(self):
        self.assertIsNone(report.busy_machine(self.IDLE))

    def test_waiting_for_a_cpu_needs_a_cause(self):
        self.assertIsNone(self.reason(delay_ns=8e9))

    def test_other_programs(self):
        words = "other programs used 1.2 of 2 CPUs, and the run's threads waited 8.0 s in total for a free CPU"
        self.assertEqual(self.reason(delay_ns=8e9, own_ns=7e9, busy_ns=19e9), words)
        # They do no harm if the threads do not wait for them.
        self.assertIsNone(self.reason(own_ns=7e9, busy_ns=19e9))

    def test_fewer_cpus_than_replicas(self):
        self.assertIn("2 replicas shared 1 CPU,", self.reason(delay_ns=8e9, cpus=1))

    def test_a_hypervisor(self):
        self.assertIn("gave 10% of the CPU time to other", self.reason(delay_ns=8e9, stolen_ns=2e9))

    def test_a_kernel_that_does_not_report_the_waiting(self):
        self.assertIsNone(self.reason(delay_ns=0, own_ns=7e9, busy_ns=19e9))
        run = copy.deepcopy(self.IDLE)
        run["machines"][0].update(delay_ns=0, own_ns=7e9, busy_ns=19e9)
        run["replicas"][0]["cpu_ns"]["compute"] = 3e9
        self.assertEqual(report.busy_machine(run), "other programs used 1.2 of 2 CPUs")

    def test_processes_of_one_run_are_no_other_programs(self):
        run = copy.deepcopy(self.IDLE)
        run["machines"][0].update(delay_ns=4e9, own_ns=7.5e9)
        run["machines"] *= 2
        self.assertIsNone(report.busy_machine(run))
        run["machines"] = [run["machines"][0], {**run["machines"][0], "machine": None}]
        self.assertIn("other programs used 0.8 of 2 CPUs", report.busy_machine(run))


if __name__ == "__main__":
    unittest.main(verbosity=2)
