// SPDX-License-Identifier: Apache-2.0
// The rows, and the turns of a run: calls of libdist and plain gRPC alternate, followed by the same number of
// calls of each peer.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/external.hpp"
#include "tests/bench/servers/job.hpp"

namespace bench::servers {

struct Settings {
  bool quick = false;           // few turns, of small tensors
  const char* peers = nullptr;  // the list that the build made
};

// One side of one row.
struct SideTimes {
  std::string library, form;  // the fastest form of a library counts
  MaybeTarget target;         // of libdist's speed over its
  std::vector<double> us;     // of one push, pull or closure, a round each
};

struct RowTimes {
  Operation operation;
  std::size_t bytes;
  int closures_at_a_time;        // that a worker has
  std::vector<SideTimes> sides;  // libdist's is the first
};

class Runner {
 public:
  // Starts the peers. Throws std::runtime_error where the list cannot be read.
  explicit Runner(const Settings& settings);

  // All rows. Throws std::runtime_error where anything fails, does not sleep while it is others' turn, or a result is wrong.
  std::vector<RowTimes> run();

  // Why some take no part, or not to the end.
  const std::vector<std::string>& skipped() const { return peers_.skipped(); }

 private:
  struct Outsider;
  int calls(std::size_t bytes) const;
  std::vector<Outsider> outsiders(const RowTimes& row, const Plan& plan);
  RowTimes run_row(RowTimes row, Job& job);
  std::vector<double> take_calls(const RowTimes& row, Job& job) const;
  double take_closures(bool push, Job& job) const;
  std::vector<double> take_turn(const RowTimes& row, Job& job) const;

  Settings settings_;
  Peers peers_;
};

}  // namespace bench::servers
