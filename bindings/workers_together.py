# SPDX-License-Identifier: Apache-2.0
"""workers_together.py MODULES PROGRAM...: one job of workers that are written in different languages. Each PROGRAM is a
worker's command line, as one text; all replicas print the sum over all of them. Those whose last word is `reform` re-form
then without the others, and do so again."""

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile

REPLICAS = 2
GUARD_S = 240


def free_addresses(n: int) -> list[str]:
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def lines_of(worker: int, workers: list[int]) -> list[str]:
    """What a worker prints of its replicas, which are numbered in the order of the workers."""
    replicas, first = REPLICAS * len(workers), REPLICAS * workers.index(worker)
    total = replicas * (replicas + 1) // 2
    return [f"replica {r} of {replicas}: {total}" for r in range(first, first + REPLICAS)]


def main(modules: str, programs: list[str]) -> int:
    addresses = free_addresses(len(programs))
    workers = []
    for index, program in enumerate(programs):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = dict(
            os.environ,
            TF_CONFIG=json.dumps(config),
            DIST_REPLICAS=str(REPLICAS),
            DIST_MODULE_FOLDER=modules,
            DIST_JOB_SECRET="of all languages",
        )
        output = tempfile.TemporaryFile("w+")
        workers.append((subprocess.Popen(shlex.split(program), env=environment, stdout=output, stderr=output), output))
    failed = False
    everybody = list(range(len(programs)))
    stay = [index for index in everybody if programs[index].endswith(" reform")]
    for index, (process, output) in enumerate(workers):
        try:
            code = process.wait(GUARD_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = "a time-out"
        output.seek(0)
        lines = output.read().splitlines()
        expected = lines_of(index, everybody) + (lines_of(index, stay) if index in stay else [])
        if code != 0 or any(line not in lines for line in expected):
            print(f"worker {index} ({programs[index]}) ended with {code}, and said:", *lines, sep="\n  ")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
