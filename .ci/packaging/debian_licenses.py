# SPDX-License-Identifier: Apache-2.0
"""Copies the licenses of Debian packages, for files that contain code of them."""

import re
import shutil
from pathlib import Path

COMMON = re.compile(r"/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]")


def add_licenses(packages: set[str], folder: Path) -> None:
    """Copies the licenses of installed packages into a new folder, with the texts that they refer to."""
    folder.mkdir()
    for package in sorted(packages):
        text = Path(f"/usr/share/doc/{package}/copyright").read_text(encoding="utf-8")
        (folder / f"{package}.txt").write_text(text, encoding="utf-8")
        for common in set(COMMON.findall(text)):
            shutil.copyfile(common, folder / Path(common).name)
