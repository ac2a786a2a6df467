#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the guide's pages about porting and operations, whose programs are not in all languages (see test_guide.py).

    test_guide_pages.py page MODULES PAGE COMMAND         a program prints one of the outputs that its page shows
    test_guide_pages.py python MODULES INTERPRETER        the same for the programs in PYTHON
    test_guide_pages.py errors MODULES LAUNCH MISTAKES    each text of troubleshooting.md is printed by something
    test_guide_pages.py tls MODULES LAUNCH WORKER         workers meet with the certificates of tls.md
    test_guide_pages.py trace STUCK                       the events on debugging.md are those of its program

MODULES is the folder with the modules of libdist, and LAUNCH is dist-launch. COMMAND and INTERPRETER are command lines, as
one text.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "guide"

# Pages, their programs in Python, and the modules that these need besides libdist.
PYTHON = (
    ("porting-tf.md", ["porting/fit.py"], ()),
    ("porting-tf.md", ["porting/fit_tf.py"], ()),
    ("porting-ddp.md", ["porting/ddp_libdist.py"], ("torch",)),
    ("porting-ddp.md", ["-m", "torch.distributed.run", "--nproc-per-node", "2", "porting/ddp.py"], ("torch",)),
)


def texts(page):
    """Returns the blocks of output that a page shows."""
    return re.findall(r"```text\n(.*?)```", (GUIDE / page).read_text(encoding="utf-8"), re.DOTALL)


def printed(command, modules, folder):
    environment = {**os.environ, "DIST_MODULE_FOLDER": modules}
    done = subprocess.run(command, check=True, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=240)
    return sorted(done.stdout.splitlines())


def fault(page, command, modules):
    """Returns 1 if no block of the page has the lines that the command prints in an empty folder, in any order."""
    with tempfile.TemporaryDirectory() as folder:
        lines = printed(command, modules, folder)
    shown = [sorted(block.splitlines()) for block in texts(page)]
    if lines in shown:
        return 0
    print(page, "shows", *shown, f"but {' '.join(command)} prints", *lines, sep="\n  ")
    return 1


def python_programs(modules, interpreter):
    faults = 0
    for page, arguments, needed in PYTHON:
        imports = [*shlex.split(interpreter), "-c", "".join(f"import {name}\n" for name in needed)]
        if subprocess.run(imports, check=False, stderr=subprocess.DEVNULL).returncode:
            print(f"{page}: not run, because this Python lacks one of {needed}:", *arguments)
        else:
            command = [*shlex.split(interpreter), *arguments[:-1], str(GUIDE / arguments[-1])]
            faults += fault(page, command, modules)
    return 1 if faults else 0


def one_page(modules, page, command):
    return fault(page, shlex.split(command), modules)


# ---- Error messages of troubleshooting.md ----


def tf_config(addresses, index):
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})


def wrong_settings(local):
    """Yields environments in which a worker cannot start. `local` is a cluster on this machine."""
    off_loopback = tf_config(["10.0.0.7:29500", "10.0.0.8:29500"], 0)
    yield {"TF_CONFIG": off_loopback}
    yield {"TF_CONFIG": off_loopback, "DIST_PLAINTEXT": "1"}
    yield {"TF_CONFIG": "{cluster"}
    yield {"TF_CONFIG": tf_config(local, 2)}
    yield {"DIST_RENDEZVOUS": local[0], "DIST_RANK": "2", "DIST_SIZE": "2"}
    yield {"DIST_RENDEZVOUS": local[0]}
    yield {"DIST_RENDEZVOUS": local[0], "DIST_RANK": "0", "DIST_SIZE": "2"}
    yield {"DIST_RENDEZVOUS": local[0], "DIST_RANK": "1", "DIST_SIZE": "2"}
    for name, value in (
        ("DIST_REPLICAS", "zero"),
        ("DIST_LEASE_SECONDS", "0"),
        ("DIST_TRANSPORT", "nonsense"),
        ("DIST_TLS_CA", "ca.pem"),
        ("DIST_MODULE_FOLDER", "/nowhere"),
        ("DIST_BIND_ADDRESS", "192.0.2.1:29500"),  # an address for documentation, which no machine has
    ):
        yield {"TF_CONFIG": tf_config(local, 0), name: value}


def wrong_pairs():
    """Yields the seconds that two workers wait for each other, and their environments; None: it is not started."""
    quick = {"DIST_LEASE_SECONDS": "1", "DIST_REPLICAS": "1"}
    yield "2", quick, None
    yield "2", None, quick
    yield "10", {**quick, "DIST_JOB_SECRET": "a"}, {**quick, "DIST_JOB_SECRET": "b"}
    yield "60", {**quick, "DIST_REPLICAS": "2"}, quick
    yield "10", {"DIST_REPLICAS": "1"}, {"DIST_REPLICAS": "1", "DIST_LEASE_SECONDS": "5"}


