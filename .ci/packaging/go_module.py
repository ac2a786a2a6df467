#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Go modules of the Go binding, in a folder that Go can use as a proxy.

Package dist gets the C headers and an archive of libdist, so that programs which import it need neither an installed
libdist nor pkg-config. The module is for the platform of the archive.

usage: go_module.py SOURCES VERSION ARCHIVE PACKAGE,... PROXY

ARCHIVE has been built from SOURCES, and contains code of the Debian PACKAGEs.
"""

import json
import os
import platform
import shutil
import sys
import zipfile
from datetime import datetime, timezone
from pathlib import Path

from debian_licenses import add_licenses

MODULE = "libdist.example/dist"
PKG_CONFIG = "#cgo pkg-config: dist\n"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
LINKED = f"""\
#cgo CPPFLAGS: -I${{SRCDIR}}
#cgo LDFLAGS: ${{SRCDIR}}/libdist.a -lm
"""
# `go mod vendor` copies only the folders of packages that are imported.
HEADERS = "// Package {name} is a folder of C headers.\npackage {name}\n"
IMPORTS = f"""\
package cdist

import (
	_ "{MODULE}/internal/cdist/dist"
	_ "{MODULE}/internal/cdist/dist/experimental"
)
"""
OTHER_PLATFORM = f"""\
//go:build !(linux && {MACHINE})

package cdist

var _ = this_module_of_libdist_is_for_linux_{MACHINE}_only
"""


def is_part(path: Path, folder: Path) -> bool:
    """Whether a file belongs to the module in a folder. Folders with a go.mod of their own are other modules."""
    inner = [parent for parent in path.parents if parent.is_relative_to(folder) and parent != folder]
    return (
        path.name in ("go.mod", "go.sum")
        or (path.suffix in (".go", ".cxx", ".h") and not path.name.endswith("_test.go"))
    ) and not any((parent / "go.mod").exists() for parent in inner)


def copy_module(folder: Path, to: Path, license_file: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_part(path, folder):
            copy = to / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    shutil.copyfile(license_file, to / "LICENSE")


def add_library(cdist: Path, include: Path, archive: Path) -> None:
    """Lets package cdist use its own headers and archive."""
    code = (cdist / "cdist.go").read_text(encoding="utf-8")
    if code.count(PKG_CONFIG) != 1:
        raise SystemExit(f"go_module.py: cdist.go must contain the line {PKG_CONFIG.strip()!r} once")
    (cdist / "cdist.go").write_text(code.replace(PKG_CONFIG, LINKED), encoding="utf-8")
    shutil.copyfile(archive, cdist / "libdist.a")
    for name in ("dist", "dist/experimental"):
        (cdist / name).mkdir()
        for header in (include / name).glob("*.h"):
            shutil.copyfile(header, cdist / name / header.name)
        (cdist / name / "headers.go").write_text(HEADERS.format(name=Path(name).name), encoding="utf-8")
    (cdist / "headers.go").write_text(IMPORTS, encoding="utf-8")
    (cdist / "platform.go").write_text(OTHER_PLATFORM, encoding="utf-8")


def publish(folder: Path, module: str, version: str, proxy: Path) -> None:
    """Writes the files that a proxy has of a module: see "GOPROXY protocol" in Go's reference of modules."""
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    stamp = datetime.fromtimestamp(epoch, timezone.utc)
    to = proxy / module / "@v"
    to.mkdir(parents=True)
    (to / "list").write_text(f"{version}\n", encoding="utf-8")
    information = {"Version": version, "Time": stamp.strftime("%Y-%m-%dT%H:%M:%SZ")}
    (to / f"{version}.info").write_text(json.dumps(information) + "\n", encoding="utf-8")
    shutil.copyfile(folder / "go.mod", to / f"{version}.mod")
    with zipfile.ZipFile(to / f"{version}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(f"{module}@{version}/{path.relative_to(folder)}", stamp.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    print(f"{to / version}.zip: {(to / f'{version}.zip').stat().st_size} bytes")


def main(sources: Path, version: str, archive: Path, packages: str, proxy: Path) -> int:
    binding = sources / "bindings/go"
    for folder, module in ((binding, MODULE), (binding / "distprom", f"{MODULE}/distprom")):
        made = proxy.parent / "modules" / module
        copy_module(folder, made, sources / "LICENSE")
        if folder == binding:
            add_library(made / "internal/cdist", sources / "include", archive)
            add_licenses(set(packages.split(",")), made / "licenses")
        publish(made, module, f"v{version}", proxy)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4], Path(sys.argv[5])))
