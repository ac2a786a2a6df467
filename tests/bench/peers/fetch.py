#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the sources of peers that are built out of a file or two into a folder, out of PyPI's source distributions.

fetch.py FOLDER: FOLDER/vllm has vLLM's csrc/cpu, FOLDER/deepspeed DeepSpeed's csrc/cpu/comm, FOLDER/ggml llama.cpp's ggml; the
first two also peer_version.h. pip asks a source distribution for its metadata before it keeps it: vLLM's answers where there is a
module named torch, which is made up here, and DeepSpeed's where there is none; nothing of them is built."""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

VLLM, DEEPSPEED, LLAMA = "0.33.0", "0.19.8", "0.3.36"
NEEDED = ("setuptools>=77", "setuptools-scm", "setuptools-rust", "scikit-build-core", "regex", "packaging", "jinja2", "wheel")
WANTED = {  # where it lies in the archive: where it comes to
    f"vllm-{VLLM}/csrc/cpu/": "vllm/cpu/",
    f"deepspeed-{DEEPSPEED}/csrc/cpu/comm/": "deepspeed/comm/",
    f"llama_cpp_python-{LLAMA}/vendor/llama.cpp/ggml/include/": "ggml/include/",
    f"llama_cpp_python-{LLAMA}/vendor/llama.cpp/ggml/src/": "ggml/src/",
}


def pip(*arguments, **environment):
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, env={**os.environ, **environment})


def made_up_torch(folder):
    utils = folder / "torch" / "utils"
    utils.mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("class version:\n    cuda = hip = None\n")
    (utils / "__init__.py").write_text("")
    (utils / "cpp_extension.py").write_text("CUDA_HOME = ROCM_HOME = None\n")


def unpack(archive, folder):
    """The wanted files alone."""
    with tarfile.open(archive) as opened:
        for member in opened:
            for prefix, place in WANTED.items():
                parts = pathlib.PurePosixPath(member.name).parts
                if member.isfile() and member.name.startswith(prefix) and ".." not in parts:
                    path = folder / place / member.name[len(prefix) :]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(opened.extractfile(member).read())


def note_versions(folder):
    """The sources that are compiled do not say which they are."""
    for name, version in ("vllm", VLLM), ("deepspeed", DEEPSPEED):
        if (folder / name).is_dir():
            (folder / name / "peer_version.h").write_text(f'#define PEER_VERSION "{version}"\n')


def main(folder):
    folder = pathlib.Path(folder)
    pip("install", "-q", *NEEDED)
    download = ("download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d")
    with tempfile.TemporaryDirectory() as scratch:
        made_up_torch(pathlib.Path(scratch))
        for_vllm = {"PYTHONPATH": scratch, "VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": VLLM}
        packages = {f"vllm=={VLLM}": for_vllm, f"deepspeed=={DEEPSPEED}": {}, f"llama-cpp-python=={LLAMA}": {}}
        for package, environment in packages.items():
            try:
                pip(*download, scratch, package, **environment)
            except subprocess.CalledProcessError:
                print(f"fetch.py: goes on without {package}", file=sys.stderr)
        for archive in pathlib.Path(scratch).glob("*.tar.gz"):
            unpack(archive, folder)
    note_versions(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
