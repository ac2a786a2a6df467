#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into a temporary prefix and uses it like a downstream project: with pkg-config, CMake, or as a subproject.

The prefix is moved after the installation, because nothing may depend on its original location.

usage: install_test.py (shared|static|cmake|uninstalled|subproject|fetch content) MESON BUILD_DIR, with the compilers in CC and CXX
       install_test.py "core only" MESON BUILD_DIR TEST_FOOTPRINT
       install_test.py "link module" MESON BUILD_DIR TRANSPORT_TESTS LINK_TESTS PROCESS_TESTS FAULTS
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# All files that are needed to build the library.
PARTS = ["LICENSE", "meson.build", "meson_options.txt", "include", "core", "capi", "bindings/meson.build"]
PARTS += [f"bindings/{language}/meson.build" for language in ("go", "java", "python")]
PARTS += [".ci/packaging/cmake"]
sys.path.insert(0, str(ROOT / "tests/abi/whole"))
from opening_program import program_of  # noqa: E402

CC = shlex.split(os.environ["CC"])
CXX = shlex.split(os.environ["CXX"])


def run(*command: object, **environment: str) -> str:
    line = [str(word) for word in command]
    print("+", *(f"{k}={v}" for k, v in environment.items()), *line, flush=True)
    # Meson sets this variable to the build folder, which a downstream project does not have.
    inherited = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run(line, env=inherited | environment, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="", flush=True)
    return done.stdout


def install(meson: str, build: Path, scratch: Path) -> Path:
    """Installs to scratch/prefix. Builds what is installed first, because a selection of tests may not have built it."""
    targets = json.loads((build / "meson-info/intro-targets.json").read_text())
    files = [os.path.relpath(name, build) for one in targets if one["installed"] for name in one["filename"]]
    run("ninja", "-C", build, "--quiet", *files)
    run(meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch / "staged")
    header = next((scratch / "staged").rglob("dist.h"))
    shutil.move(header.parents[2], scratch / "prefix")
    return scratch / "prefix"


def pkg_config(pc_dir: Path, *options: str) -> list[str]:
    # Only dist.pc can be found, as on a machine without any other -dev package.
    flags = run("pkg-config", *options, "dist", PKG_CONFIG_LIBDIR=str(pc_dir), PKG_CONFIG_PATH="").split()
    defines = [flag for flag in flags if flag.startswith("-D")]
    assert not defines, f"flags of libdist's own build are handed on: {defines}"
    return flags


def needed(program: Path) -> str:
    return run("readelf", "-d", program)


