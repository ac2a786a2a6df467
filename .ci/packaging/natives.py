#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the libraries that the Java binding needs to its native libraries, so that a jar of them runs on any system.

The folder OUTPUT/native/linux-MACHINE-glibc has libdist and the binding. They are repaired as a wheel is (wheels.py), with
all files in one folder. `bundled.properties` in that folder lists the added files for NativeLoader.java: those that the
binding needs, and those that only the modules need. Licenses and the list of libraries go to OUTPUT/META-INF.

usage: natives.py OUTPUT VERSION
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from auditwheel.wheeltools import InWheelCtx
from elftools.elf.elffile import ELFFile

from wheels import WHEEL, add_licenses, repair

METADATA = "Metadata-Version: 2.4\nName: libdist-java\nVersion: {version}\n"
WHEEL_URL = re.compile(r"pkg:pypi/libdist_java@[^\"]*")
BINDING = "libdist_java.so"
# auditwheel copies libraries into this folder of the wheel. The native libraries are in it already, so all are together.
LIBRARIES = "libdist_java.libs"


def needed(library: Path) -> set[str]:
    """The names of the files that a library needs, in turn too, as far as they are in its folder."""
    found = set()
    new = [library]
    while new:
        with new.pop().open("rb") as file:
            names = {tag.needed for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
        names = {name for name in names - found if (library.parent / name).exists()}
        found |= names
        new += [library.parent / name for name in names]
    return found


def make_wheel(natives: Path, version: str, wheel: Path) -> None:
    """Makes a wheel of the native libraries, only for auditwheel."""
    folder = wheel.parent / "content"
    shutil.copytree(natives, folder / LIBRARIES)
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", folder / LIBRARIES / BINDING], check=True)
    information = folder / f"libdist_java-{version}.dist-info"
    (information / "licenses").mkdir(parents=True)
    (information / "METADATA").write_text(METADATA.format(version=version), encoding="utf-8")
    tag = "-".join(wheel.stem.split("-")[2:])
    (information / "WHEEL").write_text(WHEEL.format(tag=tag), encoding="utf-8")
    (information / "RECORD").touch()
    archive = shutil.make_archive(str(wheel), "zip", folder)
    with InWheelCtx(Path(archive), wheel):
        pass  # writes RECORD


def bundle(natives: Path, meta: Path, version: str) -> None:
    """Replaces the native libraries by repaired ones and what they need."""
    machine = natives.name.split("-")[1]
    own = {path.name for path in natives.iterdir()}
    with tempfile.TemporaryDirectory(prefix="dist-natives-") as name:
        folder = Path(name)
        wheel = folder / f"libdist_java-{version}-py3-none-linux_{machine}.whl"
        make_wheel(natives, version, wheel)
        repaired = repair(wheel, folder / "repaired")
        licensed = folder / repaired.name
        add_licenses(repaired, licensed)
        with InWheelCtx(licensed) as opened:
            shutil.rmtree(natives)
            shutil.copytree(opened.path / LIBRARIES, natives)
            information = next(opened.path.glob("*.dist-info"))
            shutil.copytree(information / "licenses" / "bundled", meta / "licenses", dirs_exist_ok=True)
            (meta / "sboms").mkdir(exist_ok=True)
            listed = (information / "sboms" / "auditwheel.cdx.json").read_text(encoding="utf-8")
            maven = f"pkg:maven/org.libdist/libdist-java@{version}"
            (meta / "sboms" / f"{natives.name}.cdx.json").write_text(WHEEL_URL.sub(maven, listed), encoding="utf-8")
    binding = needed(natives / BINDING) - own
    modules = {path.name for path in natives.iterdir()} - own - binding
    text = f"binding={' '.join(sorted(binding))}\nmodules={' '.join(sorted(modules))}\n"
    (natives / "bundled.properties").write_text(text, encoding="utf-8")


def main(output: str, version: str) -> int:
    for natives in sorted(Path(output, "native").glob("linux-*-glibc")):
        bundle(natives, Path(output, "META-INF"), version)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
