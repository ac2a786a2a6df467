#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a software bill of materials (CycloneDX 1.6, JSON) of the source archive.

It lists the parts of other authors that the archive contains, and the libraries that libdist is built with. The same
sources and SOURCE_DATE_EPOCH give the same file.

usage: sbom.py SOURCES VERSION OUTPUT
"""

import hashlib
import os
import re
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# Name, license, files of the archive, and where a version stands in them.
BUNDLED = (
    ("uPlot", "MIT", "examples/charts/uplot/uPlot.iife.min.js", r"uPlot \(v([\d.]+)\)"),
    ("Optical Recognition of Handwritten Digits", "CC-BY-4.0", "examples/data/digits.csv", None),
)

# Name, license, the option of Meson without which it is not needed (None: always), whether it is there at run time.
LIBRARIES = (
    ("oneTBB", "Apache-2.0", None, True),
    ("Highway", "Apache-2.0 OR BSD-3-Clause", None, False),
    ("RapidJSON", "MIT", None, False),
    ("hwloc", "BSD-3-Clause", "numa", True),
    ("ISA-L", "BSD-3-Clause", "isal", True),
    ("gRPC", "Apache-2.0", "grpc", True),
    ("OpenSSL", "Apache-2.0", "grpc", True),
    ("nettle", "LGPL-3.0-or-later OR GPL-2.0-or-later", "grpc", True),
    ("Gloo", "BSD-3-Clause", "gloo", True),
)


def bill(sources: Path, version: str) -> Bom:
    licenses = LicenseFactory()

    def component(name: str, license_text: str, **more: object) -> Component:
        return Component(name=name, licenses=[licenses.make_from_string(license_text)], bom_ref=name, **more)

    main = component("libdist", "Apache-2.0", version=version, type=ComponentType.LIBRARY)
    parts = []
    for name, license_text, file, pattern in BUNDLED:
        content = (sources / file).read_bytes()
        found = re.search(pattern, content.decode()) if pattern else None
        if pattern and not found:
            raise SystemExit(f"sbom.py: {file} does not contain a version ({pattern})")
        kind = ComponentType.LIBRARY if pattern else ComponentType.DATA
        part = component(name, license_text, version=found[1] if found else None, type=kind)
        part.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=sha256(content)))
        part.properties.add(Property(name="libdist:file", value=file))
        parts.append(part)
    options = (sources / "meson_options.txt").read_text(encoding="utf-8")
    for name, license_text, option, linked in LIBRARIES:
        if option and f"option('{option}'" not in options:
            raise SystemExit(f"sbom.py: meson_options.txt has no option {option}, which {name} belongs to")
        scope = ComponentScope.OPTIONAL if option else ComponentScope.REQUIRED
        part = component(name, license_text, type=ComponentType.LIBRARY, scope=scope)
        part.properties.add(Property(name="libdist:needed", value="at run time" if linked else "to build"))
        if option:
            part.properties.add(Property(name="libdist:option", value=option))
        parts.append(part)

    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"libdist-{version}-{epoch}"))
    bom.metadata.component = main
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    bom.register_dependency(main, parts)
    return bom


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main(sources: str, version: str, output: str) -> int:
    text = JsonV1Dot6(bill(Path(sources), version)).output_as_string(indent=2) + "\n"
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault:
        print(f"sbom.py: {fault}", file=sys.stderr)
        return 1
    Path(output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
