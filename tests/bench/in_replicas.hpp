// SPDX-License-Identifier: Apache-2.0
// Common parts of the sides inside dist_run(). They use libdist like a normal program: one run per block with
// its collectives inside, and default options.
#pragma once

#include <string>
#include <utility>

#include "tests/bench/sides.hpp"

namespace bench {

// Throws std::runtime_error with libdist's message if a call failed.
void require(dist_status status, const char* what);

class InReplicas : public Side {
 public:
  InReplicas(const Strategy& strategy, Checked* data, std::string name = "libdist")
      : strategy_(strategy), data_(data), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void block(const Plan& plan, Samples& samples) override;

 protected:
  struct Job {
    InReplicas* side;
    const Plan* plan;
    Stopwatch* watch;
  };
  // One replica's part of the block: prepares, and calls loop() with the function to be timed.
  virtual dist_status replica(dist_replica* replica, const Job& job) = 0;

  template <class Op>
  dist_status loop(dist_replica* replica, const Job& job, Op op) {
    dist_status status = DIST_OK;
    replica_block(
        *job.plan, *job.watch, data_, dist_replica_id(replica),
        [&] { return (status = dist_barrier(replica, nullptr, nullptr)) == DIST_OK; },
        [&] { return (status = op()) == DIST_OK; });
    return status;
  }

  const Strategy& strategy_;
  Checked* data_;

 private:
  static dist_status replica_main(dist_replica* replica, void* user_data);
  std::string name_;
};

}  // namespace bench
