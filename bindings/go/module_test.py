#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the module as a stranger would: libdist installed, an empty module cache, a module of its own, no SWIG.

The program and the commands are the README's. The module is a copy of its folder, without what is beside that in
libdist's tree, and nothing is asked of a network.

usage: module_test.py MESON BUILD_DIR GO
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULE = re.search(r"^module (\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)[1]
SKIP = 77


def run(*command, cwd=None, env=None):
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="", flush=True)
    return done.stdout


def copy_module(folder):
    """The module alone, as a program that has it in its own tree would."""
    shutil.copytree(HERE, folder)
    return folder


def readme_commands(module):
    """What the README says a program's author types, with the folder that the module is in."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(go mod init .*?)```", text, re.DOTALL)[1].replace("\\\n", " ")
    commands = [shlex.split(line, comments=True) for line in block.replace("/path/to/libdist/bindings/go", str(module)).splitlines()]
    assert any(str(module) in word for command in commands for word in command), block
    return [command for command in commands if command]


def install(meson, build, scratch):
    """The installed prefix, at scratch/prefix; its dist.pc. A selection of tests may not have built all that is installed."""
    targets = json.loads(Path(build, "meson-info/intro-targets.json").read_text())
    files = [os.path.relpath(name, build) for one in targets if one["installed"] for name in one["filename"]]
    run("ninja", "-C", build, "--quiet", *files)
    run(meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch / "staged")
    header = next((scratch / "staged").rglob("dist.h"))
    shutil.move(header.parents[2], scratch / "prefix")
    pc = next((scratch / "prefix").rglob("dist.pc"))
    text = pc.read_text()
    pc.write_text(re.sub(r"^prefix=.*$", f"prefix={scratch / 'prefix'}", text, count=1, flags=re.MULTILINE))
    return pc


def readme_programs():
    """Each program, and what it prints."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    programs = re.findall(r"```go\n(package main\n.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 3, "the README has the first program, the one with requests, and the one with parameter servers"
    return programs


def main(meson, build, go):
    needed = re.search(r"^go (\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)[1]
    found = re.match(r"go([\d.]+)", run(go, "env", "GOVERSION"))[1]
    if [int(part) for part in found.split(".")[:2]] < [int(part) for part in needed.split(".")[:2]]:
        print(f"Go {needed} is needed; found {found}")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        module = copy_module(scratch / "module")
        pc = install(meson, build, scratch)
        (scratch / "bin").mkdir()
        swig = scratch / "bin" / "swig"
        swig.write_text("#!/bin/sh\necho swig was called >&2\nexit 1\n")
        swig.chmod(0o755)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GO", "CGO_"))},
            "PATH": f"{scratch / 'bin'}:{os.environ['PATH']}",
            "PKG_CONFIG_PATH": str(pc.parent),
            "LD_LIBRARY_PATH": str(pc.parents[1]),
            "GOPROXY": "off",
            "GOSUMDB": "off",
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-modcacherw",
            "GOPATH": str(scratch / "go"),
            "GOMODCACHE": str(scratch / "modcache"),
            "GOCACHE": str(Path(build) / "go-cache"),
        }
        consumer = scratch / "consumer"
        consumer.mkdir()
        for command in readme_commands(module):
            assert command[0] == "go", command
            run(go, *command[1:], cwd=consumer, env=environment)
        for program, output in readme_programs():
            (consumer / "main.go").write_text(program)
            run(go, "build", "-o", "program", ".", cwd=consumer, env=environment)
            launcher = []
            if "NewCoordinator" in program:
                if not list((scratch / "prefix").rglob("libdist-grpc.so")):
                    continue  # built, at least
                launcher = [scratch / "prefix" / "bin" / "dist-launch", "--ps", "1", "--workers", "2", "--"]
            came = run(*launcher, "./program", cwd=consumer, env=environment)
            if came != output:
                print(f"a program of README.md prints\n{came}and not\n{output}")
                return 1
        without_cgo = subprocess.run(
            [go, "build", "."], cwd=consumer, env={**environment, "CGO_ENABLED": "0"}, stderr=subprocess.PIPE, text=True, check=False
        )
        print(without_cgo.stderr)
        if without_cgo.returncode == 0 or "undefined: libdist_needs_cgo" not in without_cgo.stderr:
            print("a build without cgo must fail with a message that libdist needs cgo")
            return 1
        listed = run(go, "list", "-m", "-f", "{{.Dir}}", MODULE, cwd=consumer, env=environment)
        assert listed.strip() == str(module), "the module is another's"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
