# SPDX-License-Identifier: Apache-2.0
"""libdist for Conan 2. The libraries that it needs are the system's, because a process should have one oneTBB."""

import os
import re

from conan import ConanFile
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain
from conan.tools.system.package_manager import Apt

PARTS = ("LICENSE", "meson.build", "meson_options.txt", "include/*", "core/*", "capi/*", "bindings/*meson.build")
SWITCHED_OFF = ("tests", "examples", "bench", "go", "java", "python", "mpi")


class Dist(ConanFile):
    name = "libdist"
    license = "Apache-2.0"
    description = "Replicas as threads, and collectives between them (tf.distribute for host CPUs)"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "grpc": [True, False]}
    default_options = {"shared": True, "fPIC": True, "grpc": False}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "../../../meson.build"))
        self.version = re.search(r"version: '([^']+)'", text)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "../../..")
        for part in PARTS:
            copy(self, part, root, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def system_requirements(self):
        packages = ["meson", "libtbb-dev", "libhwy-dev", "libhwloc-dev", "rapidjson-dev"]
        if self.settings.arch == "x86_64":
            packages.append("libisal-dev")
        if self.options.grpc:
            packages += ["libgrpc++-dev", "libssl-dev", "nettle-dev"]
        Apt(self).install(packages, check=True)

    def generate(self):
        toolchain = MesonToolchain(self)
        toolchain.cpp_std = "c++20"  # of libdist itself; programs that use it may have another one
        for name in SWITCHED_OFF:
            toolchain.project_options[name] = "disabled"
        toolchain.project_options["grpc"] = "enabled" if self.options.grpc else "disabled"
        toolchain.project_options["gloo"] = "disabled"
        toolchain.project_options["isal"] = "enabled" if self.settings.arch == "x86_64" else "disabled"
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        Meson(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "dist")
        self.cpp_info.set_property("cmake_target_name", "dist::dist")
        self.cpp_info.set_property("pkg_config_name", "dist")
        self.cpp_info.libs = ["dist"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["tbb", "hwloc", "stdc++", "m", "pthread"]
            if self.settings.arch == "x86_64":
                self.cpp_info.system_libs.append("isal")
