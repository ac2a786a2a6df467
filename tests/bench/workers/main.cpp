// SPDX-License-Identifier: Apache-2.0
// dist_bench_workers: all_reduce of worker processes with one replica each, next to the alternatives between
// the same processes, in turns.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <thread>

#include "tests/bench/workers/gloo.hpp"
#include "tests/bench/workers/outsiders.hpp"
#include "tests/bench/workers/report.hpp"
#include "tests/bench/workers/start.hpp"
#include "tests/bench/workers/worker.hpp"

namespace bench {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_workers --workers W [options]\n"
    "Times all_reduce of W processes with one replica each, and compares it with plain gRPC streams between "
    "them and, if\n"
    "the build has Gloo, with Gloo's allreduce.\n"
    "\n"
    "  --transport T      how libdist's workers exchange data: grpc (default), gloo or shm (shared memory,\n"
    "                     beside a hand-written exchange)\n"
    "  --rounds N         number of rounds (default 9)\n"
    "  --quick            2 short rounds of at most 1 MiB, which only check the results\n"
    "  --peers LIST       also time the programs in LIST; a build with -Dpeers=enabled writes workers.list\n"
    "  --json FILE        also write the figures to FILE\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 1 a row is slower than its limit; 2 the run failed.\n";

constexpr int kMissedFloor = 1, kFailed = 2;

struct Arguments {
  int workers = 0, rounds = 9;
  dist_transport transport = DIST_TRANSPORT_GRPC;
  bool quick = false, help = false;
  const char *json = nullptr, *peers = nullptr;
};

bool parse_transport(const char* word, dist_transport& transport) {
  const bool gloo = std::strcmp(word, "gloo") == 0;
  const bool shm = std::strcmp(word, "shm") == 0;
  transport = gloo ? DIST_TRANSPORT_GLOO : shm ? DIST_TRANSPORT_AUTO : DIST_TRANSPORT_GRPC;
  return gloo || shm || std::strcmp(word, "grpc") == 0;
}

// Returns false if the arguments are invalid.
bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool more = i + 1 < argc;
    if (argument == "--workers" && more) {
      arguments.workers = static_cast<int>(std::strtol(argv[++i], nullptr, 10));
    } else if (argument == "--rounds" && more) {
      arguments.rounds = static_cast<int>(std::strtol(argv[++i], nullptr, 10));
    } else if (argument == "--transport" && more) {
      if (!parse_transport(argv[++i], arguments.transport)) return false;
    } else if (argument == "--json" && more) {
      arguments.json = argv[++i];
    } else if (argument == "--peers" && more) {
      arguments.peers = argv[++i];
    } else if (argument == "--quick") {
      arguments.quick = true;
    } else if (argument == "--help") {
      arguments.help = true;
    } else {
      return false;
    }
  }
  return arguments.help || (arguments.workers >= 2 && arguments.workers <= kMostWorkers &&
                            arguments.rounds >= 1 && arguments.rounds <= kMostRounds);
}

// The folder by which Gloo's contexts find each other.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "dist_bench-gloo-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_ + " cannot be made");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Page& new_page(const Arguments& arguments, int& fd) {
  fd = memfd_create("bench", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(Page)) != 0) throw std::bad_alloc();
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  Page& page = *new (at) Page;
  page.workers = arguments.workers;
  page.transport = arguments.transport;
  page.quick = arguments.quick;
  page.rounds = arguments.quick ? 2 : arguments.rounds;
  page.sizes = arguments.quick ? kNumSizes - 1 : kNumSizes;
  page.outsiders = arguments.peers != nullptr;
  const bool shared = page.transport == DIST_TRANSPORT_AUTO;
  for (const InnerSide side : {kRoundTrip, kExchange}) page.operations[side] = shared ? kNever : 0;
  page.operations[kByHand] = shared ? 0 : kNever;
  page.begin();
  return page;
}

int run(const Arguments& arguments) {
  if (arguments.transport == DIST_TRANSPORT_GLOO && gloo_name().empty())
    throw std::runtime_error("--transport gloo: this build has no Gloo (Debian: libgloo-dev)");
  int fd = -1;
  Page& page = new_page(arguments, fd);
  const Folder folder;
  std::snprintf(page.gloo_folder.data(), page.gloo_folder.size(), "%s", folder.path().c_str());
  std::optional<Outsiders>
      outsiders;  // before the workers wait for them, because Python and its packages take time to start
  if (page.outsiders) outsiders.emplace(arguments.peers, page.workers);
  const std::vector<pid_t> workers = start_workers(page, fd);
  std::vector<SizeTimes> all = no_times(page);
  bool well = false;
  std::thread watch([&] { well = await_workers(page, workers); });
  try {
    if (outsiders) outsiders->take_turns(page, workers, all);
  } catch (const std::exception& error) {
    page.fail(error.what());
  }
  watch.join();
  if (!well || page.failed.load()) throw std::runtime_error(page.why.data());
  put_inner_times(page, all);
  const std::vector<std::string> skipped = outsiders ? outsiders->skipped() : std::vector<std::string>();
  const bool held = print(page, all, skipped);
  if (arguments.json != nullptr && !write_json(arguments.json, page, all, skipped)) return kFailed;
  return held ? 0 : kMissedFloor;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  if (argc == 3 && std::strcmp(argv[1], "--worker") == 0)
    return be_worker(static_cast<int>(std::strtol(argv[2], nullptr, 10)));
  Arguments arguments;
  if (!parse(argc, argv, arguments)) return std::fputs(kHelp, stderr), kFailed;
  if (arguments.help) return std::fputs(kHelp, stdout), 0;
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_workers: %s\n", error.what());
    return kFailed;
  }
}
