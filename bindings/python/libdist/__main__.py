# SPDX-License-Identifier: Apache-2.0
"""python -m libdist: prints the version, the file that contains the library, and what this process can use."""

import pathlib
import sys

from . import has_feature, version

FEATURES = ("numa", "pinning", "isal", "grpc", "gloo")


def library() -> str:
    """The file of libdist.so, or the extension module, if that contains the library."""
    for line in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2].strip()
        if path.rpartition("/")[2].startswith("libdist.so"):
            return "/" + path
    return str(sys.modules[f"{__package__}.__cdist"].__file__)


def main() -> None:
    number = version()
    print(f"libdist   {number // 10000}.{number // 100 % 100}.{number % 100}")
    print(f"library   {library()}")
    for feature in FEATURES:
        print(f"{feature:9} {'yes' if has_feature(feature) else 'no'}")


if __name__ == "__main__":
    main()
