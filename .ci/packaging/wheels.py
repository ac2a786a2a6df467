#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheels to publish of the one that Meson has built: libdist, and libdist-grpc with the module for processes.

auditwheel copies the libraries that they need into each of them, names the oldest glibc that they run with, and adds a
list of these libraries (CycloneDX). Their licenses are those of the Debian packages that they come from.

usage: wheels.py WHEEL OUTPUT_FOLDER
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from auditwheel.wheeltools import InWheelCtx

import debian_licenses

MODULE = "libdist/libdist-grpc.so"
METADATA = """\
Metadata-Version: 2.4
Name: libdist-grpc
Version: {version}
Summary: The module of libdist that connects replicas in different processes over gRPC
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Dist: libdist=={version}
Description-Content-Type: text/plain

libdist loads this module when a strategy has several processes. Install it beside libdist.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: libdist\nRoot-Is-Purelib: false\nTag: {tag}\n"


def split(whole: Path, folder: Path) -> list[Path]:
    """The wheel without the module, and one of the module, which suits every version of Python."""
    version, platform = re.fullmatch(r"libdist-([^-]+)-.*-([^-]+)\.whl", whole.name).groups()
    grpc = folder / f"libdist_grpc-{version}-py3-none-{platform}.whl"
    with InWheelCtx(whole, folder / whole.name) as wheel:
        module = wheel.path / MODULE
        licenses = next(wheel.path.glob("*.dist-info/licenses"))
        with InWheelCtx(whole, grpc) as other:  # starts with the contents of the first one
            for path in other.path.iterdir():
                shutil.rmtree(path)
            information = other.path / f"libdist_grpc-{version}.dist-info"
            shutil.copytree(licenses, information / "licenses")
            (information / "METADATA").write_text(METADATA.format(version=version), encoding="utf-8")
            (information / "WHEEL").write_text(WHEEL.format(tag=f"py3-none-{platform}"), encoding="utf-8")
            (information / "RECORD").touch()
            (other.path / MODULE).parent.mkdir()
            shutil.copy(module, other.path / MODULE)
        module.unlink()
    return [folder / whole.name, grpc]


def repair(wheel: Path, folder: Path) -> Path:
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", folder, wheel], check=True)
    return next(folder.glob("*.whl"))


def add_licenses(wheel: Path, to: Path) -> None:
    """Adds the licenses of the libraries that auditwheel has copied into the wheel."""
    with InWheelCtx(wheel, to) as opened:
        listed = json.loads(next(opened.path.glob("*.dist-info/sboms/auditwheel.cdx.json")).read_text(encoding="utf-8"))
        own = listed["metadata"]["component"]["name"]
        packages = {component["name"] for component in listed["components"]} - {own}
        debian_licenses.add_licenses(packages, next(opened.path.glob("*.dist-info/licenses")) / "bundled")
        print(f"{to.name}: contains libraries of {', '.join(sorted(packages))}")


def main(whole: str, output: str) -> int:
    with tempfile.TemporaryDirectory(prefix="dist-wheels-") as folder:
        for number, wheel in enumerate(split(Path(whole), Path(folder))):
            repaired = repair(wheel, Path(folder) / str(number))
            add_licenses(repaired, Path(output) / repaired.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
