# SPDX-License-Identifier: Apache-2.0
"""Programs that exit while libdist threads are inside Python functions: the exit status is 0 whatever is under way.

Each program ends with functions that are blocked in os.read(). They return while the interpreter finalizes: an object
that is deleted then writes to their pipe, and finalization goes on a moment later.
"""

import os
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 300  # seconds; only against a hang

BEFORE = """
import asyncio, atexit, os, sys, threading, time
import numpy as np
import libdist
from libdist import Strategy, Threads
import libdist._exit
libdist._exit.PATIENCE = 0.05

reader, writer = os.pipe()
entered = threading.Event()

class Late:
    def __del__(self, write=os.write, sleep=time.sleep, writer=writer):
        write(writer, b"." * 64)
        sleep(0.2)  # the functions return meanwhile; a later return goes unnoticed, but does not fail the test

late = Late()

def stuck(*_):
    entered.set()
    os.read(reader, 1)
    return 0

def busy(*_):
    entered.set()
    while True:
        pass

def daemon(fn, *arguments):
    threading.Thread(target=fn, args=arguments, daemon=True).start()
"""

AFTER = """
entered.wait()
"""

PROGRAMS = {
    "requests": """
strategy = Strategy(2, threads=Threads.LIBRARY)
instances = strategy.instances()
requests = [strategy.submit(stuck) for _ in range(6)]
""",
    "cancelled requests": """
strategy = Strategy(2, threads=Threads.LIBRARY)
requests = [strategy.submit(stuck) for _ in range(6)]
entered.wait()
for request in requests:
    request.cancel()
    request.cancel()
""",
    "requests that compute": """
strategy = Strategy(2, threads=Threads.LIBRARY)
requests = [strategy.submit(busy) for _ in range(2)]
""",
    "requests of an asyncio loop": """
strategy = Strategy(2, threads=Threads.LIBRARY)
async def main():
    requests = [strategy.submit(stuck) for _ in range(4)]
    await asyncio.sleep(0)
asyncio.run(main())
""",
    "a callback of a request": """
strategy = Strategy(1, threads=Threads.LIBRARY)
strategy.submit(lambda replica: 0).add_done_callback(stuck)
""",
    "a state of an instance": """
strategy = Strategy(2, threads=Threads.LIBRARY)
daemon(lambda: strategy.instances(create_state=stuck))
""",
    "items": """
strategy = Strategy(2, threads=Threads.LIBRARY)
batcher = strategy.batcher(stuck, max_items=2)
items = [batcher.submit(k) for k in range(8)]
""",
    "items of a continuous batcher": """
strategy = Strategy(1, threads=Threads.LIBRARY)
def step(replica, batch):
    entered.set()
    for i in range(len(batch)):
        batch.set_state(i, [i])
    os.read(reader, 1)
batcher = strategy.batcher(step, continuous=True)
items = [batcher.submit(k) for k in range(8)]
""",
    "a run on a daemon thread": """
strategy = Strategy(3)
daemon(strategy.run, stuck)
""",
    "a run on a daemon thread and library threads": """
strategy = Strategy(2, threads=Threads.LIBRARY)
daemon(strategy.run, stuck)
""",
    "runs that compute": """
strategy = Strategy(2)
daemon(strategy.run, busy)
""",
    "runs in a loop": """
strategy = Strategy(2)
def loop():
    x = np.ones(4, np.float32)
    while True:
        try:
            strategy.run(lambda replica: (replica.all_reduce("SUM", x), entered.set()))
        except Exception:
            pass
daemon(loop)
""",
    "a collective with an operator": """
strategy = Strategy(2)
def operator(acc, values):
    stuck()
daemon(strategy.run, lambda replica: replica.all_reduce(operator, np.ones(4)))
""",
    "a parallel_for": """
strategy = Strategy(1)
daemon(strategy.run, lambda replica: replica.parallel_for(0, 64, 1, stuck))
""",
    "a merge function": """
strategy = Strategy(2)
daemon(strategy.run, lambda replica: replica.merge_call(stuck))
""",
    "threads that serve": """
strategy = Strategy(2, threads=Threads.HOST)
for k in range(2):
    daemon(strategy.serve, k)
while True:
    try:
        requests = [strategy.submit(stuck) for _ in range(4)]
        break
    except libdist.DistError:
        pass
""",
    "a source of a dataset": """
strategy = Strategy(1)
def source(index):
    if index > 0:
        stuck()
    return np.float32(index)
dataset = strategy.dataset_from_callback(source, global_batch_size=1, prefetch=2)
batches = iter(dataset)
""",
    "a strategy that another exit function has made": """
@atexit.register
def last():
    global strategy, requests
    strategy = Strategy(2, threads=Threads.LIBRARY)
    requests = [strategy.submit(stuck) for _ in range(4)]
    entered.wait()
atexit.unregister(libdist._exit._exit)
atexit.register(libdist._exit._exit)
entered.set()
""",
    "a scope": """
strategy = Strategy(2, threads=Threads.LIBRARY)
scope = strategy.scope()
scope.__enter__()
request = strategy.submit(stuck)
""",
}

RPC_PROGRAMS = {
    "a method": """
server = libdist.RpcServer("127.0.0.1:0")
server.register("stuck", stuck)
server.start()
client = libdist.RpcClient(server.address)
values = [client.begin("stuck", np.ones(1000)) for _ in range(4)]
""",
    "a remote value that a daemon thread waits for": """
server = libdist.RpcServer("127.0.0.1:0")
server.register("stuck", stuck)
server.start()
client = libdist.RpcClient(server.address)
daemon(lambda: client.call("stuck", np.ones(1000)))
""",
    "a client without a server": """
client = libdist.RpcClient("127.0.0.1:9")
values = [client.begin("nothing", np.ones(1000)) for _ in range(4)]
daemon(values[0].result)
entered.set()
""",
}


class Exit(unittest.TestCase):
    def check(self, programs):
        running = []
        try:
            for name, program in programs.items():
                output = tempfile.TemporaryFile()
                command = [sys.executable, "-c", BEFORE + program + AFTER]
                process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
                running.append((name, process, output))
            for name, process, output in running:
                with self.subTest(name):
                    status = process.wait(PATIENCE)
                    output.seek(0)
                    text = output.read().decode()
                    self.assertEqual(status, 0, text)
                    self.assertNotIn("Exception ignored", text)
        finally:
            for _, process, output in running:
                process.kill()
                process.wait()
                output.close()

    def test_whatever_is_under_way(self):
        self.check(PROGRAMS)

    @unittest.skipUnless(os.environ.get("WORKERS_ARE_PROCESSES"), "libdist has no gRPC")
    def test_whatever_other_processes_do(self):
        self.check(RPC_PROGRAMS)


if __name__ == "__main__":
    unittest.main()
