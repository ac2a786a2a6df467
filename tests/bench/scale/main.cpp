// SPDX-License-Identifier: Apache-2.0
// dist_bench_scale: a job of many worker processes on this machine. It prints how long the job takes to
// start, what each worker needs, and how long small all_reduces take, and checks the bits of the results. It
// has no floors: with more workers than CPUs, times tell little about a cluster.
#include <dist/dist.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/harness.hpp"

namespace bench {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_scale --workers W [options]\n"
    "Starts W worker processes with one replica each, and reports the start time of the job, the memory and "
    "the\n"
    "descriptors of its workers, and the times of small all_reduces. Checks the bits of all results.\n"
    "\n"
    "  --transport T      how workers exchange data: grpc (default), gloo or shm (shared memory)\n"
    "  --rounds N         all_reduces of each size (default 20)\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 2 the run failed.\n";

constexpr int kMost = 1024;
constexpr int kPageFd = 200;
constexpr std::size_t kLongest = std::size_t{1} << 20;
constexpr std::size_t kSizes[] = {4, 1024, std::size_t{64} << 10, kLongest};
constexpr int kNumSizes = 4;
// Results: each numerics mode for each of the sizes.
constexpr int kResults = 3 * kNumSizes;

// The resources that a process uses.
struct Holds {
  int sockets = 0, other_descriptors = 0, threads = 0;
  long resident_kib = 0, own_kib = 0;  // own: private pages and the worker's part of shared ones
};

struct Worker {
  double created_us = 0,
         first_us = 0;         // when the strategy had been created; when the first all_reduce had completed
  Holds loaded, small, large;  // before the strategy; after all_reduces of 4 bytes; at the end
  double us[kNumSizes] = {};   // per all_reduce
  uint64_t digests[kResults] = {};
  char why[512] = "";
};

// Shared by all processes.
struct Page {
  int workers = 0, rounds = 0;
  dist_transport transport = DIST_TRANSPORT_GRPC;
  std::atomic<bool> failed{false};
  uint64_t digests[kResults] = {};
  Worker of[kMost];
};

void must(dist_status status) {
  if (status != DIST_OK) throw std::runtime_error(dist_last_error());
}

uint64_t digest_of(const std::vector<float>& values) {
  uint64_t digest = 14695981039346656037U;
  const auto* const at = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0; i < values.size() * sizeof(float); ++i) digest = (digest ^ at[i]) * 1099511628211U;
  return digest;
}

Holds holds() {
  Holds now;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.rfind("socket:", 0) == 0) {
      ++now.sockets;
    } else if (!gone) {
      ++now.other_descriptors;
    }
  }
  const auto read = [](const char* path, const char* name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.rfind(name, 0) == 0) return std::strtol(line.c_str() + std::strlen(name), nullptr, 10);
    }
    return 0L;
  };
  now.threads = static_cast<int>(read("/proc/self/status", "Threads:"));
  now.resident_kib = read("/proc/self/status", "VmRSS:");
  now.own_kib = read("/proc/self/smaps_rollup", "Pss:");
  return now;
}

// The function of each replica, both in one process and in several.
struct Program {
  Worker* out;
  int rounds;
};

dist_status compute(dist_replica* replica, void* user_data) {
  const Program& program = static_cast<Program*>(user_data)[0];
  const int32_t me = dist_replica_id(replica);
  const bool is_worker = program.out != nullptr && program.rounds != 0;
  Worker* const out = is_worker ? program.out : me == 0 ? program.out : nullptr;
  for (int s = 0; s < kNumSizes; ++s) {
    const auto length = static_cast<int64_t>(kSizes[s] / sizeof(float));
    std::vector<float> in(static_cast<std::size_t>(length)), sum(in.size());
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = 1.0F / static_cast<float>(3 + 7 * me + static_cast<int>(i % 13));
    const dist_tensor from = {in.data(), DIST_F32, 1, &length, nullptr};
    dist_tensor to = {sum.data(), DIST_F32, 1, &length, nullptr};
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    for (const dist_numerics numerics :
         {DIST_NUMERICS_ORDERED, DIST_NUMERICS_REPRODUCIBLE, DIST_NUMERICS_TREE}) {
      options.numerics = numerics;
      const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, &options, nullptr);
      if (status != DIST_OK) return status;
      if (out != nullptr) out->digests[3 * s + numerics - DIST_NUMERICS_ORDERED] = digest_of(sum);
      if (is_worker && s == 0 && numerics == DIST_NUMERICS_ORDERED) out->first_us = now_us();
    }
    if (!is_worker) continue;
    dist_status status = dist_barrier(replica, nullptr, nullptr);
    const double begin = now_us();
    for (int i = 0; i < program.rounds && status == DIST_OK; ++i)
      status = dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, nullptr, nullptr);
    out->us[s] = (now_us() - begin) / program.rounds;
    if (status != DIST_OK) return status;
    if (s == 0) out->small = holds();
    if (s == kNumSizes - 1) out->large = holds();
  }
  return dist_barrier(replica, nullptr, nullptr);
}

Page& page_at(int fd) {
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return *static_cast<Page*>(at);
}

int be_worker(int me) {
  Page& page = page_at(kPageFd);
  Worker& mine = page.of[me];
  try {
    mine.loaded = holds();
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 1;
    worker.transport = page.transport;
    dist_strategy* strategy = nullptr;
    must(dist_strategy_create(&options, &strategy));
    mine.created_us = now_us();
    Program program = {&mine, page.rounds};
    must(dist_run(strategy, compute, &program, nullptr));
    must(dist_strategy_destroy(strategy));
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(mine.why, sizeof mine.why, "%s", error.what());
    page.failed.store(true);
    return 1;
  }
}

