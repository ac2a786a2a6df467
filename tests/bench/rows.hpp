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
  int again = 5;           // maximum number of additional rounds to replace disturbed ones
  double block_us = 25e3;  // time of one side in one round, for short operations
  size_t most_bytes = size_t{64} << 20;
  int list_share = 1;  // lists are smaller by this factor
  int most_iterations = 100;
  bool judged = true;  // floors count; false in a quick run, which is too short
  std::vector<int> replicas{2, 4, 8};
  std::string filter;    // a part of a row's name; empty = all
  std::string peers;     // the list of programs to measure next to libdist; empty = none
  std::string bindings;  // the list of programs that use libdist from other languages; empty = none
};

// The number that grows, and the measured operation.
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

// The threads of the replicas in a row about the bindings.
enum class Threads {
  kNone,     // not such a row
  kLibrary,  // the default: the caller's thread and libdist threads
  kHost,     // host threads, such as goroutines
};

struct RowSpec {
  Operation operation = Operation::kAllReduce;
  int replicas = 2;
  Pace pace = Pace::kHot;
  dist_dtype dtype = DIST_F32;
  size_t bytes = 0;  // of a tensor, or in total of a list's tensors
  Layout layout = Layout::kInPlace;
  std::optional<Network> network{};  // its gradients form the list
  StepForm step{};                   // kStep
  Handing handing{};                 // kHanding
  Growth growth{};                   // kGrowth
  size_t tensors = 0;                // kList without a network: their number, with `bytes` in total
  int exponents = 0;                 // kWideSum: values are spread over 2^-exponents to 2^exponents
  dist_numerics numerics = DIST_NUMERICS_REPRODUCIBLE;  // kWideSum
  Threads bindings = Threads::kNone;                    // compares only C with other languages
  bool caller_waits = false;                            // kRun: all replicas are library threads

  std::string name() const;
};

// The times of one side.
struct SideResult {
  std::string name;
  std::vector<double> round_us;  // one median per round
  double median_us = 0;          // the median of those
  double min_us = 0;             // of all samples
};

// If other programs use more of the CPUs than this during a round, the round counts as disturbed.
inline constexpr double kDisturbed = 0.05;

// One turn of each side.
struct Round {
  std::vector<double> median_us, min_us;  // one per side
  double others_cpu = 0;                  // the part of the CPUs that other programs used
};

// libdist compared with one other side.
struct Comparison {
  std::string with;
  std::string group;  // of peers; empty = a single one
  Unit unit = Unit::kTimesAsFast;
  size_t side = 0;                                 // index in RowResult::sides
  double ratio = 0, ratio_min = 0, ratio_max = 0;  // median, lowest and highest of the rounds' ratios
  MaybeTarget target;
  Verdict floor = Verdict::kNone, goal = Verdict::kNone;
  double most = 0;  // the ratio of a side as fast as the row's limit; 0 = unknown
  bool out_of_reach() const { return floor == Verdict::kMissed && most != 0 && most < target->floor; }
};

struct RowResult {
  RowSpec spec;
  std::vector<SideResult> sides;  // the first is libdist
  std::vector<Comparison> comparisons;
  double hop_us = 0;      // a cache-line hop between the replicas' CPUs; 0 = not measured
  double others_cpu = 0;  // in the most disturbed round that counts
  std::string note;       // why it was skipped, or what disturbed it
};

// Adds the rows with more than one all_reduce of one tensor, for this number of replicas (rows_more.cpp).
void append_more_rows(const Settings& settings, int replicas, std::vector<RowSpec>& rows);
// Adds the rows about growth (rows_growth.cpp).
void append_growth_rows(std::vector<RowSpec>& rows);
// Adds the rows that compare C with the other languages (rows_bindings.cpp).
void append_binding_rows(int replicas, std::vector<RowSpec>& rows);
// Returns all rows that the settings ask for, in the order of the table.
std::vector<RowSpec> all_rows(const Settings& settings);

class Runner {
 public:
  explicit Runner(const Settings& settings)
      : settings_(settings),
        peers_(settings.peers.empty() ? Peers() : Peers(settings.peers)),
        bindings_(settings.bindings.empty() ? Peers() : Peers(settings.bindings)) {}
  // Throws std::runtime_error if a result is wrong or an operation fails.
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
