// SPDX-License-Identifier: Apache-2.0
// dist_bench_workers: all_reduce of workers that are processes, of one replica each, beside gRPC's own streams between the
// same processes, in turns.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dist/dist.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/workers/bare.hpp"

namespace bench {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_workers --workers W [options]\n"
    "Times all_reduce over W processes with one replica each beside bare streams of gRPC between them.\n"
    "\n"
    "  --transport grpc   how libdist's workers reach each other: the only one\n"
    "  --rounds N         turns of each side; 9 if not given\n"
    "  --quick            2 short rounds up to 1 MiB: shows that all runs and is right\n"
    "  --json FILE        write the figures there, too\n";

constexpr int kMostWorkers = 16;
constexpr int kMostRounds = 100;
constexpr int kPageFd = 3;

struct Size {
  const char* name;
  std::size_t bytes;
  int operations;  // of a turn
};
constexpr Size kSizes[] = {{"4 B", 4, 200},
                           {"64 KiB", std::size_t{64} << 10, 100},
                           {"1 MiB", std::size_t{1} << 20, 20},
                           {"16 MiB", std::size_t{16} << 20, 3}};
constexpr int kNumSizes = 4;
enum SideOf : int { kLibdist, kRoundTrip, kExchange, kSides };
constexpr const char* kSideNames[] = {"libdist", "round trip", "exchange"};

// What the processes share.
struct Page {
  int workers = 2, rounds = 9, sizes = kNumSizes;
  bool quick = false;
  std::atomic<uint32_t> turn{0};
  std::atomic<int> there{0};
  std::atomic<bool> failed{false};
  char why[512] = "";
  double us[kNumSizes][kMostRounds][kSides] = {};

  // All meet; throws where one has failed.
  void meet() {
    const uint32_t now = turn.load();
    if (failed.load()) throw std::runtime_error("");
    if (there.fetch_add(1) + 1 == workers) {
      there.store(0);
      go_on();
    } else {
      while (turn.load() == now && !failed.load())
        syscall(SYS_futex, &turn, FUTEX_WAIT, now, nullptr, nullptr, 0);
    }
    if (failed.load()) throw std::runtime_error("");
  }
  void go_on() {
    turn.fetch_add(1);
    syscall(SYS_futex, &turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  void fail(const std::string& what) {
    if (!failed.exchange(true)) std::snprintf(why, sizeof why, "%s", what.c_str());
    go_on();
  }
};

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// ---- A worker ----

void must(dist_status status) {
  if (status != DIST_OK) throw std::runtime_error(dist_last_error());
}

struct Turn {
  Page& page;
  std::size_t elements;
  int operations;
  int me;
  std::vector<float>& in;
  std::vector<float>& out;
  double us;
};

dist_status all_reduces(dist_replica* replica, void* user_data) {
  Turn& turn = *static_cast<Turn*>(user_data);
  const auto length = static_cast<int64_t>(turn.elements);
  const dist_tensor in = {turn.in.data(), DIST_F32, 1, &length, nullptr};
  dist_tensor out = {turn.out.data(), DIST_F32, 1, &length, nullptr};
  // The first one is no part of it: it brings all to the same place.
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr);
  const double begin = now_us();
  for (int i = 0; i < turn.operations && status == DIST_OK; ++i)
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr);
  turn.us = (now_us() - begin) / turn.operations;
  return status;
}

double take_libdist(dist_strategy* strategy, Turn& turn) {
  for (std::size_t i = 0; i < turn.elements; ++i) {
    turn.in[i] = static_cast<float>(turn.me + 1) * static_cast<float>(i % 1000);
    turn.out[i] = -1;
  }
  turn.page.meet();
  must(dist_run(strategy, all_reduces, &turn, nullptr));
  const int sum = turn.page.workers * (turn.page.workers + 1) / 2;
  for (std::size_t i = 0; i < turn.elements; ++i) {
    if (turn.out[i] != static_cast<float>(sum) * static_cast<float>(i % 1000))
      throw std::runtime_error("a wrong sum");
  }
  return turn.us;
}

double take_bare(Page& page, const Size& size, int operations, SideOf side, Bare& bare) {
  const auto once = [&] { side == kRoundTrip ? bare.round_trip(size.bytes) : bare.exchange(size.bytes); };
  page.meet();
  once();
  const double begin = now_us();
  for (int i = 0; i < operations; ++i) once();
  return (now_us() - begin) / operations;
}

void work(Page& page, int me, const std::string& address) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  options.transport = DIST_TRANSPORT_GRPC;
  dist_strategy* strategy = nullptr;
  must(dist_strategy_create(&options, &strategy));
  const std::size_t most = kSizes[page.sizes - 1].bytes / sizeof(float);
  std::vector<float> in(most), out(most);
  {
    Bare bare(me, page.workers, address);
    for (int s = 0; s < page.sizes; ++s) {
      const Size& size = kSizes[s];
      const int operations = page.quick ? 2 : size.operations;
      Turn turn{page, size.bytes / sizeof(float), operations, me, in, out, 0};
      for (int round = -1; round < page.rounds; ++round) {
        double us[kSides];
        us[kLibdist] = take_libdist(strategy, turn);
        us[kRoundTrip] = take_bare(page, size, operations, kRoundTrip, bare);
        us[kExchange] = take_bare(page, size, operations, kExchange, bare);
        // The round before the first one warms up.
        for (int side = 0; side < kSides && me == 0 && round >= 0; ++side) page.us[s][round][side] = us[side];
      }
    }
    page.meet();
  }
  must(dist_strategy_destroy(strategy));
}