// Computes the digests of the same all_reduces among threads of this process.
void expect(Page& page) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = page.workers;
  dist_strategy* strategy = nullptr;
  must(dist_strategy_create(&options, &strategy));
  Worker first;
  Program program = {&first, 0};
  must(dist_run(strategy, compute, &program, nullptr));
  must(dist_strategy_destroy(strategy));
  std::copy_n(first.digests, kResults, page.digests);
}

std::string address_of(int worker) {
  const auto process = static_cast<unsigned>(getpid());
  return "127." + std::to_string(1 + process % 250) + "." + std::to_string(process / 250 % 250) +
         ".11:" + std::to_string(21000 + worker);
}

pid_t start(int page_fd, const std::string& cluster, int me) {
  const std::string config = "{\"cluster\": {\"worker\": [" + cluster +
                             "]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(me) + "}}";
  const std::string number = std::to_string(me);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process left");
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("TF_CONFIG", config.c_str(), 1);
  if (getppid() != parent || dup2(page_fd, kPageFd) < 0) _exit(127);
  execl("/proc/self/exe", "dist_bench_scale", "--worker", number.c_str(), nullptr);
  _exit(127);
}

template <class Get>
void print_range(const char* name, const Page& page, const char* unit, Get&& get) {
  std::vector<double> all;
  for (int w = 0; w < page.workers; ++w) all.push_back(get(page.of[w]));
  std::sort(all.begin(), all.end());
  std::printf("%-48s %10.4g %10.4g %10.4g  %s\n", name, all.front(), all[all.size() / 2], all.back(), unit);
}

void print(const Page& page, double begin_us) {
  std::printf("%-48s %10s %10s %10s\n", "of each worker", "least", "median", "most");
  print_range("strategy created", page, "s after the start of the job",
              [&](const Worker& w) { return (w.created_us - begin_us) * 1e-6; });
  print_range("first all_reduce done", page, "s after the start of the job",
              [&](const Worker& w) { return (w.first_us - begin_us) * 1e-6; });
  const auto held = [&](const char* when, Holds Worker::*at) {
    const std::string of = when;
    print_range((of + ": sockets").c_str(), page, "", [&](const Worker& w) { return (w.*at).sockets; });
    print_range((of + ": other descriptors").c_str(), page, "",
                [&](const Worker& w) { return (w.*at).other_descriptors; });
    print_range((of + ": threads").c_str(), page, "", [&](const Worker& w) { return (w.*at).threads; });
    print_range((of + ": resident memory").c_str(), page, "MiB",
                [&](const Worker& w) { return static_cast<double>((w.*at).resident_kib) / 1024; });
    print_range((of + ": proportional memory").c_str(), page, "MiB",
                [&](const Worker& w) { return static_cast<double>((w.*at).own_kib) / 1024; });
  };
  held("before the strategy", &Worker::loaded);
  held("after all_reduces of 4 bytes", &Worker::small);
  held("after all_reduces of up to 1 MiB", &Worker::large);
  static const char* const names[kNumSizes] = {"all_reduce of 4 B", "all_reduce of 1 KiB",
                                               "all_reduce of 64 KiB", "all_reduce of 1 MiB"};
  for (int s = 0; s < kNumSizes; ++s)
    print_range(names[s], page, "ms", [&](const Worker& w) { return w.us[s] * 1e-3; });
}

int run(int workers, int rounds, dist_transport transport) {
  const int fd = memfd_create("bench", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(Page)) != 0) throw std::bad_alloc();
  Page& page = *new (&page_at(fd)) Page;
  page.workers = workers;
  page.rounds = rounds;
  page.transport = transport;
  expect(page);
  std::string cluster;
  for (int w = 0; w < workers; ++w) cluster += (w == 0 ? "\"" : ", \"") + address_of(w) + "\"";
  const double begin_us = now_us();
  std::vector<pid_t> all;
  for (int w = 0; w < workers; ++w) all.push_back(start(fd, cluster, w));
  bool well = true;
  for (const pid_t pid : all) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) well = false;
  }
  for (int w = 0; w < workers; ++w) {
    if (page.of[w].why[0] != '\0')
      throw std::runtime_error("worker " + std::to_string(w) + ": " + page.of[w].why);
  }
  if (!well) throw std::runtime_error("a worker was killed");
  for (int w = 0; w < workers; ++w) {
    if (!std::equal(page.digests, page.digests + kResults, page.of[w].digests))
      throw std::runtime_error("a result of worker " + std::to_string(w) +
                               " has other bits than in one process");
  }
  std::printf("%d workers: all results have the bits of one process with %d replicas\n", workers, workers);
  print(page, begin_us);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  if (argc == 3 && std::strcmp(argv[1], "--worker") == 0)
    return be_worker(static_cast<int>(std::strtol(argv[2], nullptr, 10)));
  int workers = 0, rounds = 20;
  dist_transport transport = DIST_TRANSPORT_GRPC;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") return std::fputs(kHelp, stdout), 0;
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (argument == "--workers") {
      workers = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    } else if (argument == "--rounds") {
      rounds = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    } else if (argument == "--transport" && (value == "grpc" || value == "gloo" || value == "shm")) {
      transport = value == "grpc"   ? DIST_TRANSPORT_GRPC
                  : value == "gloo" ? DIST_TRANSPORT_GLOO
                                    : DIST_TRANSPORT_AUTO;
    } else {
      workers = 0;
      break;
    }
  }
  if (workers < 2 || workers > kMost || rounds < 1) return std::fputs(kHelp, stderr), 2;
  try {
    return run(workers, rounds, transport);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_scale: %s\n", error.what());
    return 2;
  }
}
