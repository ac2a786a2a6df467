# SPDX-License-Identifier: Apache-2.0
"""Parameter servers, workers and a coordinator that are processes; Ctrl-C, and exit."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from servers_together import PATIENCE, free_addresses

PROGRAM = """
import os, signal, sys, threading
import numpy as np
import libdist
from libdist import Cancelled, ClusterResolver, ClusterSpec, Coordinator, Server, Strategy, StrategyKind

"""

# Every task of the job runs this; the chief does `body` then.
TASKS = """
def add(closure, x):
    closure.assign_add("v", x)
    return {"worker": closure.worker, "process": os.getpid()}

def follow(closure):
    return next(closure.per_worker("rows"))

def die_once(closure, path):
    closure.assign_add("v", np.float32(100))
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return closure.read("v")

def die(variables):
    os.kill(os.getpid(), signal.SIGKILL)

if ClusterResolver.tf_config().task_type != "chief":
    with Server() as server:
        server.register("add", add)
        server.register("follow", follow)
        server.register("rows", lambda closure, begin: iter(range(int(begin), 100)))
        server.register("die_once", die_once)
        server.register_update("die", die)
        server.start()
        server.join()
    print("ended")
    sys.exit()

strategy = Strategy(kind=StrategyKind.PARAMETER_SERVER)
coordinator = strategy.coordinator()
coordinator.create_variable("v", np.float32(0))
while coordinator.query().workers_up < 2:  # who comes after the end would wait for a coordinator
    threading.Event().wait(0.001)
"""


class Processes(unittest.TestCase):
    def play(self, body, *arguments):
        """What each task printed, and how it ended: of the chief, of the parameter server, of the two workers."""
        chief, ps, *workers = free_addresses(4)
        cluster = {"chief": [chief], "ps": [ps], "worker": workers}
        program = PROGRAM + TASKS + textwrap.dedent(body)
        tasks = [("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1)]
        started = []
        for job, index in tasks:
            config = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
            environment = {**os.environ, "TF_CONFIG": config}
            command = [sys.executable, "-c", program, *arguments]
            started.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            )
        try:
            ends = [task.communicate(timeout=PATIENCE) for task in started]
        finally:
            for task in started:
                task.kill()
        return [(task.returncode, *end) for task, end in zip(started, ends)]

    def test_a_job_of_processes(self):
        body = """
        remotes = [coordinator.schedule("add", np.float32(x)) for x in range(1, 41)]
        coordinator.create_per_worker("rows", "rows", 7)
        coordinator.join()
        processes = {int(remote.result()["process"]) for remote in remotes}
        print(coordinator.read("v"), os.getpid() in processes, int(coordinator.schedule("follow").result()))
        coordinator.close()
        """
        for code, out, err in (ends := self.play(body)):
            self.assertEqual((code, err), (0, ""))
        self.assertEqual([out for _, out, _ in ends], ["820.0 False 7\n", "ended\n", "ended\n", "ended\n"])

    def test_a_worker_that_is_killed_gives_its_closures_back(self):
        body = """
        remotes = [coordinator.schedule("add", np.float32(1)) for _ in range(20)]
        died = coordinator.schedule("die_once", sys.argv[1])
        remotes += [coordinator.schedule("add", np.float32(1)) for _ in range(20)]
        coordinator.join()
        now = coordinator.query()
        print(coordinator.read("v"), died.result() < 100, now.losses > 0, now.completed)
        """
        with tempfile.TemporaryDirectory() as folder:
            ends = self.play(body, os.path.join(folder, "died"))
        self.assertEqual(ends[0], (0, "140.0 True True 41\n", ""))
        self.assertEqual(sorted(code for code, _, _ in ends), [-9, 0, 0, 0])

    def test_a_parameter_server_that_is_killed_ends_the_job(self):
        body = """
        def go_on():  # which of the two hears of it is a matter of time
            coordinator.schedule("add", np.float32(1))
            coordinator.join()

        for call in (lambda: coordinator.update("die", ["v"]), go_on):
            try:
                call()
            except libdist.Aborted as error:
                print("parameter server 0" in str(error))
        """
        ends = self.play(body)
        self.assertEqual(ends[0], (0, "True\nTrue\n", ""))
        self.assertEqual([code for code, _, _ in ends], [0, -9, 0, 0])


class Interrupt(unittest.TestCase):
    def check(self, body, *lines):
        command = [sys.executable, "-c", PROGRAM + textwrap.dedent(body)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((result.stdout.split("\n")[:-1], result.returncode), (list(lines), 0), result.stderr)
        self.assertEqual(result.stderr, "")

    def test_ctrl_c_ends_what_waits_for_servers(self):
        body = """
        resolver = ClusterResolver.simple(ClusterSpec({"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}))
        strategy = Strategy(kind=StrategyKind.PARAMETER_SERVER, cluster_resolver=resolver)
        coordinator = strategy.coordinator(timeout=-1, max_queued=1)
        server = Server.local(start_timeout=-1)
        server.start()
        main, done = threading.main_thread().ident, threading.Event()

        def waits():  # the main thread, in a call of libdist's
            watcher = libdist._interrupt._watcher
            if watcher is not None and watcher.cancel is not None:
                return True
            return sys._current_frames()[main].f_code is libdist._interrupt.interruptible.__code__

        def press():  # once a call; again where it came before the call had begun to wait, which does not hear it
            while not done.wait(0.001):
                if waits():
                    os.kill(os.getpid(), signal.SIGINT)
                    for _ in range(1000):
                        if not waits() or done.wait(0.001):
                            break

        keys = threading.Thread(target=press)
        remote = coordinator.schedule("nothing")
        keys.start()
        for call in (
            lambda: coordinator.create_variable("v", np.float32(0)),
            lambda: coordinator.read("v"),
            lambda: coordinator.read_rows("v", np.array([0])),
            lambda: coordinator.assign("v", np.float32(0)),
            lambda: coordinator.save("nowhere"),
            lambda: coordinator.restore("nowhere"),
            lambda: coordinator.schedule("nothing"),
            lambda: coordinator.join(-1),
            lambda: server.join(),
            lambda: remote.result(),
        ):
            try:
                call()
            except KeyboardInterrupt:
                print("KeyboardInterrupt")
        done.set()
        keys.join()
        coordinator.close()  # ends what was left behind
        for thread in threading.enumerate():
            if thread.name == "libdist-call":
                thread.join()
        print("closed")
        """
        self.check(body, *["KeyboardInterrupt"] * 10, "closed")

    def test_a_program_that_closes_nothing_ends(self):
        body = """
        def slow(closure):
            inside.set()
            while not closure.cancelled:
                inside.wait(0.001)

        inside = threading.Event()
        servers = [Server.local() for _ in range(2)]
        for server in servers:
            server.register("slow", slow)
            server.start()
        ps, worker = (server.target.removeprefix("grpc://") for server in servers)
        resolver = ClusterResolver.simple(ClusterSpec({"ps": [ps], "worker": [worker]}))
        strategy = Strategy(kind=StrategyKind.PARAMETER_SERVER, cluster_resolver=resolver)
        coordinator = strategy.coordinator(partitioner=lambda shape, dtype: [1])
        coordinator.create_variable("v", np.zeros(3))
        remote = coordinator.schedule("slow")
        inside.wait()
        print("left")
        """
        self.check(body, "left")


if __name__ == "__main__":
    unittest.main()
