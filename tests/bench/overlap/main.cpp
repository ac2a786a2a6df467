// SPDX-License-Identifier: Apache-2.0
// dist_bench_overlap: how much of the communication of a training step is not hidden by its computation.
// Processes with one replica each average the gradients of ResNet-50 in buckets during a simulated backward
// pass, next to other libraries.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>

#include "dist/dist.h"
#include "tests/bench/harness.hpp"
#include "tests/bench/more_data.hpp"
#include "tests/bench/overlap/part.hpp"
#include "tests/bench/overlap/report.hpp"
#include "tests/bench/overlap/start.hpp"
#include "tests/bench/overlap/worker.hpp"

namespace bench::overlap {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_overlap --workers W [options] [--peer PROGRAM...]\n"
    "Times a step of W processes that average the gradients of ResNet-50 while they compute them, and the "
    "same step\n"
    "without communication.\n"
    "\n"
    "  --transport T   only this transport: shm (shared memory), grpc or gloo (default: all that the build "
    "has)\n"
    "  --compute MS    the computation of a step in milliseconds of CPU time (default 300)\n"
    "  --rounds N      number of rounds (default 9)\n"
    "  --quick         2 short rounds with smaller tensors, which only check the results\n"
    "  --json FILE     also write the figures to FILE\n"
    "  --peer PROGRAM  the last option: a peer's program and its arguments\n"
    "  --help          print this text\n"
    "\n"
    "Exit status: 0 success; 1 more than the limit is exposed; 2 the run failed.\n";

constexpr int kMissedLimit = 1, kFailed = 2;
constexpr int kMostRounds = 100, kWarmUpSteps = 2, kSteps = 3;
constexpr double kFallAsleepUs = 1e5;  // a turn takes a second
constexpr int kQuickShare = 16;
constexpr double kQuickComputeMs = 5;

struct Transport {
  const char* name;
  int32_t value;
};
constexpr Transport kTransports[] = {
    {"shm", DIST_TRANSPORT_AUTO},
    {"grpc", DIST_TRANSPORT_GRPC},
#ifdef BENCH_HAS_GLOO
    {"gloo", DIST_TRANSPORT_GLOO},
#endif
};

struct Arguments {
  int workers = 0, rounds = 9;
  double compute_ms = 300;
  bool quick = false, help = false;
  const char *json = nullptr, *transport = nullptr;
  std::vector<std::string> peer;
};

bool known(const char* transport) {
  return transport == nullptr ||
         std::any_of(std::begin(kTransports), std::end(kTransports),
                     [&](const Transport& t) { return std::strcmp(t.name, transport) == 0; });
}

// Returns false if the arguments are invalid.
bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool more = i + 1 < argc;
    if (argument == "--workers" && more) {
      arguments.workers = std::atoi(argv[++i]);
    } else if (argument == "--rounds" && more) {
      arguments.rounds = std::atoi(argv[++i]);
    } else if (argument == "--compute" && more) {
      arguments.compute_ms = std::atof(argv[++i]);
    } else if (argument == "--transport" && more) {
      arguments.transport = argv[++i];
    } else if (argument == "--json" && more) {
      arguments.json = argv[++i];
    } else if (argument == "--peer" && more) {
      arguments.peer.assign(argv + i + 1, argv + argc);
      i = argc;
    } else if (argument == "--quick") {
      arguments.quick = true;
    } else if (argument == "--help") {
      arguments.help = true;
    } else {
      return false;
    }
  }
  return arguments.help ||
         (arguments.workers >= 2 && arguments.workers <= kMostWorkers && arguments.rounds >= 1 &&
          arguments.rounds <= kMostRounds && arguments.compute_ms > 0 && known(arguments.transport));
}

// The processes of peers find each other by files in this folder.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "dist_bench-overlap-XXXXXX") {
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
  page.share = arguments.quick ? kQuickShare : 1;
  page.compute_us = 1e3 * (arguments.quick ? kQuickComputeMs : arguments.compute_ms);
  page.loops_per_us = measure_loops_per_us();
  for (Side& side : page.sides) {
    side.inside.expect(page.workers);
    side.outside.expect(page.workers + 1);
  }
  return page;
}