def provoked(modules, launch, mistakes, folder):
    """Yields the errors of commands that make mistakes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DIST_", "TF_CONFIG"))}
    kept["DIST_MODULE_FOLDER"] = modules

    def start(command, changes):
        return subprocess.Popen(
            command, env={**kept, **changes}, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def said(*processes):
        return "".join(process.communicate(timeout=120)[1] for process in processes)

    yield said(start([mistakes], {}))
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))  # bound but not listening, so that a worker can listen on the port
        local = [f"127.0.0.1:{one.getsockname()[1]}" for one in (first, second)]
        for settings in wrong_settings(local):
            yield said(start([mistakes, "worker", "2"], settings))
        for seconds, *pair in wrong_pairs():
            given = [(i, changes) for i, changes in enumerate(pair) if changes is not None]
            yield said(*[start([mistakes, "worker", seconds], {**one, "TF_CONFIG": tf_config(local, i)}) for i, one in given])
        first.listen()
        yield said(start([mistakes, "worker", "2"], {"TF_CONFIG": tf_config(local, 0)}))
    yield said(start([launch, "-n", "1", "--", "./nothere"], {}))
    yield said(start([launch, "-n", "2", "--", "sh", "-c", "test $DIST_RANK = 0 || kill -9 $$; exec sleep 600"], {}))


def errors(modules, launch, mistakes):
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(provoked(modules, launch, mistakes, folder))
    shown = [block.strip() for block in texts("troubleshooting.md")]
    lost = [text for text in shown if not re.search(".+".join(map(re.escape, text.split("..."))), lines)]
    for text in lost:
        print("troubleshooting.md has a text that nothing printed:", text, sep="\n  ")
    if lost or not shown:
        print(lines)
    return 1 if lost or not shown else 0


# ---- The trace on debugging.md ----


def contains(found, wanted):
    """Returns whether a JSON value contains everything that another one has."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and contains(found[key], value) for key, value in wanted.items())
    return found == wanted


def trace(stuck):
    """Compares the events of the trace that the page shows with those that the program writes."""
    page = (GUIDE / "debugging.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)[1]
    shown = json.loads("[" + re.sub(r"\}\n\{", "},{", block) + "]")
    shown[-1]["args"].pop("waited_ns")
    with subprocess.Popen([stuck], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        missing = shown
        while missing:  # until both replicas hang; the timeout of the test limits the loop
            process.send_signal(signal.SIGUSR1)
            events = json.loads(process.stdout.readline())["traceEvents"]
            missing = [event for event in shown if not any(contains(written, event) for written in events)]
        process.terminate()
        end = process.stdout.read()
    if process.returncode != 0 or "it was cancelled" not in end:
        print("the page shows", *shown, "but the program writes", *events, end, sep="\n")
        return 1
    return 0


# ---- The commands on tls.md ----


def tls(modules, launch, worker):
    """Checks that two workers meet with the certificate of the page, made for 127.0.0.1, and that another key is rejected."""
    page = (GUIDE / "tls.md").read_text(encoding="utf-8")
    commands = next(block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "openssl x509" in block)
    assert "DNS:a" in commands
    with tempfile.TemporaryDirectory() as folder:
        for name, host in (("own", "IP:127.0.0.1"), ("other", "IP:192.0.2.1")):
            made = Path(folder) / name
            made.mkdir()
            subprocess.run(["bash", "-ec", commands.replace("DNS:a", host)], check=True, cwd=made, capture_output=True)
        job = [launch, "-n", "2", "--replicas", "2", "--", worker]
        files = {"DIST_TLS_CA": "ca.pem", "DIST_TLS_CERTIFICATE": "a.pem", "DIST_TLS_KEY": "a.key"}
        kept = {**os.environ, "DIST_MODULE_FOLDER": modules, **files}
        good = subprocess.run(job, check=True, cwd=f"{folder}/own", env=kept, stdout=subprocess.PIPE, text=True, timeout=120)
        alone = {**kept, "TF_CONFIG": tf_config(["127.0.0.1:1"], 0), "DIST_TLS_KEY": "../other/a.key"}
        info = [str(Path(launch).with_name("dist-info")), "--check"]
        bad = subprocess.run(info, check=False, cwd=f"{folder}/own", env=alone, capture_output=True, text=True, timeout=120)
    shown = [sorted(block.splitlines()) for block in texts("two-processes.md")]
    if sorted(good.stdout.splitlines()) in shown and "does not belong to the certificate" in bad.stdout:
        return 0
    print(good.stdout, bad.stdout, bad.stderr)
    return 1


MODES = {"page": one_page, "python": python_programs, "errors": errors, "trace": trace, "tls": tls}

if __name__ == "__main__":
    sys.exit(MODES[sys.argv[1]](*sys.argv[2:]))
