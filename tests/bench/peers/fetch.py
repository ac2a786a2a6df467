#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Downloads the sources of peers that are built from one or two files out of PyPI's source distributions.

fetch.py FOLDER: FOLDER/vllm receives vLLM's csrc/cpu, FOLDER/deepspeed DeepSpeed's csrc/cpu/comm, and FOLDER/ggml
llama.cpp's ggml. The first two also receive peer_version.h. Before pip keeps a source distribution, it runs the
distribution's metadata hook. vLLM's requires a module named torch, which this script simulates; DeepSpeed's requires
that there is none. Nothing is built."""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

VLLM, DEEPSPEED, LLAMA = "0.33.0", "0.19.8", "0.3.36"
NEEDED = ("setuptools>=77", "setuptools-scm", "setuptools-rust", "scikit-build-core", "regex", "packaging", "jinja2", "wheel")
WANTED = {  # folder in the archive: folder of the result
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
    """Extracts only the wanted files."""
    with tarfile.open(archive) as opened:
        for member in opened:
            for prefix, place in WANTED.items():
                parts = pathlib.PurePosixPath(member.name).parts
                if member.isfile() and member.name.startswith(prefix) and ".." not in parts:
                    path = folder / place / member.name[len(prefix) :]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(opened.extractfile(member).read())


def note_versions(folder):
    """Writes the versions, which the compiled sources do not contain."""
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
