// SPDX-License-Identifier: Apache-2.0
// dist-info: what libdist finds on this machine, and whether a job can run here. README.md documents it.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "capi/tools/info_check.hpp"
#include "capi/tools/info_options.hpp"
#include "capi/tools/info_report.hpp"
#include "capi/tools/info_trial.hpp"

namespace dist::info {
namespace {

constexpr int kProblems = 1;
constexpr int kUsage = 2;
constexpr int kFailed = 125;  // as dist-launch

int print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "dist-info: cannot write to standard output: %s\n", std::strerror(errno));
  return kFailed;
}

int run(const Options& options) {
  const Report report = make_report();
  const Checked checked = options.check ? check_environment(report) : Checked{};
  std::string text;
  if (options.json) {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartObject();
    write_json(report, json);
    if (options.check) {
      json.Key("check");
      json.StartObject();
      write_json(checked, json);
      json.EndObject();
    }
    json.EndObject();
    text = std::string(buffer.GetString(), buffer.GetSize()) + "\n";
  } else {
    text = options.check ? text_of(checked) : text_of(report);
  }
  const int printed = print(text);
  return printed != 0 || checked.is_ok() ? printed : kProblems;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kTrialArgument) == 0) return run_trial_process(argc, argv);
  const Options options = parse_options(argc, argv);
  switch (options.asked) {
    case Asked::kHelp: return print(kHelp);
    case Asked::kVersion: return print("dist-info (libdist) " DIST_INFO_VERSION "\n");
    case Asked::kNonsense:
      std::fprintf(stderr, "dist-info: %s\nTry 'dist-info --help' for more information.\n",
                   options.error.c_str());
      return kUsage;
    case Asked::kRun: break;
  }
  return run(options);
}

}  // namespace
}  // namespace dist::info

int main(int argc, char** argv) {
  int status = dist::info::kFailed;
  try {
    status = dist::info::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist-info: %s\n", error.what());
  }
  // A thread may still wait for an answer of the system about a host name.
  std::fflush(nullptr);
  _exit(status);
}
