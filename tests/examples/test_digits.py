#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the digits trainer from a user's perspective: its output, its exit status, and the files that it leaves behind.

The environment variables PROGRAM and REPORT are the paths of train_digits and report.py.
"""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["PROGRAM"]
REPORT = os.environ["REPORT"]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=380)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, *arguments):
        """Runs the program, which must succeed, and returns the lines that it prints."""
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def parameters(self, *arguments):
        lines = [line for line in self.train(*arguments) if line.startswith("parameters: ")]
        self.assertEqual(len(lines), 1)
        return lines[0]


class Training(Case):
    def test_last_lines(self):
        lines = self.train("--epochs", 2)
        self.assertEqual(sum(line.startswith("epoch ") for line in lines), 2)
        self.assertRegex(lines[-3], r"^test accuracy: 0\.\d{3}$")
        self.assertRegex(lines[-2], r"^parameters: [0-9a-f]{64}$")
        self.assertRegex(
            lines[-1],
            r"^all_reduce of 102,090 gradients: libdist [\d.]+ us, std::barrier and loops "
            r"[\d.]+ us \([\d.]+ times as fast\)$",
        )

    def test_it_learns(self):
        accuracy = float(self.train()[-3].removeprefix("test accuracy: "))
        self.assertGreaterEqual(accuracy, 0.95)

    def test_bits_are_a_function_of_replicas_epochs_and_seed(self):
        for replicas in (1, 2, 3):
            arguments = ("--epochs", 2, "--replicas", replicas)
            self.assertEqual(self.parameters(*arguments), self.parameters(*arguments))
        self.assertNotEqual(self.parameters("--epochs", 1), self.parameters("--epochs", 1, "--seed", 2))

    def test_more_replicas_than_rows_in_a_batch(self):
        # The sums must be the same as on one replica, although some replicas have no row and all others have
        # one.
        arguments = ("--epochs", 1, "--replicas")
        self.assertEqual(self.parameters(*arguments, 70), self.parameters(*arguments, 1))


class Scaling(Case):
    HEAD = "replicas  seconds = compute + all_reduce + update +  rest  speed-up  accuracy  parameters"
    ROW = r"^ *(one core|\d+)" + r" +(\d+\.\d{3})" * 5 + r" +(\d+\.\d\d)  +(\d\.\d{3})  ([0-9a-f]{16})$"

    def table(self, lines):
        """Returns the rows of the table: replicas, seconds, their four parts, speed-up, accuracy, the hash's first digits."""
        head = lines.index(self.HEAD)
        return [re.match(self.ROW, line).groups() for line in lines[head + 1 : -1]]

    def test_any_number_of_replicas_gives_the_same_bits(self):
        # 3 and 5 do not divide the 8 micro-batches of a batch, and with 11 replicas the last ones have none.
        lines = self.train("--epochs", 2, "--replicas", "1,2,3,4,5,8,11")
        rows = self.table(lines)
        self.assertEqual([row[0] for row in rows], ["one core", "1", "2", "3", "4", "5", "8", "11"])
        end = re.fullmatch(r"all 8 runs gave the same parameters: ([0-9a-f]{64})", lines[-1])
        self.assertEqual({row[8] for row in rows}, {end[1][:16]})
        self.assertEqual(len({row[7] for row in rows}), 1)
        losses = [line.split(",")[0] for line in lines if line.startswith("epoch 2/2: loss ")]
        self.assertEqual((len(losses), len(set(losses))), (8, 1))
        # A run that is not part of a list gives the same parameters.
        alone = self.parameters("--epochs", 2, "--replicas", 2, "--numerics", "reproducible")
        self.assertEqual(alone, f"parameters: {end[1]}")

    def test_a_last_batch_that_is_not_full(self):
        # 16 of 19 rows are used for training, which is two full micro-batches. 20 of 24 rows are two and one
        # with 4 rows.
        for rows in (19, 24):
            table = self.folder / "own.csv"
            table.write_text("".join(f"{i * 0.37},{i % 7},{i % 3}\n" for i in range(rows)))
            lines = self.train("--data", table, "--epochs", 3, "--replicas", "1,2,3,4")
            self.assertIn(f"{rows} rows: {rows - rows // 5} to train on", lines[0])
            self.assertRegex(lines[-1], r"^all 5 runs gave the same parameters: [0-9a-f]{64}$")

    def test_speed_up_is_against_one_core(self):
        rows = self.table(self.train("--epochs", 20, "--replicas", "2,1"))
        self.assertEqual([row[0] for row in rows], ["one core", "2", "1"])
        self.assertEqual(rows[0][6], "1.00")
        for row in rows:
            speed_up, seconds = float(row[6]), float(row[1])
            self.assertAlmostEqual(speed_up * seconds / float(rows[0][1]), 1, delta=0.06)

    def test_seconds_are_the_sum_of_what_they_were_for(self):
        for row in self.table(self.train("--epochs", 20, "--replicas", "1,3")):
            seconds, *parts = map(float, row[1:6])
            self.assertAlmostEqual(seconds, sum(parts), delta=0.0026)  # each is rounded to a thousandth
            self.assertGreater(parts[0], 0)

    def test_one_core_has_one_thread(self):
        # The main thread makes the data and runs the loops.
        with subprocess.Popen(
            [PROGRAM, "--epochs", "100000", "--replicas", "2,1"], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                while "epoch 2/" not in (line := process.stdout.readline()):
                    self.assertTrue(line)
                self.assertIn("1 replica on one core", line)
                self.assertEqual(len(os.listdir(f"/proc/{process.pid}/task")), 1)
            finally:
                process.kill()

    def test_ordered_sums_may_differ(self):
        lines = self.train("--epochs", 1, "--replicas", "1,2", "--numerics", "ordered")
        rows = self.table(lines)
        self.assertEqual(lines[-1], "the runs' parameters differ, as ordered sums may; see --numerics reproducible")
        self.assertEqual([row[0] for row in rows], ["one core", "1", "2"])
        self.assertEqual(rows[0][8], rows[1][8])
        for row in rows[1:]:
            self.assertIn(row[8], self.parameters("--epochs", 1, "--replicas", row[0]))

    def test_a_fault_changes_nothing(self):
        arguments = ("--epochs", 1, "--replicas", "2,3")
        lines = self.train(*arguments, "--fault", "1@4")
        self.assertEqual(sum(line == "training goes on from step 4" for line in lines), 2)
        self.assertEqual(lines[-1], self.train(*arguments)[-1])


class Faults(Case):
    def test_training_goes_on_from_the_step_that_failed(self):
        arguments = ("--epochs", 1, "--replicas", 3)
        lines = self.train(*arguments, "--fault", "2@7")
        self.assertRegex(
            "\n".join(lines),
            r"step 7: replica 2 failed; all others were told ABORTED: all_reduce #\d+ \(tag \"gradients\"\): replica 2 failed "
            r"with UNAVAILABLE: replica 2 fails in step 7(.|\n)*training goes on from step 7\n",
        )
        self.assertIn(self.parameters(*arguments), lines)

    def test_the_caller_may_be_the_one_that_fails(self):
        told = "\n".join(self.train("--epochs", 1, "--fault", "0@1"))
        self.assertIn("replica 0 failed; all others were told ABORTED: all_reduce #", told)

    def test_one_replica_has_no_others(self):
        told = "\n".join(self.train("--epochs", 1, "--replicas", 1, "--fault", "0@1"))
        self.assertIn("replica 0 failed with UNAVAILABLE: replica 0 fails in step 1", told)


class Workers(Case):
    def test_every_layout_has_the_bits_of_one_process(self):
        alone = self.parameters("--epochs", 2, "--replicas", 4)
        for workers, replicas in ((2, 2), (4, 1), (1, 4)):
            self.assertEqual(
                self.parameters("--epochs", 2, "--workers", workers, "--replicas", replicas), alone, workers
            )

    def test_training_goes_on_from_the_step_that_failed(self):
        arguments = ("--epochs", 1, "--workers", 2, "--replicas", 2)
        lines = self.train(*arguments, "--fault", "3@5")
        self.assertRegex(
            "\n".join(lines), r"step 5: replica 3 failed; all others were told (.|\n)*replica 3 fails in step 5"
        )
        self.assertIn(self.parameters(*arguments), lines)

    def test_what_does_not_go_together_is_refused(self):
        for arguments, words in (
            (("--workers", 2, "--replicas", "1,2"), "not a list"),
            (("--workers", 2000000, "--replicas", 2000), "more than 2147483647 replicas"),
            (("--workers", 2, "--fault", "4@1"), "there are 4: 0 to 3"),
            (("--workers", 0), "a whole number from 1 to 2147483647"),
        ):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


class CommandLine(Case):
    def test_help(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("replicas", "workers", "numerics", "epochs", "seed", "data", "label", "fault", "report", "130"):
            self.assertIn(word, done.stdout)

    def test_bad_values_are_named(self):
        for arguments, words in (
            (("--replicas", 0), '--replicas is "0", but must be a whole number from 1 to 2147483647'),
            (("--replicas", 2147483648), "from 1 to 2147483647"),
            (("--replicas", ""), '--replicas is ""'),
            (("--replicas", "1,,2"), 'a number in --replicas is "", but must be a whole number from 1 to 2147483647'),
            (("--replicas", "1,"), 'a number in --replicas is ""'),
            (("--replicas", "1,9999999999"), 'a number in --replicas is "9999999999"'),
            (("--replicas", "1,2x"), 'a number in --replicas is "2x"'),
            (("--replicas", ",".join("1" * 17)), "--replicas has more than 16 numbers"),
            (("--numerics", "exact"), '--numerics is "exact", but must be ordered or reproducible'),
            (("--epochs", "many"), '--epochs is "many"'),
            (("--seed", -1), '--seed is "-1"'),
            (("--seed", 2**64), "--seed is"),
            (("--fault", "1"), "must be R@STEP"),
            (("--fault", "2@1"), "--fault names replica 2, but there are 2"),
            (("--fault", "2@1", "--replicas", "4,2"), "--fault names replica 2, but there are 2"),
            (("--fault", "1x@1"), 'the replica of --fault is "1x"'),
            (("--fault", "1@0"), "the step of --fault"),
            (("--fault", "1@24", "--epochs", 1), "--fault names step 24, but there are 23"),
            (("--label", 1), "--label needs --data"),
            (("digits.csv",), '"digits.csv" is not an option'),
            (("--frobnicate",), "--frobnicate"),
        ):
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(words, done.stderr)

    def test_a_report_that_cannot_be_written(self):
        done = run("--epochs", 1, "--report", self.folder / "none" / "run.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("run.json: No such file or directory", done.stderr)


class OwnData(Case):
    def refused(self, content, words, *arguments):
        path = self.folder / "own.csv"
        path.write_bytes(content)
        done = run("--data", path, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"{path}{words}\n"))

    def test_bad_lines_are_named(self):
        for content, words in (
            (b"", ": the file has no rows"),
            (b"a,b,c\n", ": the file has no rows"),
            (b"1,2,x\n3,y\n", ":2: 2 columns, 3 were expected as on the first line (is the file cut short?)"),
            (b"1,2,x\n3,4,y,5\n", ":2: 4 columns, 3 were expected as on the first line"),
            (b"1,2,x\n\n3,four,y\n", ':3: column 2: "four" is not a finite decimal number'),
            (b"1,2,x\n3,0x10,y\n", ':2: column 2: "0x10" is not a finite decimal number'),
            (b"1,2,x\n3,NaN,y\n", ':2: column 2: "NaN" is not a finite decimal number'),
            (b"1,2,x\n3,inf,y\n", ':2: column 2: "inf" is not a finite decimal number'),
            (b"1,2,x\n3,1e400,y\n", ":2: column 2: 1e400 is too large, at most 1e30 was expected"),
            (b"1,2,x\n3,,y\n", ":2: column 2 is empty, a number was expected"),
            (b"1,2,x\n3,4,\n", ":2: column 3, the label, is empty"),
            (b"1,2,x\n3,4," + b"y" * 65 + b"\n", ":2: column 3: a label has at most 64 bytes"),
            (b'1,2,"x\n', ":1: column 3: the quote is not closed on this line"),
            (b'1,2,"x"y\n', ":1: column 3: text after the closing quote"),
            (b"1,2,x\n3,\x1b[2J,y\n", ':2: column 2: "?[2J" is not a finite decimal number'),
            (b"1,2,x\n3,4,\0\n", ":2: not a text file: there is a zero byte"),
            (b"1\n2\n", ":1: one column, at least a feature and a label were expected (separated by commas)"),
            (b"1," * 5000 + b"x\n", ":1: more than 4096 columns"),
            (b"1" * (2 << 20), ":1: the line has more than 1048576 bytes"),
            (b"1,x\n2,x\n", ": all labels are the same; two classes at least were expected"),
            (
                b"".join(b"1,c%d\n" % i for i in range(1001)),
                ": more than 1000 different labels; is this the right column?",
            ),
            (b"1,x\n2,y\n", ": 2 rows; at least 10 were expected"),
        ):
            with self.subTest(words=words):
                self.refused(content, words)

    def test_bad_labels_are_named(self):
        self.refused(b"a,b\n1,2\n", ':1: no column is named "c"', "--label", "c")
        self.refused(
            b"1,2\n", ':1: there is no column "c": this line names no columns, use a number', "--label", "c"
        )
        self.refused(b"1,2\n", ":1: there is no column 3, the line has 2", "--label", 3)

    def test_files_that_are_not_there(self):
        for path, words in (
            (self.folder / "none.csv", "No such file or directory"),
            (self.folder, "Is a directory"),
        ):
            done = run("--data", path)
            self.assertEqual((done.returncode, done.stderr), (2, f"{path}: {words}\n"))

    def test_another_table(self):
        rng = random.Random(7)
        rows = [
            (f"{rng.gauss(3 * (i % 2), 0.3):.4f}", 'no"yes'.split('"')[i % 2], f"{rng.random():.4f}")
            for i in range(300)
        ]
        plain, named = self.folder / "plain.csv", self.folder / "named.csv"
        plain.write_text("\n".join(",".join(row) for row in rows))
        named.write_text(
            '\ufeff"size", answer ,noise\r\n' + "".join(f'{a},"{b}", {c} \r\n\r\n' for a, b, c in rows)
        )
        by_number = self.train("--data", plain, "--label", 2, "--epochs", 5)
        by_name = self.train("--data", named, "--label", "answer", "--epochs", 5)
        self.assertIn("2 features, 2 classes", by_number[0])
        self.assertGreaterEqual(float(by_number[-3].removeprefix("test accuracy: ")), 0.95)
        self.assertEqual(by_number[-3:-1], by_name[-3:-1])


class Interrupt(Case):
    def test_it_stops_after_a_step_and_reports(self):
        self.interrupt(1)

    def test_workers_stop_after_the_same_step(self):
        self.interrupt(2)

    def interrupt(self, workers):
        report = self.folder / "run.json"
        arguments = ("--epochs", "100000", "--workers", str(workers), "--report", report)
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, text=True) as process:
            lines = [process.stdout.readline()]
            while not lines[-1].startswith("epoch "):
                lines.append(process.stdout.readline())
                self.assertTrue(lines[-1], "the training has ended")
            process.send_signal(signal.SIGINT)
            lines += process.stdout.read().splitlines()
            self.assertEqual(process.wait(timeout=60), 130)
        self.assertRegex(lines[-3], r"^interrupted after step \d+$")
        self.assertRegex(lines[-2], r"^test accuracy: \d\.\d{3}$")
        self.assertRegex(lines[-1], r"^parameters: [0-9a-f]{64}$")
        told = json.loads(report.read_text())
        self.assertTrue(told["interrupted"])
        self.assertIsNone(told["contrast"])
        self.assertEqual(f"interrupted after step {told['steps']}", lines[-3])


    def test_it_ends_a_list_of_runs(self):
        # The first run is short compared with the others, so most of the list is left when the signal
        # arrives.
        report = self.folder / "run.json"
        replicas = ",".join(["1"] + 15 * ["2"])
        with subprocess.Popen(
            [PROGRAM, "--epochs", "20", "--replicas", replicas, "--report", report],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            lines = []
            while not (lines and lines[-1].startswith("epoch ") and lines[-1].endswith(" 2 replicas\n")):
                lines.append(process.stdout.readline())
                self.assertTrue(lines[-1], "the runs have ended")
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read().splitlines()
            self.assertEqual(process.wait(timeout=60), 130)
        told = json.loads(report.read_text())
        finished = len(told["runs"])
        self.assertLess(finished, 17)
        self.assertIn(Scaling.HEAD, rest)
        self.assertIn(f"{finished} of 17 runs finished", rest)
        self.assertTrue(told["interrupted"])


class Report(Case):
    def page_of(self, *arguments):
        """Returns the run as report.py reads it, and the page that report.py makes of it."""
        told, page = self.folder / "run.json", self.folder / "page.html"
        self.lines = self.train(*arguments, "--report", told)
        subprocess.run([sys.executable, REPORT, told, page], check=True, timeout=150)
        return json.loads(told.read_text()), page.read_text()

    def test_page_of_a_run(self):
        run_told, page = self.page_of("--epochs", 3, "--replicas", 3, "--fault", "1@5")
        self.assertEqual(len(run_told["epochs"]), 3)
        self.assertEqual(run_told["failure"]["replica"], 1)
        self.assertEqual(
            len(run_told["wrong"]), round((1 - run_told["test_accuracy"]) * run_told["test_rows"])
        )
        for replica in run_told["replicas"]:
            ends = [time for _, _, start, end, _ in replica["events"] for time in (start, end)]
            self.assertEqual(ends, sorted(ends))
            self.assertEqual(
                {kind for _, kind, _, _, _ in replica["events"]}, {"compute", "all_reduce", "update"}
            )
            for kind, cpu in replica["cpu_ns"].items():
                self.assertGreater(cpu, 0, kind)
        (machine,) = run_told["machines"]
        self.assertGreater(machine["own_ns"], 0)
        self.assertGreaterEqual(machine["all_cpus"], machine["cpus"])
        for words in (
            run_told["parameters"],
            ">Loss and accuracy</h2>",
            ">Timeline of each replica</h2>",
            f">Errors: {len(run_told['wrong'])} of {run_told['test_rows']} held-out rows</h2>",
            "replica 1 fails in step 5",
            "the other replicas got ABORTED with this report:",
            "all_reduce #",
            "--fault 1@5",
        ):
            self.assertIn(words, page)
        # The run prints the numbers that the page shows.
        figures = [line for line in self.lines if line.startswith("examples/s: ")]
        self.assertEqual(len(figures), 1)
        self.assertIn(f"<dt>examples/s</dt><dd>{figures[0].removeprefix('examples/s: ')}</dd>", page)
        speed = run_told["examples_per_second"]
        self.assertIn(f"<dt>examples/s</dt><dd>{speed['training']:,}</dd>", page)
        self.assertGreaterEqual(speed["best_epoch"], speed["median_epoch"])
        self.assertNotIn("<dt>clocks</dt>", page)
        addresses = set(re.findall(r"""(?:src|href)=["']?([^"'> ]+)""", page))
        self.assertEqual([a for a in addresses if not a.startswith(("#", "data:"))], [])
        loss, accuracy, timeline = self.charts(page)
        self.assertEqual((loss["x"], len(accuracy["lines"])), ([1, 2, 3], 2))
        self.assertEqual(timeline["rows"], ["replica 0", "replica 1", "replica 2"])
        self.assertEqual({kind for _, kind, *_ in timeline["spans"]}, {0, 1, 2, 3})
        # In each step, no replica begins to add before the last one has entered the all_reduce.
        for step in range(run_told["steps"] - 5, run_told["steps"] + 1):
            of_step = [span for span in timeline["spans"] if span[4].split(",")[0] == f"step {step}"]
            arrived = max(end for _, kind, _, end, _ in of_step if kind == 0)
            self.assertEqual({start for _, kind, start, _, _ in of_step if kind == 2}, {arrived})

    def charts(self, page):
        return json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', page)[1])

    def test_page_of_a_list_of_runs(self):
        run_told, page = self.page_of("--epochs", 2, "--replicas", "1,3")
        self.assertEqual(
            [(one["num_replicas"], one["one_core"]) for one in run_told["runs"]], [(1, True), (1, False), (3, False)]
        )
        for one in run_told["runs"]:
            self.assertLessEqual(one["compute"] + one["all_reduce"] + one["update"], one["seconds"])
        self.assertEqual({one["parameters"] for one in run_told["runs"]}, {run_told["parameters"]})
        self.assertEqual((run_told["num_replicas"], run_told["numerics"]), (3, "reproducible"))
        self.assertIsNone(run_told["contrast"])
        self.assertIn("3 runs of the same training", page)
        self.assertIn("are equal, bit for bit", page)
        self.assertEqual(page.count(f"<td>{run_told['parameters'][:16]}</td>"), 3)
        self.assertEqual(self.charts(page)[0]["rows"], ["one core", "1 replica", "3 replicas"])

    def test_page_of_another_table(self):
        table = self.folder / "own.csv"
        table.write_text("".join(f"{i % 7},{i % 3},</script><b>{i % 3}</b>\n" for i in range(60)))
        run_told, page = self.page_of("--epochs", 1, "--data", table)
        self.assertEqual(run_told["features"], 2)
        self.assertNotIn("<img", page)
        self.assertNotIn("runs of the same training", page)
        self.assertNotIn("<b>0</b>", page)

    def test_a_run_that_cannot_be_read(self):
        broken = self.folder / "broken.json"
        broken.write_text('{"command": ')
        done = subprocess.run(
            [sys.executable, REPORT, broken, self.folder / "page.html"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("broken.json: JSONDecodeError", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
