# SPDX-License-Identifier: Apache-2.0
"""info(): runs the program dist-info with the library of this process."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

from ._arguments import checked
from .errors import DeadlineExceeded, FailedPrecondition, NotFound
from .names import version

_TIMEOUT = 120  # seconds; more than the checks of dist-info take together


def library() -> str:
    """Returns the path of libdist.so, or of the extension module if that contains the library."""
    for line in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2].strip()
        if path.rpartition("/")[2].startswith("libdist.so"):
            return "/" + path
    return str(sys.modules[f"{__package__}.__cdist"].__file__)


def program() -> tuple[str, dict[str, str]]:
    """Returns the path of dist-info, and an environment in which it loads the library of this process."""
    folder = os.path.dirname(library())
    installed = os.path.join(os.path.dirname(folder), "bin")
    path = os.environ.get("PATH", os.defpath)
    found = shutil.which("dist-info", path=os.pathsep.join([folder, installed, path]))
    if found is None:
        raise NotFound(
            f"info(): the program dist-info is not in {folder}, beside the library of this process, not in {installed}, and"
            f' not in PATH ("{path}"). Install the programs of libdist, or add the folder that contains dist-info to PATH.',
            function="info",
        )
    libraries = filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")])
    return found, {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@checked
def info(check: bool = False) -> dict[str, Any]:
    """Returns what libdist finds on this machine: the object that `dist-info --json` prints.

    With `check`, it also checks whether a job can run in this environment. The key "check" then has the findings, which
    include a trial with two processes; a problem does not raise an exception. The keys are described in the section
    "dist-info" of capi/tools/README.md.

    It starts the program dist-info, and raises NotFound if that is neither beside the library nor in PATH. The program
    loads the library of this process. If the extension module contains that, it loads the library of its own
    installation, which must have the same version.
    """
    path, environment = program()
    command = [path, "--json", *(["--check"] if check else [])]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeadlineExceeded(f"info(): {path} was killed because it did not end within {_TIMEOUT} s", function="info") from None
    except OSError as error:
        raise FailedPrecondition(f"info(): cannot run {path}: {error.strerror}", function="info") from error
    if done.returncode not in (0, 1) or not done.stdout:  # 1: it has found a problem
        told = done.stderr.decode(errors="replace").strip()
        raise FailedPrecondition(f"info(): {path} failed with status {done.returncode}: {told}", function="info")
    report: dict[str, Any] = json.loads(done.stdout)
    number = version()
    own = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    if report["version"] != own:  # of another installation, because the extension module contains this one
        raise FailedPrecondition(
            f"info(): {path} describes libdist {report['version']} ({report['library']}), but this process uses {own}. Put"
            f" the program of libdist {own} first in PATH.",
            function="info",
        )
    return report
