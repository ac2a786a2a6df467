# SPDX-License-Identifier: Apache-2.0
"""The PEP 517 backend: meson-python on the whole project.

meson-python wants pyproject.toml beside the project's own meson.build, which for libdist is two folders up and belongs
to more than Python. So it gets a folder of links to the project in which this folder's pyproject.toml lies on top. A
source distribution is such a folder too, and needs this file no longer.
"""

import contextlib
import gzip
import io
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile

import mesonpy

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PARTS = ["LICENSE", "README.md", "bindings", "capi", "core", "include", "meson.build", "meson_options.txt"]


@contextlib.contextmanager
def _project():
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            os.symlink(ROOT / part, os.path.join(folder, part))
        pathlib.Path(folder, "pyproject.toml").write_bytes((HERE / "pyproject.toml").read_bytes())
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def get_requires_for_build_wheel(config_settings=None):
    """What meson-python needs beside itself."""
    with _project():
        return mesonpy.get_requires_for_build_wheel(config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel."""
    with _project():
        return mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)


def _sources():
    """The files that the wheel is built from. Only git knows which of the others in a working tree are none."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PARTS]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    else:
        found = (path for part in PARTS for path in ([ROOT / part] if (ROOT / part).is_file() else (ROOT / part).rglob("*")))
        listed = [path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts]
    return sorted(name for name in listed if (ROOT / name).is_file())


def build_sdist(sdist_directory, config_settings=None):
    """Packs the sources that the wheel is built from, with a pyproject.toml that meson-python takes as it is.

    With SOURCE_DATE_EPOCH in the environment, the same sources give the same file.
    """
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8")).group(1)
    name = f"libdist-{version}"
    time = int(os.environ.get("SOURCE_DATE_EPOCH", (ROOT / "meson.build").stat().st_mtime))
    pyproject = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    pyproject = pyproject.replace('build-backend = "backend"\nbackend-path = ["."]', 'build-backend = "mesonpy"')
    description = f"Metadata-Version: 2.1\nName: libdist\nVersion: {version}\n"
    contents = {path: (ROOT / path).read_bytes() for path in _sources()}
    contents |= {"pyproject.toml": pyproject.encode(), "PKG-INFO": description.encode()}
    with (
        open(os.path.join(sdist_directory, f"{name}.tar.gz"), "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, content in contents.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime = len(content), time
            entry.mode = 0o755 if (ROOT / path).is_file() and os.access(ROOT / path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return f"{name}.tar.gz"
