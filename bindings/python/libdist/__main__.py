# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m libdist`.

Without arguments it prints the version, the file that contains the library, and the optional features that this process
can use. `python -m libdist info ARGUMENTS` runs the program dist-info.
"""

import os
import sys

from . import NotFound, has_feature, version
from ._info import library, program

FEATURES = ("numa", "pinning", "isal", "grpc", "gloo")
FAILED = 125  # like dist-info, which uses status 1 for a problem that it found


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["info"]:
        try:
            path, environment = program()
            os.execve(path, ["dist-info", *arguments[1:]], environment)
        except (NotFound, OSError) as error:
            print(error, file=sys.stderr)
            return FAILED
    if arguments:
        print("usage: python -m libdist [info [--check] [--json]]", file=sys.stderr)
        return 2
    number = version()
    print(f"libdist   {number // 10000}.{number // 100 % 100}.{number % 100}")
    print(f"library   {library()}")
    for feature in FEATURES:
        print(f"{feature:9} {'yes' if has_feature(feature) else 'no'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
