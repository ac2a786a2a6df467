// SPDX-License-Identifier: Apache-2.0
// The rows of the table: the operation, its size, the number of replicas and the peers. Also measures one
// row.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/external.hpp"
#include "tests/bench/sides.hpp"
#include "tests/bench/targets.hpp"

namespace bench {

struct Settings {
  int rounds = 5;
  int again = 5;           // further rounds, at most, in place of those that other programs disturb
  double block_us = 25e3;  // what one side may take in one round, where an operation is that short
  size_t most_bytes = size_t{64} << 20;
  int list_share = 1;  // lists are that many times smaller
  int most_iterations = 100;
  bool judged = true;  // floors count: not in a quick run, which is too short to say
  std::vector<int> replicas{2, 4, 8};
  std::string filter;    // part of a row's name; empty: all
  std::string peers;     // the list of programs to measure beside libdist; empty: none
  std::string bindings;  // the list of those that use libdist from other languages; empty: none
};

// What grows, and what of it takes longer.
enum class Growth {
  kAllGather,
  kAllToAll,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kScan,
  kBarrier,
  kStragglers,
  kMetrics,
  kTrace,
  kListLength,
  kUnusedGroups,
};
const char* growth_name(Growth growth);

// Where the replicas of a row about the bindings run.
enum class Threads {
  kNone,     // it is no such row
  kLibrary,  // the default: the caller's thread and libdist's
  kHost,     // the program's, such as goroutines
};

struct RowSpec {
  Operation operation = Operation::kAllReduce;
  int replicas = 2;
  Pace pace = Pace::kHot;
  dist_dtype dtype = DIST_F32;
  size_t bytes = 0;  // of a tensor, or of all tensors of a list
  Layout layout = Layout::kInPlace;
  std::optional<Network> network{};  // whose gradients are the list
  StepForm step{};                   // kStep
  Handing handing{};                 // kHanding
  Growth growth{};                   // kGrowth
  size_t tensors = 0;                // kList without a network: so many, of `bytes` together
  int exponents = 0;                 // kWideSum: values are spread over 2^-exponents to 2^exponents
  dist_numerics numerics = DIST_NUMERICS_REPRODUCIBLE;  // kWideSum
  Threads bindings = Threads::kNone;                    // from C beside other languages, and nothing else
  bool caller_waits = false;                            // kRun: all replicas are library threads

  std::string name() const;
};

// One side's times.
struct SideResult {
  std::string name;
  std::vector<double> round_us;  // a median each round
  double median_us = 0;          // of those
  double min_us = 0;             // of all samples
};

// A round during which other programs take more of the CPUs than this says little.
inline constexpr double kDisturbed = 0.05;

// All sides' turns, once.
struct Round {
  std::vector<double> median_us, min_us;  // a side each
  double others_cpu = 0;                  // the part of the CPUs that other programs took meanwhile
};

// libdist beside one other side.
struct Comparison {
  std::string with;
  std::string group;  // of peers; empty: one of a kind
  Unit unit = Unit::kTimesAsFast;
  size_t side = 0;                                 // in RowResult::sides
  double ratio = 0, ratio_min = 0, ratio_max = 0;  // median, lowest, highest of the rounds' ratios
  MaybeTarget target;
  Verdict floor = Verdict::kNone, goal = Verdict::kNone;
  double most = 0;  // the ratio of something as fast as the row's limit; 0: not known
  bool out_of_reach() const { return floor == Verdict::kMissed && most != 0 && most < target->floor; }
};

struct RowResult {
  RowSpec spec;
  std::vector<SideResult> sides;  // the first is libdist
  std::vector<Comparison> comparisons;
  double hop_us = 0;      // a cache line's way between the replicas' CPUs; 0: not measured
  double others_cpu = 0;  // in the most disturbed round that counts
  std::string note;       // why it was skipped, or what disturbed it
};

// The rows that are more than one all_reduce of one tensor, on so many replicas (rows_more.cpp).
void append_more_rows(const Settings& settings, int replicas, std::vector<RowSpec>& rows);
// Those of how time grows (rows_growth.cpp).
void append_growth_rows(std::vector<RowSpec>& rows);
// C beside the other languages (rows_bindings.cpp).
void append_binding_rows(int replicas, std::vector<RowSpec>& rows);
// Every row that the settings ask for, in the table's order.
std::vector<RowSpec> all_rows(const Settings& settings);

class Runner {
 public:
  explicit Runner(const Settings& settings)
      : settings_(settings),
        peers_(settings.peers.empty() ? Peers() : Peers(settings.peers)),
        bindings_(settings.bindings.empty() ? Peers() : Peers(settings.bindings)) {}
  // Throws std::runtime_error on a wrong result or a failing operation.
  RowResult measure(const RowSpec& spec);
  const Peers& peers() const { return peers_; }
  const Peers& bindings() const { return bindings_; }

 private:
  RowResult measure_once(const RowSpec& spec);
  struct Row;
  void add_sides(Row& row);
  void add_all_reduce(Row& row);
  void add_barrier(Row& row);
  void add_run(Row& row);
  void add_idle(Row& row);
  void add_list(Row& row);
  void add_reduce_to(Row& row);
  void add_step(Row& row);
  void add_wide_sum(Row& row);
  void add_planned(Row& row);
  void add_overlap(Row& row);
  void add_handing(Row& row);
  void add_growth(Row& row);
  void add_peers(Row& row);
  size_t hop(Row& row);
  void add_bindings(Row& row);
  Round run_round(Row& row, const std::vector<Plan>& plans, std::string& note);
  std::vector<Round> run_rounds(Row& row, std::string& note);
  void compare(const Row& row, RowResult& result) const;
  int most_iterations(const Row& row) const;
  Plan plan_for(const Row& row, Side& side) const;
  const Strategy& strategy(int replicas, dist_threads threads = DIST_THREADS_CALLER);

  Settings settings_;
  Peers peers_, bindings_;
  int cpus_ = static_cast<int>(usable_cpus().size());
  std::map<std::pair<int, int32_t>, std::unique_ptr<Strategy>> strategies_;
  CpuPair seen_;
};

}  // namespace bench
