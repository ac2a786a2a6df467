#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the small examples print what their sources say. The environment variable PROGRAM is the one to run."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["PROGRAM"]


def output_of(*arguments):
    return subprocess.run(
        [PROGRAM, *arguments], check=True, capture_output=True, text=True, timeout=60
    ).stdout


class Hello(unittest.TestCase):
    def test_every_replica_prints_the_sum(self):
        lines = sorted(output_of().splitlines())
        self.assertEqual(lines, [f"replica {r}: the sum is 10" for r in range(4)])

    def test_the_readme_shows_the_program(self):
        top = os.path.join(os.path.dirname(__file__), "..", "..")
        with open(os.path.join(top, "README.md"), encoding="utf-8") as file:
            shown = re.search(r"```c\n(.*?)```", file.read(), re.DOTALL)[1]
        with open(os.path.join(top, "examples", "guide", "hello.c"), encoding="utf-8") as file:
            self.assertTrue(file.read().endswith(shown), "README.md and examples/guide/hello.c differ")


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


class TrainingLoop(unittest.TestCase):
    """The documented training loop learns equally well with any number of replicas."""

    LINE = re.compile(r"epoch (\d+): loss (\d+\.\d{4}), accuracy (\d+\.\d)%")

    def epochs_on(self, replicas):
        *lines, weights = output_of(str(replicas)).splitlines()
        self.assertRegex(weights, r"^weights [0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8}$")
        rows = [self.LINE.fullmatch(line) for line in lines]
        self.assertNotIn(None, rows, lines)
        self.assertEqual([int(row[1]) for row in rows], list(range(1, 9)))
        return [(float(row[2]), float(row[3])) for row in rows]

    def test_loss_falls_and_accuracy_rises(self):
        epochs = self.epochs_on(2)
        losses = [loss for loss, _ in epochs]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertGreater(losses[0], 2 * losses[-1])
        self.assertGreater(epochs[-1][1], 97)

    def test_the_same_bits_in_every_run(self):
        self.assertEqual(output_of("3"), output_of("3"))

    def test_replicas_change_only_the_rounding(self):
        alone = self.epochs_on(1)
        for replicas in (2, 3, 4, 8):
            for (loss, accuracy), (own_loss, own_accuracy) in zip(alone, self.epochs_on(replicas)):
                self.assertAlmostEqual(loss, own_loss, delta=1e-3)
                self.assertAlmostEqual(accuracy, own_accuracy, delta=0.5)

    def test_an_impossible_number_is_an_error(self):
        done = subprocess.run([PROGRAM, "100000"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("training_loop: ", done.stderr)


class TrainingLoopCpp(unittest.TestCase):
    """The training in C++ prints exactly the same as the training in C."""

    def test_the_same_bits_as_in_c(self):
        for replicas in ("1", "2", "3", "5"):
            in_c = subprocess.run(
                [os.environ["C_PROGRAM"], replicas], check=True, capture_output=True, text=True, timeout=60
            ).stdout
            self.assertEqual(output_of(replicas), in_c)

    def test_an_impossible_number_is_an_error(self):
        done = subprocess.run([PROGRAM, "100000"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("training_loop_cpp: ", done.stderr)


class TpuRun(unittest.TestCase):
    """Each CPU that this process may use is a replica, which prints twice the number of replicas."""

    def test_every_replica_doubles_their_number(self):
        replicas = len(os.sched_getaffinity(0))
        self.assertEqual(
            output_of(), "".join(f"replica {r}: {2 * replicas}\n" for r in range(replicas))
        )


class Elastic(unittest.TestCase):
    """Training in which a worker is killed ends with the same weights as undisturbed training."""

    def train(self, folder, kills):
        checkpoint = os.path.join(folder, f"of-{kills}-kills")
        launch = (os.environ["LAUNCH"], "-n", "3", "--replicas", "2", "--restarts", "9", "--", PROGRAM, checkpoint, "300")
        weights, generations, workers_at_end = [], [], 3
        with subprocess.Popen(launch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            for line in job.stdout:
                if here := re.match(r"\[worker (\d)\] generation (\d+): (\d) workers, process (\d+)$", line):
                    worker, generation, workers, process = map(int, here.groups())
                    generations.append((generation, workers))
                    if worker == 0:
                        workers_at_end = workers
                    # Only kills worker 2 after it has joined the others: a restarted worker first believes
                    # that it begins generation 0.
                    if worker == 2 and kills > 0 and (generation > 0 or len(generations) <= 3):
                        while not os.path.exists(checkpoint):
                            time.sleep(0.001)
                        kills -= 1
                        os.kill(process, signal.SIGKILL)
                elif after := re.match(r"\[worker \d\] (after 300 steps:.*)$", line):
                    weights.append(after.group(1))
                    # A worker that was restarted after the others had finished would wait for them forever.
                    if len(weights) == workers_at_end < 3:
                        job.terminate()
            said = job.stderr.read()
        # dist-launch may have ended a late worker by itself, because worker 0 had succeeded.
        self.assertIn(job.returncode, (0,) if workers_at_end == 3 else (0, 128 + signal.SIGTERM), said)
        self.assertEqual((len(weights), len(set(weights))), (workers_at_end, 1), said)
        return weights[0], generations

    def test_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            calm, generations = self.train(folder, 0)
            self.assertEqual(generations, [(0, 3)] * 3)
            killed, generations = self.train(folder, 3)
            self.assertEqual(killed, calm)
            self.assertGreater(max(generations)[0], 0)


class ParameterServer(unittest.TestCase):
    """Asynchronous training in which workers are killed and stopped, and a parameter server is lost."""

    STEPS = 1500

    def train(self, folder, name, disturb):
        checkpoint = os.path.join(folder, name)
        traces = checkpoint + "-traces"
        os.mkdir(traces)
        launch = (os.environ["LAUNCH"], "--ps", "2", "--workers", "3", "--restarts", "9", "--", PROGRAM)
        launch += (os.path.join(os.environ["DATA"], "digits.csv"), checkpoint, str(self.STEPS), traces)
        processes, said, stopped = {}, [], []
        environment = dict(os.environ, DIST_LEASE_SECONDS="2")
        with subprocess.Popen(
            launch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as job:
            for line in job.stdout:
                if here := re.match(r"\[(ps|worker) (\d)\] serves, process (\d+)$", line):
                    processes[here.group(1) + here.group(2)] = int(here.group(3))
                    if disturb and len(processes) == 5:
                        disturb(processes, checkpoint, stopped)
                        disturb = None
                elif line.startswith("[chief"):
                    said.append(line.split("] ", 1)[1])
                    for process in stopped:
                        os.kill(process, signal.SIGCONT)
            errors = job.stderr.read()
        self.assertEqual(job.returncode, 0, errors)
        last = re.match(r"(\d+) updates, accuracy ([\d.]+); closures came back from workers (\d+) times", said[-1])
        self.assertEqual(int(last.group(1)), self.STEPS)
        with open(os.path.join(traces, "chief-0.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual({e["args"]["status"] for e in events if e["ph"] == "X"}, {"OK"})
        return float(last.group(2)), said

    def check_report(self, traces):
        page = traces + ".html"
        report = os.path.join(os.environ["DATA"], "..", "parameter_server_report.py")
        subprocess.run((sys.executable, report, traces, page), check=True, stdout=subprocess.DEVNULL)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for row in ("coordinator: worker 2", "worker 1: closures 0", "ps 0: calls", "ps 1: calls"):
            self.assertIn(f"<th scope=row>{row}</th>", text)

    def test_disturbed(self):
        def some_workers(processes, checkpoint, stopped):
            while not os.path.exists(checkpoint):
                time.sleep(0.001)
            os.kill(processes["worker0"], signal.SIGKILL)
            os.kill(processes["worker1"], signal.SIGSTOP)
            stopped.append(processes["worker1"])

        def a_server(processes, checkpoint, stopped):
            while not os.path.exists(checkpoint):
                time.sleep(0.001)
            os.kill(processes["ps1"], signal.SIGKILL)

        with tempfile.TemporaryDirectory() as folder:
            calm, _ = self.train(folder, "calm", None)
            self.assertGreater(calm, 0.9)
            self.check_report(os.path.join(folder, "calm-traces"))
            disturbed, _ = self.train(folder, "disturbed", some_workers)
            self.assertLess(abs(disturbed - calm), 0.03)
            restored, said = self.train(folder, "restored", a_server)
            self.assertLess(abs(restored - calm), 0.03)
            self.assertTrue(any(line.startswith("goes on from closure") for line in said), said)


class MultiWorker(unittest.TestCase):
    """Two processes with one replica each, like the documented program, and with more."""

    def test_by_hand(self):
        # The ports are free until the workers bind them, but the system does not assign them again so soon.
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            addresses = [f"127.0.0.1:{held.getsockname()[1]}" for held in (one, other)]
        environment = {**os.environ, "DIST_REPLICAS": "1"}
        workers = [
            subprocess.Popen([PROGRAM, str(w), *addresses], env=environment, stdout=subprocess.PIPE, text=True)
            for w in range(2)
        ]
        printed = [worker.communicate(timeout=60)[0] for worker in workers]
        self.assertEqual([worker.returncode for worker in workers], [0, 0])
        for w in range(2):
            self.assertEqual(printed[w], f"replica {w}: the sum is 3\nworker {w} of 2: v is 3\n")

    def test_by_dist_launch(self):
        launch = (os.environ["LAUNCH"], "-n", "3", "--replicas", "2", "--", PROGRAM)
        done = subprocess.run(launch, check=True, capture_output=True, text=True, timeout=60)
        lines = [f"[worker {r // 2}] replica {r}: the sum is 21" for r in range(6)]
        lines += [f"[worker {w}] worker {w} of 3: v is 7" for w in range(3)]
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(lines))

    def test_alone(self):
        environment = {**os.environ, "DIST_REPLICAS": "2"}
        environment.pop("TF_CONFIG", None)
        done = subprocess.run([PROGRAM], env=environment, check=True, capture_output=True, text=True, timeout=60)
        self.assertIn("worker 0 of 1: v is 3\n", done.stdout)

    def test_nonsense(self):
        environment = {**os.environ, "TF_CONFIG": "{"}
        done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("multi_worker: INVALID_ARGUMENT: ", done.stderr)
        self.assertIn("TF_CONFIG is not JSON", done.stderr)


class Workers(unittest.TestCase):
    def test_every_worker_has_the_sum(self):
        self.assertEqual(output_of(), "".join(f"worker {w}: the sum over 4 replicas is 10\n" for w in range(2)))


class TpuSplit(unittest.TestCase):
    """The documented split: [1, 2, 4, 1] of a [4, 4, 8, 3] batch over eight logical devices, row-major."""

    def test_every_device_has_its_tile(self):
        expected = [
            f"logical device {4 * i + j}: rows {2 * i}-{2 * i + 1}, columns {2 * j}-{2 * j + 1}, "
            f"first pixel {1000 - (2 * i * 8 + 2 * j) * 3}"
            for i in range(2)
            for j in range(4)
        ]
        self.assertEqual(output_of(), "\n".join([*expected, "all 384 pixels: 0 wrong\n"]))


class ConvSplit(unittest.TestCase):
    """Tiles with halos give the bits of the unpartitioned run; without halos they do not."""

    DIGITS = os.path.join(os.environ.get("DATA", ""), "digits.csv")
    LINE = re.compile(
        r"(\d+) x (\d+) tiles, 16384 numbers; other than unpartitioned: (\d+), without halos (\d+)\n"
    )

    def differences_on(self, *tiles):
        done = self.LINE.fullmatch(output_of(self.DIGITS, *(str(n) for n in tiles)))
        self.assertEqual((int(done[1]), int(done[2])), tiles or (2, 4))
        return int(done[3]), int(done[4])

    def test_any_tiles_give_the_same_bits(self):
        for tiles in ((), (2, 4), (1, 8), (4, 1), (16, 2)):
            with_halos, without = self.differences_on(*tiles)
            self.assertEqual(with_halos, 0)
            self.assertGreater(without, 1000)

    def test_one_tile_has_no_neighbours(self):
        self.assertEqual(self.differences_on(1, 1), (0, 0))

    def test_impossible_tiles_are_refused(self):
        for tiles in (("3", "2"), ("0", "4"), ("-1", "-1"), ("16", "16"), ("2",)):
            done = subprocess.run([PROGRAM, self.DIGITS, *tiles], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: conv_split", done.stderr)


class TensorParallel(unittest.TestCase):
    """A part of a real layer gives ONNX Runtime's result on any number of devices."""

    WEIGHTS, REFERENCE = (
        os.path.join(os.environ.get("DATA", ""), name + ".safetensors") for name in ("weights", "reference")
    )
    LINE = re.compile(
        r" ?(?:(\d+) replicas of )?(\d+) logical device(?:: |s:) (\d\.\de[-+]\d\d) from ONNX Runtime, .*"
        r" times as fast; collectives .* ms, waiting .* ms; packed (\d+\.\d) MB"
    )

    def refusal_of(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, (1, 2), done)
        return done.stderr

    def test_answers_are_those_of_onnx_runtime(self):
        engine, *lines = output_of(self.WEIGHTS, self.REFERENCE, "1", "2", "4", "3x1", "2x2").splitlines()
        self.assertTrue(engine.startswith("computes by " + os.environ["ENGINE"]), engine)
        rows = [self.LINE.fullmatch(line) for line in lines]
        self.assertNotIn(None, rows, lines)
        self.assertEqual(
            [row.group(1, 2) for row in rows], [(None, "1"), (None, "2"), (None, "4"), ("3", "1"), ("2", "2")]
        )
        for row in rows:
            self.assertLess(float(row[3]), 5e-6)  # the program itself allows 1e-5
        self.assertEqual(rows[0][4], rows[3][4], "replicas have one copy of the packed weights")
        self.assertEqual(rows[1][4], rows[4][4])

    def test_the_engine_starts_no_thread(self):
        """If the engine uses OpenMP, it reports each parallel region on stderr, whatever its number of threads."""
        environment = {**os.environ, "OMP_NUM_THREADS": "4", "OMP_DISPLAY_AFFINITY": "TRUE"}
        command = [PROGRAM, self.WEIGHTS, self.REFERENCE, "1", "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
        self.assertEqual(done.stderr, "")

    def test_other_weights_are_noticed(self):
        with open(self.WEIGHTS, "rb") as file:
            contents = file.read()
        with tempfile.NamedTemporaryFile() as file:
            file.write(contents[:-40_000] + bytes(40_000))
            file.flush()
            self.assertIn("further than rounding explains", self.refusal_of(file.name, self.REFERENCE))

    def test_impossible_divisions_are_refused(self):
        self.assertIn("heads", self.refusal_of(self.WEIGHTS, self.REFERENCE, "3"))
        for layout in "0", "65", "0x1", "1x", "2x2x2", "9x9", "two":
            self.assertIn("1 to 64", self.refusal_of(self.WEIGHTS, self.REFERENCE, layout))
        self.assertIn('no tensor "input"', self.refusal_of(self.WEIGHTS, self.WEIGHTS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
