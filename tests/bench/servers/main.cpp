// SPDX-License-Identifier: Apache-2.0
// dist_bench_servers: pushing and pulling variables of a parameter server, and closures per second, next to
// unary calls of plain gRPC and next to peers, in turns of the same run.
#include <cstdio>
#include <exception>
#include <string>

#include "tests/bench/servers/report.hpp"
#include "tests/bench/servers/rows.hpp"

namespace bench::servers {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_servers [options]\n"
    "Times pushes and pulls of a parameter server's variable, compares them with unary calls of plain gRPC, "
    "and times\n"
    "closures.\n"
    "\n"
    "  --quick            few short rounds of at most 64 KiB, which only check the results\n"
    "  --peers LIST       also time the programs in LIST; a build with -Dpeers=enabled writes servers.list\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 1 a row is slower than its limit; 2 the run failed.\n";

constexpr int kMissedFloor = 1, kFailed = 2;

int run(const Settings& settings) {
  Runner runner(settings);
  const std::vector<RowTimes> rows = runner.run();
  return print(rows, settings.quick, runner.skipped()) ? 0 : kMissedFloor;
}

}  // namespace
}  // namespace bench::servers

int main(int argc, char** argv) {
  using namespace bench::servers;
  if (be_server(argc, argv)) return 0;
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") return std::fputs(kHelp, stdout), 0;
    if (argument == "--quick") {
      settings.quick = true;
    } else if (argument == "--peers" && i + 1 < argc) {
      settings.peers = argv[++i];
    } else {
      return std::fputs(kHelp, stderr), kFailed;
    }
  }
  try {
    return run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_servers: %s\n", error.what());
    return kFailed;
  }
}