def shared(scratch: Path, prefix: Path) -> None:
    pc = next(prefix.rglob("dist.pc"))
    flags = pkg_config(pc.parent, f"--define-variable=prefix={prefix}", "--cflags", "--libs")
    libraries = {flag for flag in flags if flag.startswith("-l")}
    assert libraries == {"-ldist"}, f"more is linked than libdist: {libraries}"
    assert (prefix / "share/doc/dist/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    run(*CC, "-std=c11", HERE / "main.c", *flags, "-o", scratch / "c")
    opening_program(scratch, prefix, flags)
    run(*CXX, "-std=c++17", HERE / "main.cpp", *flags, "-o", scratch / "cpp")
    for program in (scratch / "c", scratch / "cpp"):
        run(program, LD_LIBRARY_PATH=str(pc.parents[1]))
        assert "libdist.so.1" in needed(program), "the shared library is not the one that was linked"
    programs(prefix)


def programs(prefix: Path) -> None:
    """Checks that the installed programs load the library of their own prefix, and that each has a manual page."""
    info = json.loads(run(prefix / "bin/dist-info", "--json"))
    assert Path(info["library"]).resolve().is_relative_to(prefix.resolve()), info["library"]
    for module in info["modules"]:
        assert not module["file"] or Path(module["file"]).resolve().is_relative_to(prefix.resolve()), module
    for name in ("dist-launch", "dist-info"):
        page = next(prefix.rglob(f"man1/{name}.1")).read_text(encoding="utf-8").replace("\\-", "-")
        for line in run(prefix / "bin" / name, "--help").splitlines()[1:]:
            assert line.strip() in page, f"{name}.1 does not have: {line}"


def opening_program(scratch: Path, prefix: Path, flags: list[str]) -> None:
    """Checks that the program in the first comment of dist.h compiles and runs."""
    (scratch / "opening.c").write_text(program_of(next(prefix.rglob("dist.h"))), encoding="utf-8")
    run(*CC, "-std=c99", "-Wall", "-Werror", scratch / "opening.c", *flags, "-o", scratch / "opening")
    assert run(scratch / "opening", LD_LIBRARY_PATH=str(next(prefix.rglob("libdist.so.1")).parent)) == ""


def link_module(scratch: Path, prefix: Path, transports: str, links: str, processes: str, faults: str) -> None:
    """Builds the example of a link module with only the prefix, and runs tests of transports and workers with it."""
    pc = next(prefix.rglob("dist.pc"))
    flags = pkg_config(pc.parent, f"--define-variable=prefix={prefix}", "--cflags")
    source = shutil.copy(ROOT / "examples/link_module/tcp.c", scratch)
    module = scratch / "module"
    module.mkdir()
    run(*CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", source, *flags, "-pthread", "-o", module / "libdist-tcp.so")
    for program in (transports, links):
        run(program, LINK_FOLDER=str(module))
    folders = f"{module}:{next(prefix.rglob('libdist-grpc.so')).parent}"
    for command in ((processes,), (faults, "--workers", "--processes", "killed"), (faults, "--workers", "--processes", "early_return")):
        run(*command, DIST_TRANSPORT="tcp", DIST_MODULE_FOLDER=folders)


def static(scratch: Path, prefix: Path) -> None:
    pc = next(prefix.rglob("dist.pc"))
    flags = pkg_config(pc.parent, f"--define-variable=prefix={prefix}", "--static", "--cflags", "--libs")
    for library in prefix.rglob("libdist.so*"):  # leaves only the static library
        library.unlink()
    run(*CC, "-std=c11", HERE / "main.c", *flags, "-o", scratch / "c")
    run(scratch / "c")
    assert "libdist" not in needed(scratch / "c"), "the shared library was linked"


def cmake(scratch: Path, prefix: Path) -> None:
    build = scratch / "build"
    compilers = (f"-DCMAKE_C_COMPILER={CC[-1]}", f"-DCMAKE_CXX_COMPILER={CXX[-1]}")
    run("cmake", "-G", "Ninja", "-S", HERE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", *compilers)
    run("cmake", "--build", build)
    for name in ("consumer", "consumer_cpp", "consumer_static"):
        run(build / name)
    assert "libdist.so.1" in needed(build / "consumer")
    assert "libdist" not in needed(build / "consumer_static")
    exported = run("nm", "-D", "--defined-only", build / "libconsumer_plugin.so")
    assert " dist_" not in exported, "a plugin exports the libdist that it contains"


def uninstalled(scratch: Path, build: Path) -> None:
    """Uses the build folder instead of a prefix, as `meson devenv` does."""
    flags = pkg_config(build / "meson-uninstalled", "--cflags", "--libs")
    run(*CC, "-std=c11", HERE / "main.c", *flags, "-o", scratch / "c")
    run(scratch / "c", LD_LIBRARY_PATH=str(build / "capi"))


def copy_sources(to: Path) -> None:
    for part in PARTS:
        target = to / part
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, target)


def fetch_content(scratch: Path) -> None:
    """Builds a CMake project that builds libdist from a source archive."""
    copy_sources(scratch / "libdist")
    archive = shutil.make_archive(str(scratch / "libdist"), "gztar", scratch, "libdist")
    app, build = scratch / "app", scratch / "app-build"
    shutil.copytree(HERE / "fetch_content", app)
    shutil.copy(HERE / "main.c", app)
    environment = {"PKG_CONFIG_PATH": "", "CCACHE_BASEDIR": str(scratch)}
    compilers = [f"-DCMAKE_C_COMPILER={CC[-1]}", f"-DCMAKE_CXX_COMPILER={CXX[-1]}"]
    if len(CC) > 1:  # with ccache
        compilers += [f"-DCMAKE_C_COMPILER_LAUNCHER={CC[0]}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={CXX[0]}"]
    for _ in range(2):  # the second setup must not build anything
        told = run("cmake", "-G", "Ninja", "-S", app, "-B", build, f"-DDIST_SOURCES={archive}", *compilers, **environment)
    assert "Compiling" not in told and "Linking" not in told, "libdist was built twice"
    run("cmake", "--build", build, **environment)
    for name in ("consumer", "consumer_static"):
        run(build / name)
    assert "libdist.so.1" in needed(build / "consumer")
    assert "libdist" not in needed(build / "consumer_static")


def subproject(scratch: Path, meson: str, whole: bool) -> None:
    """Builds a project that gets libdist with the dist.wrap of the source tree, from a local repository."""
    copy_sources(scratch / "libdist")
    git = ("git", "-C", scratch / "libdist", "-c", "user.name=libdist", "-c", "user.email=libdist@example.org")
    run(*git, "init", "--quiet")
    run(*git, "add", ".")
    run(*git, "commit", "--quiet", "--message", "The library alone")

    app, build = scratch / "app", scratch / "app-build"
    shutil.copytree(HERE / "subproject", app)
    for name in ("main.c", "main.cpp"):
        shutil.copy(HERE / name, app)
    (app / "subprojects").mkdir()
    shutil.copy(ROOT / "dist.wrap", app / "subprojects")
    environment = {"PKG_CONFIG_PATH": "", "CCACHE_BASEDIR": str(scratch)}
    run(meson, "setup", "--wrap-mode=forcefallback", "--buildtype=plain", build, app, **environment)
    compiled = [line.split(":")[0] for line in run("ninja", "-C", build, "-t", "targets", "all").splitlines() if ".o:" in line]
    of_dist = [name for name in compiled if name.startswith("subprojects/dist/")]
    sources = [path for folder in ("core", "capi") for path in (ROOT / folder).rglob("*.cpp")]
    assert of_dist, "libdist is not built as a subproject"
    assert all(name.startswith(("subprojects/dist/core/", "subprojects/dist/capi/")) for name in of_dist), of_dist
    # The kernels are compiled once for all instruction sets, and the C layer once for both libraries.
    assert len(of_dist) <= len(sources), f"{len(of_dist)} objects of {len(sources)} sources"
    if whole:
        run(meson, "test", "-C", build, "--print-errorlogs", **environment)


# The limits of a libdist that needs only oneTBB, about a tenth above the values in
# examples/guide/platforms.md.
CORE_ONLY = {"file": 5_250_000, "libdist.memory": 5_250_000, "libdist.relocations": 1_900, "libdist.constructors": 1,
             "used.private_kib - before.private_kib": 2048}
CORE_ONLY_NEEDS = {"libtbb.so.12", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}


def core_only(scratch: Path, meson: str, footprint: str) -> None:
    """Checks that the smallest libdist needs only oneTBB, and that its size is within the limits."""
    off = [f"-D{name}=disabled" for name in ("numa", "isal", "grpc", "gloo", "tests", "examples", "go", "java", "python", "bench")]
    build = scratch / "core-only"
    run(meson, "setup", "--buildtype=release", *off, build, ROOT, CCACHE_BASEDIR=str(scratch))
    run(meson, "compile", "-C", build, "libdist:shared_library", CCACHE_BASEDIR=str(scratch))
    library = next((build / "capi").glob("libdist.so.1"))
    needs = set(re.findall(r"\(NEEDED\).*\[(.*)\]", needed(library)))
    assert needs <= CORE_ONLY_NEEDS, f"more is needed than oneTBB: {needs - CORE_ONLY_NEEDS}"
    run("strip", "-o", scratch / "stripped", library)
    found = {"file": (scratch / "stripped").stat().st_size}
    for name, number in re.findall(r"^# (.*): (\d+)$", run(footprint, LD_LIBRARY_PATH=str(library.parent)), re.M):
        found[name] = int(number)
    for name, limit in CORE_ONLY.items():
        print(f"# {name}: {found[name]} of at most {limit}")
        assert found[name] <= limit, f"{name} is {found[name]}, and the limit is {limit}"


def main(kind: str, meson: str, build: str, *programs: str) -> int:
    if kind in ("cmake", "fetch content") and not shutil.which("cmake"):
        print("skipped: cmake is not installed")
        return SKIP
    with tempfile.TemporaryDirectory(prefix="dist-consumer-") as folder:
        scratch = Path(folder)
        if kind == "uninstalled":
            uninstalled(scratch, Path(build))
        elif kind == "link module":
            link_module(scratch, install(meson, Path(build), scratch), *programs)
        elif kind == "core only":
            core_only(scratch, meson, *programs)
        elif kind == "fetch content":
            fetch_content(scratch)
        elif kind.startswith("subproject"):
            subproject(scratch, meson, whole=kind == "subproject")
        else:
            {"shared": shared, "static": static, "cmake": cmake}[kind](
                scratch, install(meson, Path(build), scratch)
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
