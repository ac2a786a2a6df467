#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the module as a stranger would: libdist installed, an empty module cache, a module of its own, no SWIG.

The program is the README's. The module comes from a proxy in a folder, by the file: form of GOPROXY, as `go get`
would take it from the network.

usage: module_test.py MESON BUILD_DIR GO
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULE = re.search(r"^module (\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)[1]
VERSION = "v0.1.0"
SKIP = 77


def run(*command, cwd=None, env=None):
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="", flush=True)
    return done.stdout


def make_proxy(folder):
    """What a module proxy serves: https://go.dev/ref/mod#goproxy-protocol."""
    at = folder / MODULE / "@v"
    at.mkdir(parents=True)
    (at / "list").write_text(VERSION + "\n")
    (at / f"{VERSION}.info").write_text(json.dumps({"Version": VERSION, "Time": "2026-01-01T00:00:00Z"}))
    shutil.copy(HERE / "go.mod", at / f"{VERSION}.mod")
    with zipfile.ZipFile(at / f"{VERSION}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(HERE.rglob("*")):
            if path.is_file():
                archive.write(path, f"{MODULE}@{VERSION}/{path.relative_to(HERE)}")


def install(meson, build, scratch):
    """The installed prefix, at scratch/prefix; its dist.pc."""
    run(meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch / "staged")
    header = next((scratch / "staged").rglob("dist.h"))
    shutil.move(header.parents[2], scratch / "prefix")
    pc = next((scratch / "prefix").rglob("dist.pc"))
    text = pc.read_text()
    pc.write_text(re.sub(r"^prefix=.*$", f"prefix={scratch / 'prefix'}", text, count=1, flags=re.MULTILINE))
    return pc


def readme_program():
    text = (HERE / "README.md").read_text(encoding="utf-8")
    program = re.search(r"```go\n(package main\n.*?)```", text, re.DOTALL)[1]
    output = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    return program, output


def main(meson, build, go):
    needed = re.search(r"^go (\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)[1]
    found = re.match(r"go([\d.]+)", run(go, "env", "GOVERSION"))[1]
    if [int(part) for part in found.split(".")[:2]] < [int(part) for part in needed.split(".")[:2]]:
        print(f"Go {needed} is needed; found {found}")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        make_proxy(scratch / "proxy")
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
            "GOPROXY": f"file://{scratch / 'proxy'}",
            "GOSUMDB": "off",
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-modcacherw",
            "GOPATH": str(scratch / "go"),
            "GOMODCACHE": str(scratch / "modcache"),
            "GOCACHE": str(Path(build) / "go-cache"),
        }
        consumer = scratch / "consumer"
        consumer.mkdir()
        program, output = readme_program()
        (consumer / "main.go").write_text(program)
        run(go, "mod", "init", "example.org/consumer", cwd=consumer, env=environment)
        run(go, "get", f"{MODULE}@latest", cwd=consumer, env=environment)
        run(go, "build", "-o", "program", ".", cwd=consumer, env=environment)
        came = run("./program", cwd=consumer, env=environment)
        if came != output:
            print(f"the program of README.md prints\n{came}and not\n{output}")
            return 1
        listed = run(go, "list", "-m", "-f", "{{.Dir}}", MODULE, cwd=consumer, env=environment)
        assert str(scratch / "modcache") in listed, "the module is not the proxy's"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
