#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the digits trainer with worker processes, started by dist-launch.

The environment variables PROGRAM, REPORT and LAUNCH are the paths of train_digits, report.py and dist-launch.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from test_digits import PROGRAM, REPORT, Case

LAUNCH = os.environ["LAUNCH"]


class Processes(Case):
    def launched(self, *arguments, workers=2, replicas=2):
        launch = (LAUNCH, "-n", workers, "--replicas", replicas, "--", PROGRAM)
        return [str(one) for one in (*launch, *arguments)]

    def launch(self, *arguments, **layout):
        """Runs a job, which must succeed, and returns its lines without their prefix. Only worker 0 may print."""
        done = subprocess.run(self.launched(*arguments, **layout), capture_output=True, text=True, timeout=380)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual([line for line in lines if not line.startswith("[worker 0] ")], [])
        return [line.removeprefix("[worker 0] ") for line in lines]

    def test_they_have_the_bits_of_one_process(self):
        told = self.folder / "run.json"
        alone = self.train("--epochs", 2, "--replicas", 4, "--report", told)
        expected = json.loads(told.read_text())
        told.unlink()
        lines = self.launch("--epochs", 2, "--report", told)
        self.assertIn("2 workers of 2 replicas each, a process each", lines)
        self.assertEqual(lines[-2:], alone[-3:-1])  # the accuracy, and the hash of the parameters
        run_told = json.loads(told.read_text())
        self.assertEqual((run_told["num_workers"], run_told["num_replicas"]), (2, 4))
        self.assertEqual(run_told["parameters"], expected["parameters"])
        # The workers combine the misread rows that each of them has found.
        self.assertEqual(run_told["wrong"], expected["wrong"])
        self.assertEqual(run_told["clocks"], [{"same_machine": True, "offset_ns": 0, "uncertainty_ns": 0}] * 2)
        # The workers share one clock: no all_reduce of a step ends before the last replica has computed for
        # it.
        self.assertEqual([len(replica["events"]) for replica in run_told["replicas"]], [3 * 46] * 4)
        for step in range(1, run_told["steps"] + 1):
            events = [e for replica in run_told["replicas"] for e in replica["events"] if e[0] == step]
            self.assertEqual(len(events), 12)
            last = max(end for _, kind, _, end, _ in events if kind == "compute")
            self.assertLessEqual(last, min(end for _, kind, _, end, _ in events if kind == "all_reduce"))

    def test_other_layouts(self):
        alone = self.parameters("--epochs", 1, "--replicas", 3)
        self.assertIn(alone, self.launch("--epochs", 1, workers=3, replicas=1))
        # The command line takes precedence over DIST_REPLICAS.
        self.assertIn(alone, self.launch("--epochs", 1, "--replicas", 3, workers=1, replicas=2))

    def test_a_step_that_fails_is_taken_again(self):
        lines = self.launch("--epochs", 1, "--fault", "3@5")
        self.assertRegex("\n".join(lines), r"step 5: replica 3 failed; all others were told ABORTED: (.|\n)*from step 5\n")
        self.assertIn(self.parameters("--epochs", 1, "--replicas", 4), lines)

    def running(self, *arguments):
        """Starts a job, and returns it after its first epoch."""
        process = subprocess.Popen(
            self.launched("--epochs", 100000, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.terminate)
        for line in process.stdout:
            if line.startswith("[worker 0] epoch 1/"):
                return process
        self.fail(process.stderr.read())

    def process_of(self, launcher, worker):
        """Returns the process id of a worker. Its TF_CONFIG, which the launcher has set, identifies it."""
        children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        for child in children:
            for variable in pathlib.Path(f"/proc/{child}/environ").read_text().split("\0"):
                if variable.startswith("TF_CONFIG="):
                    if json.loads(variable.removeprefix("TF_CONFIG="))["task"]["index"] == worker:
                        return int(child)
        self.fail(f"worker {worker} is not among {children}")

    def test_a_worker_that_is_killed_is_named(self):
        process = self.running()
        os.kill(self.process_of(process, 1), signal.SIGKILL)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertRegex(said, r"(?m)^\[worker 0\] train_digits: worker 0: .*worker 1 is lost")
        self.assertIn("dist-launch: worker 1 was killed by SIGKILL", said)

    def test_an_interrupt_ends_all_after_the_same_step(self):
        report = self.folder / "run.json"
        process = self.running("--report", report)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, said)
        told = json.loads(report.read_text())
        self.assertTrue(told["interrupted"])
        self.assertIn(f"[worker 0] interrupted after step {told['steps']}\n", printed)
        self.assertEqual(printed.count("interrupted"), 1)
        self.assertRegex(said, r"^dist-launch: SIGINT [^\n]*\n$")

    def test_workers_with_different_options_do_not_train(self):
        for option, value, words in (
            ("--seed", 2, "worker 1 has 2 for --seed, and worker 0 has 1: start all with the same options and data"),
            ("--epochs", 3, "worker 1 has 3 for --epochs, and worker 0 has 40"),
            ("--replicas", 3, "worker 1 has 3 for the number of its replicas, and worker 0 has 2"),
            ("--data", self.folder / "own.csv", "worker 1 has 20 for the rows of the data, and worker 0 has 1797"),
        ):
            with self.subTest(option=option):
                (self.folder / "own.csv").write_text("".join(f"{i},{i % 3}\n" for i in range(20)))
                script = 'case $TF_CONFIG in *\'"index":1\'*) exec "$@";; esac; exec "$1"'
                launch = (LAUNCH, "-n", "2", "--", "sh", "-c", script, "sh", PROGRAM, option, str(value))
                done = subprocess.run(launch, capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                # Both workers get the error, but the first one may end before the other has printed it, which
                # ends the job.
                self.assertRegex(done.stderr, f"train_digits: worker [01]: start: {words}")

    def test_a_job_that_cannot_be_is_refused(self):
        workers = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
        first = {"type": "worker", "index": 0}
        for config, arguments, words in (
            ("{", (), "train_digits: TF_CONFIG: TF_CONFIG is not JSON: "),
            ({"cluster": 5}, (), '"cluster" in TF_CONFIG is a number'),
            ({"cluster": workers}, (), "it names a cluster, but not which task of it this process is"),
            ({"cluster": workers, "task": {"type": "worker", "index": 2}}, (), "the task id is 2"),
            ({"cluster": workers, "task": {"type": "evaluator", "index": 0}}, (), 'the task\'s type is "evaluator"'),
            ({"cluster": workers, "task": first}, ("--workers", 2), "this one worker 0 of 2: leave one of them out"),
            ({"cluster": workers, "task": first}, ("--replicas", "1,2"), "2 workers need one number of replicas"),
            ({"cluster": workers, "task": first}, ("--fault", "4@1"), "--fault names replica 4, but there are 4"),
        ):
            with self.subTest(words=words):
                text = config if isinstance(config, str) else json.dumps(config)
                done = subprocess.run(
                    [PROGRAM, *map(str, arguments)],
                    env={**os.environ, "TF_CONFIG": text},
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(words, done.stderr)

    def test_page_of_the_report(self):
        told, page = self.folder / "run.json", self.folder / "page.html"
        self.launch("--epochs", 1, "--report", told)
        run_told = json.loads(told.read_text())
        # Simulates a worker 1 on another machine with another clock.
        run_told["clocks"][1] = {"same_machine": False, "offset_ns": -12345678, "uncertainty_ns": 2500}
        for clocks, words in (
            (json.loads(told.read_text())["clocks"], "worker 1 runs on worker 0&#x27;s machine and has the same clock"),
            (run_told["clocks"], "worker 1&#x27;s clock is 12,345.7 µs behind worker 0&#x27;s (± 2.5 µs)"),
        ):
            told.write_text(json.dumps({**run_told, "clocks": clocks}))
            subprocess.run([sys.executable, REPORT, told, page], check=True, timeout=150)
            for shown in ("worker 0, replica 0", "worker 1, replica 3", f"<dt>clocks</dt><dd>{words}"):
                self.assertIn(shown, page.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