int be_worker(int me, const char* address) {
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, kPageFd, 0);
  if (at == MAP_FAILED) return 2;
  Page& page = *static_cast<Page*>(at);
  try {
    work(page, me, address);
  } catch (const std::exception& error) {
    page.fail("worker " + std::to_string(me) + ": " + error.what());
    return 2;
  }
  return 0;
}

// ---- Who starts them and prints ----

std::string address_of(int worker) {
  const auto process = static_cast<unsigned>(getpid());
  // An address of its own on loopback: its ports are nobody else's.
  return "127." + std::to_string(1 + process % 250) + "." + std::to_string(process / 250 % 250) +
         ".9:" + std::to_string(21000 + worker);
}

pid_t start(int page_fd, int workers, int me) {
  std::string config = "{\"cluster\": {\"worker\": [";
  for (int w = 0; w < workers; ++w) config += (w == 0 ? "\"" : ", \"") + address_of(w) + "\"";
  config += "]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(me) + "}}";
  const std::string number = std::to_string(me);
  const std::string bare = address_of(kMostWorkers);
  setenv("TF_CONFIG", config.c_str(), 1);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || dup2(page_fd, kPageFd) < 0) _exit(127);
  execl("/proc/self/exe", "dist_bench_workers", "--worker", number.c_str(), bare.c_str(), nullptr);
  _exit(127);
}

// A worker that was killed tells nobody.
bool await_all(Page& page, const std::vector<pid_t>& workers) {
  bool well = true;
  for (std::size_t left = workers.size(); left > 0;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0) return false;
    if (std::find(workers.begin(), workers.end(), pid) == workers.end()) continue;
    --left;
    if (status == 0) continue;
    well = false;
    page.fail("a worker ended with " + std::to_string(status));
  }
  return well;
}

struct Ratio {
  double low, middle, high;
};

Ratio ratio_to(const Page& page, int size, SideOf side) {
  std::vector<double> all;
  for (int round = 0; round < page.rounds; ++round)
    all.push_back(page.us[size][round][kLibdist] / page.us[size][round][side]);
  return {*std::min_element(all.begin(), all.end()), median(all), *std::max_element(all.begin(), all.end())};
}

double us_of(const Page& page, int size, int side) {
  std::vector<double> all;
  for (int round = 0; round < page.rounds; ++round) all.push_back(page.us[size][round][side]);
  return median(all);
}

