#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that `meson setup` fails with a clear message on platforms that libdist does not support.

Cross files simulate other machines. A wrapper script that claims to be GCC 9 or Clang 9 simulates an old compiler.

usage: platforms.py ROOT MESON CC CXX
"""

import subprocess
import sys
import tempfile
from pathlib import Path

MACHINE = {"system": "linux", "cpu_family": "x86_64", "cpu": "x86_64", "endian": "little"}
# A difference from this machine, and the message that Meson must print.
CASES = [
    ({"system": "windows"}, "libdist is for Linux"),
    ({"system": "darwin"}, "this build is for darwin"),
    ({"cpu_family": "s390x", "endian": "big"}, "libdist is for little-endian machines"),
    ({"word": "32"}, "libdist is for 64-bit machines"),
    ({"compiler": "old"}, "needs GCC 12 or Clang 14; this is "),
]


def quoted(words: list[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def compilers(folder: Path, case: dict[str, str], cc: str, cxx: str) -> tuple[list[str], list[str]]:
    """Returns the compilers, unchanged or behind a script that changes their answers to Meson."""
    given = []
    for name, command in (("cc", cc), ("c++", cxx)):
        plain = command.split()[-1]  # without ccache
        if "compiler" in case:
            lie = (  # Meson asks GCC for its macros and Clang for its version
                'case " $* " in *" -dM "*) exec {0} -U__GNUC__ -D__GNUC__=9 "$@" ;;\n'
                '*" --version "*) {0} --version | sed "s/clang version [0-9]*/clang version 9/"; exit ;; esac\n'
            )
        elif "word" in case:  # Meson determines the pointer size
            lie = 'case " $* " in *testfile.c*) exec {0} -m32 "$@" ;; esac\n'
        else:
            given.append(command.split())
            continue
        script = folder / name
        script.write_text(f"#!/bin/sh\n{lie.format(plain)}exec {plain} \"$@\"\n")
        script.chmod(0o755)
        given.append([str(script)])
    return given[0], given[1]


def told(root: Path, meson: str, case: dict[str, str], cc: str, cxx: str) -> str:
    with tempfile.TemporaryDirectory(prefix="dist-platform-") as name:
        folder = Path(name)
        c, cpp = compilers(folder, case, cc, cxx)
        machine = "".join(f"{key} = '{case.get(key, value)}'\n" for key, value in MACHINE.items())
        cross = folder / "cross.ini"
        cross.write_text(
            f"[binaries]\nc = {quoted(c)}\ncpp = {quoted(cpp)}\nar = 'ar'\npkgconfig = 'pkg-config'\n"
            f"[properties]\nneeds_exe_wrapper = true\n[host_machine]\n{machine}"
        )
        done = subprocess.run(
            [meson, "setup", "--cross-file", cross, "-Dtests=disabled", "-Dexamples=disabled", folder / "build", root],
            capture_output=True, text=True, check=False,
        )
        assert done.returncode != 0, f"{case} was set up"
        return done.stdout + done.stderr


def main(root: Path, meson: str, cc: str, cxx: str) -> int:
    failed = 0
    for case, words in CASES:
        said = told(root, meson, case, cc, cxx)
        if words not in said:
            print(f"{case}: not told \"{words}\", but:\n{said}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