double cpu_us(int who) {
  rusage usage;
  getrusage(who, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

class Run {
 public:
  explicit Run(const Arguments& arguments) : arguments_(arguments), page_(new_page(arguments, fd_)) {
    for (const Transport& transport : kTransports) {
      if (arguments.transport != nullptr && std::strcmp(arguments.transport, transport.name) != 0) continue;
      add(std::string("libdist, ") + transport.name,
          {"/proc/self/exe", "--worker", std::to_string(transport.value)});
    }
    libdist_ = sides_.size();
    if (arguments.peer.empty()) return;
    folder_.emplace();
    const std::string library =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libbench_overlap.so";
    for (const char* form : {"copied", "in_buckets"}) {
      std::vector<std::string> command = arguments.peer;
      for (const std::string& word : {library, folder_->path(), std::string(form)}) command.push_back(word);
      add(arguments.peer.back() + ", " + form, command);
    }
  }

  void take_turns() {
    const double begin = now_us(), machine = machine_cpu_us(), own = cpu_us(RUSAGE_SELF);
    processes_.watch(page_);
    for (int round = -1; round < rounds(); ++round) {
      for (const int mode : {0, 1}) {
        for (std::size_t side = 0; side < sides_.size(); ++side) take_turns(side, mode, round >= 0);
      }
    }
    end();
    const double used = cpu_us(RUSAGE_SELF) - own + cpu_us(RUSAGE_CHILDREN);
    others_ = std::max(0.0, machine_cpu_us() - machine - used) / (now_us() - begin);
  }

  Results results() const {
    Results results;
    results.workers = page_.workers;
    results.rounds = rounds();
    results.compute_ms = page_.compute_us / 1e3;
    results.others = others_;
    results.quick = arguments_.quick;
    const std::vector<std::size_t> elements = tensor_counts(Network::kResNet50, page_.share);
    auto tensor = elements.size();
    for (const int tensors : buckets_of(elements)) {
      results.buckets.push_back(0);
      for (int i = 0; i < tensors; ++i) results.buckets.back() += elements[--tensor];
    }
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      if (page_.sides[s].failed.load()) {
        results.skipped.push_back(sides_[s].name + ": " + page_.sides[s].why.data());
        continue;
      }
      results.sides.push_back(sides_[s]);
      results.sides.back().name = page_.sides[s].name.data();
    }
    return results;
  }

 private:
  int rounds() const noexcept { return arguments_.quick ? 2 : arguments_.rounds; }

  void add(const std::string& name, const std::vector<std::string>& command) {
    const auto side = static_cast<int>(sides_.size());
    sides_.push_back({name, name.substr(0, name.find(',')), {}});
    std::array<char, 128>& shared_name = page_.sides[sides_.size() - 1].name;
    std::snprintf(shared_name.data(), shared_name.size(), "%s", name.c_str());
    processes_.start(page_, fd_, side, command);
  }

  // Returns the medians of the wall time and CPU time of a turn's steps, in milliseconds.
  std::pair<double, double> take_turn(Side& side, const Turn& turn) {
    wait_until_quiet(processes_.running(), kFallAsleepUs);
    side.turn = turn;
    side.outside.meet(side.failed);
    side.outside.meet(side.failed);
    Samples wall, cpu;
    for (int i = 0; i < turn.steps; ++i) {
      double begin = 0, end = 0, used = 0;
      for (int w = 0; w < page_.workers; ++w) {
        const Step& step = side.steps[w][i];
        begin = std::max(begin, step.begin_us);
        end = std::max(end, step.end_us);
        used += step.cpu_us / page_.workers;
      }
      wall.push_back((end - begin) / 1e3);
      cpu.push_back(used / 1e3);
    }
    return {median(wall), median(cpu)};
  }

  // A peer that fails has no more turns.
  void take_turns(std::size_t number, int mode, bool counts) {
    Side& side = page_.sides[number];
    if (side.failed.load()) return;
    try {
      const int steps = counts ? kSteps : kWarmUpSteps;
      const auto [compute_only, base_cpu] = take_turn(side, {steps, mode == 1, false});
      const auto [step, cpu] = take_turn(side, {steps, mode == 1, true});
      if (!counts) return;
      Times& times = sides_[number].times[mode];
      times.compute_only.push_back(compute_only);
      times.step.push_back(step);
      times.cpu.push_back(cpu - base_cpu);
    } catch (const std::runtime_error&) {
      if (number < libdist_) throw std::runtime_error(sides_[number].name + ": " + side.why.data());
    }
  }

  void end() {
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      Side& side = page_.sides[s];
      if (side.failed.load()) continue;
      side.turn = {};
      side.outside.meet(side.failed);
    }
    processes_.await();
    for (std::size_t s = 0; s < libdist_; ++s) {
      if (page_.sides[s].failed.load())
        throw std::runtime_error(sides_[s].name + ": " + page_.sides[s].why.data());
    }
  }

  const Arguments& arguments_;
  int fd_ = -1;
  Page& page_;
  std::optional<Folder> folder_;
  std::vector<SideResult> sides_;
  std::size_t libdist_ = 0;
  double others_ = 0;
  Processes processes_;
};

int run(const Arguments& arguments) {
  Run run(arguments);
  run.take_turns();
  const Results results = run.results();
  const bool held = print(results);
  if (arguments.json != nullptr && !write_json(arguments.json, results)) return kFailed;
  return held ? 0 : kMissedLimit;
}

}  // namespace
}  // namespace bench::overlap

int main(int argc, char** argv) {
  using namespace bench::overlap;
  if (argc == 5 && std::strcmp(argv[1], "--worker") == 0)
    return be_worker(std::atoi(argv[3]), std::atoi(argv[4]), static_cast<dist_transport>(std::atoi(argv[2])));
  Arguments arguments;
  if (!parse(argc, argv, arguments)) return std::fputs(kHelp, stderr), kFailed;
  if (arguments.help) return std::fputs(kHelp, stdout), 0;
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_overlap: %s\n", error.what());
    return kFailed;
  }
}
