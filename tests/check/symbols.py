#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libdist.so exports exactly the functions in the headers and symbols.txt, with the right symbol versions,
and calls nothing harmful.

usage: symbols.py NM LIBDIST_SO SYMBOLS_TXT API_JSON
"""

import json
import re
import subprocess
import sys
from pathlib import Path

# Calls that the library must not make, because they affect the host program. The undefined symbols of libdist.so are
# those of its own objects (including code from headers), so a symbol here means that the library contains such a call.
FORBIDDEN = {
    "ends the process": "abort exit _exit _Exit quick_exit raise kill",
    "starts a process": "fork vfork system popen execve execvp posix_spawn",
    "installs a handler": "signal sigaction atexit on_exit",
    "changes the environment": "setenv unsetenv putenv clearenv setlocale",
    "writes to stdout or stderr": "printf vprintf puts putchar fprintf vfprintf fputs fwrite perror stdout stderr "
    "_ZSt4cout _ZSt4cerr _ZSt4clog",
}


STABLE, EXPERIMENTAL = "DIST_1", "DIST_EXPERIMENTAL_1"


def symbols(nm: str, library: str, *options: str) -> dict[str, str]:
    """Returns the names and their versions: "printf@GLIBC_2.2.5", "dist_run@@DIST_1"."""
    out = subprocess.run([nm, "-D", *options, library], check=True, capture_output=True, text=True).stdout
    return dict(line.split()[-1].replace("@@", "@").partition("@")[::2] for line in out.splitlines() if line.strip())


def main(nm: str, library: str, listed: Path, api: Path) -> int:
    faults = []
    expected = [line for line in listed.read_text().splitlines() if line]
    functions = json.loads(api.read_text(encoding="utf-8"))["functions"]
    declared = {one["name"] for one in functions}
    versions = symbols(nm, library, "--defined-only")
    exported = versions.keys() - {STABLE, EXPERIMENTAL}
    for one in functions:
        right, version = EXPERIMENTAL if one["experimental"] else STABLE, versions.get(one["name"], "")
        if version not in ("", right):
            faults.append(f"{one['name']}: has version {version}, but its header {one['file']} needs {right}: see dist.map")
    faults += [
        f"{n}: listed, but not exported: a program that uses it would not start"
        for n in sorted(set(expected) - exported)
    ]
    faults += [f"{n}: exported, but not listed in {listed.name}" for n in sorted(exported - set(expected))]
    faults += [f"{n}: declared, but not listed in {listed.name}" for n in sorted(declared - set(expected))]
    faults += [f"{n}: listed in {listed.name}, but no longer declared" for n in sorted(set(expected) - declared)]
    if len(expected) != len(set(expected)):
        faults.append(f"{listed.name}: a name stands twice")
    names = symbols(nm, library, "--undefined-only")
    # "__printf_chk" is a fortified printf.
    imported = names.keys() | {m[1] for m in (re.match(r"__(\w+)_chk$", name) for name in names) if m}
    for reason, calls in FORBIDDEN.items():
        faults += [f"{name}: imported, which {reason}" for name in calls.split() if name in imported]
    for line in faults:
        print(line)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], *map(Path, sys.argv[3:])))
