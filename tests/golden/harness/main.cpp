// SPDX-License-Identifier: Apache-2.0
// dist_golden --root PROJECT [DIR ...] [--area AREA] [--id GLOB] [--show N]: prints the report of ./dev
// golden.
// dist_golden --root PROJECT --suite AREA: runs the same cases as a cmocka group.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "report.hpp"
#include "suite.hpp"

namespace golden {
namespace {

constexpr char kUsage[] =
    "usage: dist_golden --root PROJECT [DIR ...] [--area AREA] [--id GLOB] [--show N] [--list FILE]\n"
    "       dist_golden --root PROJECT --suite AREA\n"
    "Plays the cases recorded from TensorFlow in each DIR (default: those of PROJECT, and shared/golden "
    "beside it if it\n"
    "exists) and reports which results differ.\n"
    "\n"
    "  --area AREA        only this area\n"
    "  --id GLOB          only cases whose id matches\n"
    "  --show N           print at most N differences\n"
    "  --list FILE        the list of known differences\n"
    "  --suite AREA       run the cases of AREA as cmocka tests\n";

struct Arguments {
  std::string root;
  bool suite = false;
  ReportOptions options;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) {
      arguments.options.directories.emplace_back(name);
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::string value = argv[++i];
    if (name == "--root") {
      arguments.root = value;
    } else if (name == "--area" || name == "--suite") {
      arguments.suite = name == "--suite";
      arguments.options.selection.area = value;
    } else if (name == "--id") {
      arguments.options.selection.id = value;
    } else if (name == "--list") {
      arguments.options.list = value;
    } else if (name == "--show") {
      const auto [stop, error] =
          std::from_chars(value.data(), value.data() + value.size(), arguments.options.shown);
      if (error != std::errc{} || *stop != '\0') return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.root.empty()) return std::nullopt;
  return arguments;
}

void fill_in(const std::filesystem::path& root, ReportOptions& options) {
  const std::filesystem::path folder = root / "tests" / "golden";
  if (options.list.empty()) options.list = (folder / "differences.md").string();
  options.own = (folder / "cases").string();
  if (!options.directories.empty()) return;
  options.directories.push_back(options.own);
  const std::filesystem::path beside = std::filesystem::absolute(root) / ".." / "shared" / "golden";
  if (std::filesystem::is_directory(beside))
    options.directories.push_back(beside.lexically_normal().string());
}

}  // namespace
}  // namespace golden

int main(int argc, char** argv) {
  std::optional<golden::Arguments> arguments = golden::parse(argc, argv);
  if (!arguments) {
    std::fputs(golden::kUsage, stderr);
    return 2;
  }
  golden::fill_in(arguments->root, arguments->options);
  return arguments->suite ? golden::run_suite(arguments->options)
                          : golden::report(arguments->options, stdout);
}
