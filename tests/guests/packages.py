#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs packages_program.py with each package of PyPI that a host of libdist is likely to use, before and after libdist.

usage: packages.py BUILD_DIR [--install] [NAME...]

Each set of packages has a virtual environment in BUILD_DIR/guest-packages. --install creates those that are missing;
without it, they are skipped. NAME selects sets.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

PROGRAM = Path(__file__).resolve().with_name("packages_program.py")
# The packages to install, and the steps of packages_program.py that use them.
SETS = {
    "tensorflow": (["tensorflow-cpu"], ["tensorflow", "import:tensorflow"]),
    "torch": (["torch", "numpy"], ["torch", "import:torch"]),
    "grpc": (["grpcio", "protobuf", "numpy"], ["grpc", "protobuf"]),
    "tbb": (["tbb", "numpy"], ["tbb"]),
    "old tbb": (["tbb==2021.6.0", "numpy"], ["tbb"]),  # 2021.5 is not on PyPI for Linux
}


def orders(package: str) -> list[str]:
    return [
        f"{package},replicas,{package}",
        f"replicas,{package},replicas",
        f"{package},workers,{package}",
        f"workers,{package},workers",
    ]


def install(folder: Path, packages: list[str]) -> None:
    venv.create(folder, with_pip=True, clear=True)
    subprocess.run([folder / "bin/pip", "install", "-q", *packages], check=True)
    (folder / "complete").touch()


def run(python: Path, build: Path, steps: str) -> bool:
    environment = dict(os.environ, PYTHONPATH=str(build / "bindings/python"), PYTHONFAULTHANDLER="1", TF_CPP_MIN_LOG_LEVEL="2")
    try:
        done = subprocess.run(
            [python, PROGRAM, steps], env=environment, timeout=600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = "a hang", (late.stdout or b"").decode()
    if code != 0:
        print(*(f"# {line}" for line in [f"ended with {code}", *output.splitlines()]), sep="\n", flush=True)
    return code == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_intermixed_args()
    build = arguments.build.resolve()
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    if not any((build / "bindings/python/libdist").glob(f"__cdist.{tag}*.so")):
        print(f"1..0 # SKIP {build} has no Python package for {tag}: ninja -C BUILD_DIR python-package capi/libdist-grpc.so")
        return 0
    count, bad = 0, 0
    for name, (packages, used) in SETS.items():
        if arguments.names and name not in arguments.names:
            continue
        folder = build / "guest-packages" / name.replace(" ", "-")
        if not (folder / "complete").exists():
            if not arguments.install:
                count += 1
                print(f"ok {count} - {name} # SKIP not installed: packages.py {arguments.build} --install", flush=True)
                continue
            install(folder, packages)
        for steps in (order for package in used for order in orders(package)):
            count += 1
            good = run(folder / "bin/python", build, steps)
            bad += not good
            print(f"{'ok' if good else 'not ok'} {count} - {name}: {steps}", flush=True)
    print(f"1..{count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
