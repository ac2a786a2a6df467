// SPDX-License-Identifier: Apache-2.0
// dist_transcripts --root PROJECT --out FILE [--area AREA] [DIR ...]: plays the recorded cases of each DIR
// (by default the project's own copy) and writes transcripts of them (TRANSCRIPTS.md).
#include <cstdio>
#include <fstream>
#include <optional>

#include "recorder.hpp"
#include "tests/golden/harness/cases.hpp"
#include "tests/golden/harness/catalogue.hpp"
#include "tests/golden/harness/play.hpp"

namespace golden::transcript {
namespace {

constexpr char kUsage[] =
    "usage: dist_transcripts --root PROJECT --out FILE [--area AREA] [DIR ...]\n"
    "Plays the recorded cases of each DIR (default: those of PROJECT) and writes all calls and results to "
    "FILE.\n";

struct Arguments {
  std::string root;
  std::string out;
  std::string area;
  std::vector<std::string> directories;
};

std::optional<Arguments> arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) {
      arguments.directories.emplace_back(name);
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::string value = argv[++i];
    if (name == "--root") {
      arguments.root = value;
    } else if (name == "--out") {
      arguments.out = value;
    } else if (name == "--area") {
      arguments.area = value;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.root.empty() || arguments.out.empty()) return std::nullopt;
  if (arguments.directories.empty()) arguments.directories.push_back(arguments.root + "/tests/golden/cases");
  return arguments;
}

// Results of all cases.
struct Totals {
  std::size_t cases = 0;
  std::size_t silent = 0;  // cases that make no call
  std::size_t lines = 0;
  std::size_t faults = 0;
};

// Returns what prevents a case from being written; "" = nothing.
std::string trouble_of(const std::string& played) {
  rapidjson::Document line;
  line.Parse<rapidjson::kParseFullPrecisionFlag>(played.data(), played.size());
  for (const char* key : {"unknown", "malformed", "afterwards"}) {
    if (const Json* const what = golden::find(line, key)) return key + (": " + std::string(text_of(*what)));
  }
  return "";
}

void record(const std::string& area, const golden::Case& one, ReplayFn replay, std::string& out,
            Totals& totals) {
  std::string trouble;
  std::size_t lines = 0;
  std::string text;
  {
    Log log(area, one.id);
    const std::string played = play(replay, one);
    text = log.end(&trouble, &lines);
    if (trouble.empty()) trouble = trouble_of(played);
  }
  if (!trouble.empty()) {
    std::fprintf(stderr, "%s %s: %s\n", area.c_str(), one.id.c_str(), trouble.c_str());
    ++totals.faults;
  } else if (lines == 0) {
    ++totals.silent;
  } else {
    out += text;
    ++totals.cases;
    totals.lines += lines;
  }
}

// Returns the whole file.
std::string record_all(const Arguments& arguments, Totals& totals) {
  std::string out = first_line();
  for (const std::string& directory : arguments.directories) {
    for (const Area& area : load_directory(directory)) {
      const Replayed* const known = find_area(area.name);
      if (known == nullptr) continue;
      if (!arguments.area.empty() && area.name != arguments.area) continue;
      for (const golden::Case& one : area.cases) {
        if (!known->is_by_grpc(one.id)) record(area.name, one, known->replay, out, totals);
      }
    }
  }
  return out + last_line(totals.cases, totals.lines);
}

bool write(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "dist_transcripts: %s cannot be written\n", file.c_str());
  return static_cast<bool>(out);
}

int run(const Arguments& arguments) {
  Totals totals;
  const std::string text = record_all(arguments, totals);
  std::printf("%zu cases, %zu lines; %zu cases make no call\n", totals.cases, totals.lines, totals.silent);
  return write(arguments.out, text) && totals.faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace golden::transcript

int main(int argc, char** argv) {
  const auto arguments = golden::transcript::arguments_of(argc, argv);
  if (!arguments) {
    std::fputs(golden::transcript::kUsage, stderr);
    return 2;
  }
  try {
    return golden::transcript::run(*arguments);
  } catch (const golden::Malformed& error) {
    std::fprintf(stderr, "dist_transcripts: %s\n", error.what.c_str());
    return 2;
  }
}
