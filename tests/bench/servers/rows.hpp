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
  bool quick = false;           // few turns with small tensors
  const char* peers = nullptr;  // the list that the build made
};

// One side of a row.
struct SideTimes {
  std::string library, form;  // the fastest form of each library counts
  MaybeTarget target;         // of libdist's speed relative to this side's
  std::vector<double> us;     // time of one push, pull or closure, one per round
};

struct RowTimes {
  Operation operation;
  std::size_t bytes;
  int closures_at_a_time;        // per worker
  std::vector<SideTimes> sides;  // the first is libdist
};

class Runner {
 public:
  // Starts the peers. Throws std::runtime_error if the list cannot be read.
  explicit Runner(const Settings& settings);

  // Runs all rows. Throws std::runtime_error if something fails, a side does not sleep during the turns of
  // others, or a result is wrong.
  std::vector<RowTimes> run();

  // The reasons why some peers did not take part, or not until the end.
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