void print(const Page& page) {
  std::printf(
      "all_reduce of f32 over %d processes of one replica each, gRPC on loopback; %d rounds of turns;\n",
      page.workers, page.rounds);
  std::printf("round trip: each worker's bytes to worker 0 and as many back; exchange: both ways at once.\n");
  std::printf(
      "MB/s: a tensor's bytes by the time of one operation. Ratios of times: median (lowest to "
      "highest).\n\n");
  std::printf("%-8s %21s %21s %21s   %-24s %-24s\n", "size", "libdist", "round trip", "exchange",
              "libdist / round trip", "libdist / exchange");
  for (int s = 0; s < page.sizes; ++s) {
    std::printf("%-8s", kSizes[s].name);
    for (int side = 0; side < kSides; ++side) {
      const double us = us_of(page, s, side);
      std::printf(" %9.1f µs %4.0f MB/s", us, static_cast<double>(kSizes[s].bytes) / us);
    }
    for (const SideOf side : {kRoundTrip, kExchange}) {
      const Ratio ratio = ratio_to(page, s, side);
      std::printf("   %5.2f (%.2f to %.2f)    ", ratio.middle, ratio.low, ratio.high);
    }
    std::printf("\n");
  }
}

bool write_json(const Page& page, const char* path) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return std::perror(path), false;
  std::fprintf(file, "{\"workers\": %d, \"transport\": \"grpc\", \"rounds\": %d, \"rows\": [\n", page.workers,
               page.rounds);
  for (int s = 0; s < page.sizes; ++s) {
    std::fprintf(file, "%s  {\"bytes\": %zu", s == 0 ? "" : ",\n", kSizes[s].bytes);
    for (int side = 0; side < kSides; ++side)
      std::fprintf(file, ", \"%s us\": %.2f", kSideNames[side], us_of(page, s, side));
    for (const SideOf side : {kRoundTrip, kExchange}) {
      const Ratio ratio = ratio_to(page, s, side);
      std::fprintf(file, ", \"ratio to %s\": [%.3f, %.3f, %.3f]", kSideNames[side], ratio.low, ratio.middle,
                   ratio.high);
    }
    std::fprintf(file, "}");
  }
  std::fprintf(file, "\n]}\n");
  if (std::fclose(file) == 0) return true;
  return std::perror(path), false;
}

int usage() {
  std::fputs(kHelp, stderr);
  return 2;
}

int run(int workers, int rounds, bool quick, const char* json) {
  const int fd = memfd_create("bench", 0);
  if (fd < 0 || ftruncate(fd, sizeof(Page)) != 0) return std::perror("memory"), 2;
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return std::perror("memory"), 2;
  Page& page = *new (at) Page;
  page.workers = workers;
  page.rounds = quick ? 2 : rounds;
  page.quick = quick;
  page.sizes = quick ? kNumSizes - 1 : kNumSizes;
  std::vector<pid_t> all;
  for (int w = 0; w < workers; ++w) all.push_back(start(fd, workers, w));
  if (!await_all(page, all)) {
    std::fprintf(stderr, "dist_bench_workers: %s\n", page.why);
    return 2;
  }
  print(page);
  return json == nullptr || write_json(page, json) ? 0 : 2;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  if (argc == 4 && std::strcmp(argv[1], "--worker") == 0)
    return be_worker(static_cast<int>(std::strtol(argv[2], nullptr, 10)), argv[3]);
  int workers = 0;
  int rounds = 9;
  bool quick = false;
  const char* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool more = i + 1 < argc;
    if (argument == "--workers" && more) {
      workers = static_cast<int>(std::strtol(argv[++i], nullptr, 10));
    } else if (argument == "--rounds" && more) {
      rounds = static_cast<int>(std::strtol(argv[++i], nullptr, 10));
    } else if (argument == "--transport" && more && std::strcmp(argv[i + 1], "grpc") == 0) {
      ++i;
    } else if (argument == "--json" && more) {
      json = argv[++i];
    } else if (argument == "--quick") {
      quick = true;
    } else {
      return usage();
    }
  }
  if (workers < 2 || workers > kMostWorkers || rounds < 1 || rounds > kMostRounds) return usage();
  return run(workers, rounds, quick, json);
}
