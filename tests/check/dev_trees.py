#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that ./dev works with copied and moved source trees, and that `./dev install` builds only the library.

A copy must not build the tree for which its build folder was set up. The test uses a project with a single file and the
options of libdist.

usage: dev_trees.py ROOT MESON
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = "project('tiny', meson_version: '>=1.0.1')\ninstall_data('note.txt', install_dir: 'share')\n"
SKIP = 77
ANEW = "is set up anew for this one"


def install(tree: Path, prefix: Path, stubs: Path) -> str:
    """Runs `./dev install` in the tree and returns its output."""
    done = subprocess.run(
        [tree / "dev", "install", "--prefix", prefix],
        env={**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout, flush=True)
    if "apt-get" in done.stdout:
        print("skipped: ./dev would install something first")
        sys.exit(SKIP)
    assert done.returncode == 0, f"./dev install failed in {tree}"
    return done.stdout


def files_of(tree: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(tree).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in tree.rglob("*")
        if path.is_file()
    }


def copies(root: Path, scratch: Path) -> Path:
    """Installs from a tree, a copy of it, and the copy after it was moved. Returns the first tree."""
    stubs, first, second, third = (scratch / name for name in ("bin", "first", "second", "third"))
    stubs.mkdir()
    for name in ("apt-get", "sudo"):  # make sure that nothing is installed on this machine
        (stubs / name).write_text("#!/bin/sh\nexit 1\n")
        (stubs / name).chmod(0o755)
    first.mkdir()
    (first / ".ci").mkdir()
    for name in ("dev", ".ci/packages.sh", "meson_options.txt"):
        shutil.copy(root / name, first / name)
    (first / "meson.build").write_text(PROJECT)
    (first / "note.txt").write_text("first\n")
    install(first, scratch / "prefix1", stubs)
    assert (scratch / "prefix1/share/note.txt").read_text() == "first\n"

    shutil.copytree(first, second, symlinks=True)
    (second / "note.txt").write_text("second\n")
    before = files_of(first)
    assert ANEW in install(second, scratch / "prefix2", stubs)
    assert (scratch / "prefix2/share/note.txt").read_text() == "second\n", "the copy installed the other tree"
    assert files_of(first) == before, "the copy wrote to the tree that it was copied from"
    assert ANEW not in install(second, scratch / "prefix2", stubs)

    second.rename(third)
    (third / "note.txt").write_text("third\n")
    assert ANEW in install(third, scratch / "prefix3", stubs)
    assert (scratch / "prefix3/share/note.txt").read_text() == "third\n"
    return first


def library_alone(root: Path, first: Path, scratch: Path, meson: str) -> None:
    """Checks that the options of `./dev install` compile no files except those of the library."""
    given = json.loads((first / "build-install/meson-info/intro-buildoptions.json").read_text())
    options = [f"-D{each['name']}={each['value']}" for each in given if each["section"] == "user"]
    build = scratch / "library"
    subprocess.run([meson, "setup", build, root, *options], stdout=subprocess.DEVNULL, check=True)
    targets = json.loads((build / "meson-info/intro-targets.json").read_text())
    sources = {name for target in targets for group in target["target_sources"] for name in group["sources"]}
    foreign = [name for name in sources if not name.startswith((f"{root}/core/", f"{root}/capi/"))]
    assert sources and not foreign, f"more is built than the library: {foreign}"


def main(root: Path, meson: str) -> int:
    with tempfile.TemporaryDirectory(prefix="dist-trees-") as folder:
        scratch = Path(folder).resolve()
        library_alone(root, copies(root, scratch), scratch, meson)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
