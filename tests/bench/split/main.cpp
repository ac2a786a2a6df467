// SPDX-License-Identifier: Apache-2.0
// dist_bench_split: a model that is split over logical devices, next to ONNX Runtime with the same number of
// threads, in turns of the same run.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "examples/tensor_parallel/ops.h"
#include "tests/bench/split/report.hpp"
#include "tests/bench/targets.hpp"

namespace bench::split {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_split [--quick] WEIGHTS REFERENCE [COMMAND ...]\n"
    "Times the encoder of examples/tensor_parallel on one and two logical devices, and compares it with ONNX "
    "Runtime on\n"
    "one and two threads. COMMAND starts ONNX Runtime: tests/bench/peers/peer_onnxruntime.py.\n"
    "\n"
    "  --quick            few short rounds, which only check the results\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 1 a row is slower than its limit; 2 the run failed.\n";

constexpr int kMissedFloor = 1, kFailed = 2;
constexpr int kPasses = 10, kQuickPasses = 2;
constexpr size_t kJudged = 15, kMostRounds = 40, kQuickRounds = 2;

struct Settings {
  bool quick = false;
  std::vector<std::string> words;  // WEIGHTS REFERENCE COMMAND
};

// Returns nothing if the peer does not start, and stores the reason in `sides`.
std::unique_ptr<OnThreads> start_peer(const Settings& settings, Sides& sides) {
  const peers::Words command(settings.words.begin() + 2, settings.words.end());
  sides.missing = command.empty() ? "it is not installed" : "";
  if (command.empty()) return nullptr;
  try {
    auto peer = std::make_unique<OnThreads>(command);
    sides.peer = peer->name();
    return peer;
  } catch (const PeerLost& lost) {
    sides.missing = lost.what();
    return nullptr;
  }
}

// Takes the turns of ONNX Runtime and libdist, first on one thread or device and then on two.
Round take_round(OnThreads* peer, OnDevices& one, OnDevices& two, int passes) {
  Round round;
  for (const int index : {0, 1}) {
    if (peer != nullptr) round.threads[index] = peer->take(index + 1, passes);
    round.devices[index] = (index == 0 ? one : two).take(passes);
  }
  return round;
}

int run(const Settings& settings) {
  Sides sides;
  sides.engine = ops_name();
  const Files files{settings.words[0].c_str(), settings.words[1].c_str()};
  OnDevices one(1, files), two(2, files);
  std::unique_ptr<OnThreads> peer = start_peer(settings, sides);
  const int passes = settings.quick ? kQuickPasses : kPasses;
  take_round(peer.get(), one, two, passes);  // warms up pages and caches
  std::vector<Round> rounds;
  size_t good = 0;
  const size_t most = settings.quick ? kQuickRounds : peer ? kMostRounds : kJudged;
  while (rounds.size() < most && good < kJudged) {
    rounds.push_back(take_round(peer.get(), one, two, passes));
    good += judged(rounds.back());
  }
  sides.difference = std::max(one.difference(), two.difference());
  return print(rounds, sides, settings.quick) ? 0 : kMissedFloor;
}

}  // namespace
}  // namespace bench::split

int main(int argc, char** argv) {
  using namespace bench::split;
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (settings.words.empty() && argument == "--help") return std::fputs(kHelp, stdout), 0;
    if (settings.words.empty() && argument == "--quick")
      settings.quick = true;
    else
      settings.words.push_back(argument);
  }
  if (settings.words.size() < 2) return std::fputs(kHelp, stderr), kFailed;
  try {
    return run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_split: %s\n", error.what());
    return kFailed;
  }
}
