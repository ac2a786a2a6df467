#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that everything that ./dev downloads is pinned to a version and verified.

With Go, a local proxy offers a different tool chain under the pinned name. Go must refuse it.

usage: pinned.py ROOT [GO]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Each pattern matches a way to install something without verification.
UNVERIFIED = re.compile(
    r"GONOSUMDB|GONOSUMCHECK|GOSUMDB|GOINSECURE|GOPRIVATE|GOFLAGS=|GOPROXY=|-insecure|trusted-host|no-check-certificate"
)

# Scripts that download something.
SCRIPTS = (
    "dev",
    ".ci/debian_source.sh",
    ".ci/packages.sh",
    ".ci/packaging/package.sh",
    ".ci/packaging/roots.sh",
    "bindings/go-toolchain/fetch.sh",
    "bindings/go/distprom/test.sh",
    "bindings/java/fetch_jars.sh",
    "examples/guide/site/build.sh",
    "tests/bench/commands.sh",
    "tests/fetch_packages.sh",
)

# Lists of packages that pip installs.
REQUIREMENTS = (
    "tests/requirements.txt",
    "examples/guide/site/requirements.txt",
    ".ci/packaging/requirements.txt",
    ".ci/packaging/beside.txt",
)


def go_faults(root: Path) -> list[str]:
    folder = root / "bindings/go-toolchain"
    module, version = re.search(r"^require (\S+) (\S+)$", (folder / "go.mod").read_text(), re.MULTILINE).groups()
    needed = re.search(r"^go (\S+)$", (root / "bindings/go/go.mod").read_text(), re.MULTILINE)[1]
    faults = []
    if f"-go{needed}." not in version:
        faults.append(f"the tool chain is {version}, where bindings/go/go.mod asks for Go {needed}")
    sums = (folder / "go.sum").read_text()
    for line in (f"{module} {version} h1:", f"{module} {version}/go.mod h1:"):
        if line not in sums:
            faults.append(f"go.sum has no line {line}")
    return faults


def pip_faults(root: Path) -> list[str]:
    text = "".join((root / name).read_text() for name in REQUIREMENTS).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [
        f"not pinned and verified: {line}"
        for line in lines
        if not re.fullmatch(r"[\w-]+==\d[\w.]*( ; [^-]*)?(\s+--hash=sha256:[0-9a-f]{64})+", line.strip())
    ]


def jar_faults(root: Path) -> list[str]:
    """Checks that all jars are pinned and that a different jar from Maven is refused."""
    folder = root / "bindings/java"
    lines = [line for line in (folder / "jars.txt").read_text().splitlines() if not line.startswith("#")]
    faults = [
        f"not pinned and verified: {line}"
        for line in lines
        if not re.fullmatch(r"[0-9a-f]{64}  [\w.-]+:[\w.-]+:\d[\d.]*", line)
    ]
    _, artifact, version = lines[0].split()[1].split(":")
    with tempfile.TemporaryDirectory() as scratch:
        maven, jars = Path(scratch, "bin/mvn"), Path(scratch, "jars")
        maven.parent.mkdir()
        maven.write_text(
            '#!/bin/sh\nfor word; do case $word in -DoutputDirectory=*) echo other >"${word#*=}'
            f'/{artifact}-{version}.jar" ;; esac; done\n'
        )
        maven.chmod(0o755)
        done = subprocess.run(
            [folder / "fetch_jars.sh", jars], env={**os.environ, "LC_ALL": "C", "PATH": f"{maven.parent}:{os.environ['PATH']}"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0 or "did NOT match" not in done.stdout + done.stderr or jars.exists():
            faults.append(f"another jar was not refused: {done.stdout}{done.stderr}")
    return faults


def script_faults(root: Path) -> list[str]:
    faults = [f"{name}: {match[0]}" for name in SCRIPTS for match in UNVERIFIED.finditer((root / name).read_text())]
    if "--require-hashes" not in (root / "tests/fetch_packages.sh").read_text():
        faults.append("tests/fetch_packages.sh: pip must be called with --require-hashes")
    return faults


def refused(root: Path, go: str) -> list[str]:
    """Checks that Go refuses a different archive under the pinned name from a local proxy."""
    pinned = root / "bindings/go-toolchain"
    module, version = re.search(r"^require (\S+) (\S+)$", (pinned / "go.mod").read_text(), re.MULTILINE).groups()
    with tempfile.TemporaryDirectory() as folder:
        proxy, tree = Path(folder, "proxy", module, "@v"), Path(folder, "tree")
        proxy.mkdir(parents=True)
        tree.mkdir()
        (proxy / f"{version}.info").write_text(json.dumps({"Version": version, "Time": "2025-01-01T00:00:00Z"}))
        (proxy / f"{version}.mod").write_text(f"module {module}\n")
        with zipfile.ZipFile(proxy / f"{version}.zip", "w") as archive:
            archive.writestr(f"{module}@{version}/bin/go", "#!/bin/sh\n")
        for name in ("go.mod", "go.sum"):
            (tree / name).write_bytes((pinned / name).read_bytes())
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GO")}
        fetched = {"GOPROXY": f"file://{Path(folder, 'proxy')}", "GOMODCACHE": f"{folder}/modules", "GOTOOLCHAIN": "local"}
        done = subprocess.run(
            [go, "mod", "download", "-modcacherw", f"{module}@{version}"],
            cwd=tree, env={**kept, **fetched, "GOENV": "off"}, capture_output=True, text=True, check=False,
        )
        if done.returncode != 0 and "checksum mismatch" in done.stderr:
            return []
        return [f"another tool chain was not refused: {done.stdout}{done.stderr}"]


def main(root: Path, go: str = "") -> int:
    faults = go_faults(root) + pip_faults(root) + jar_faults(root) + script_faults(root) + (refused(root, go) if go else [])
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
