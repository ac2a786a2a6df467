// SPDX-License-Identifier: Apache-2.0
// Makes a run on any kind of thread, and measures the resources of libdist: bytes, threads, descriptors.
#pragma once

#include <cstdint>
#include <string>

#include "tests/faults/play.hpp"

namespace faults {

class Runner {
 public:
  Runner(dist_strategy* strategy, dist_threads threads, dist_replica_fn fn, void* user_data)
      : strategy_(strategy), threads_(threads), fn_(fn), user_data_(user_data) {}

  // With `caller_ends`, the thread that calls dist_run() ends inside it.
  void run(bool caller_ends);
  // Runs with a deadline.
  void run_until(int64_t timeout_ns);
  // Waits until the strategy accepts runs again.
  void await_idle();

  dist_status status() const { return status_; }
  const Report& report() const { return report_; }
  const std::string& trouble() const { return trouble_; }

 private:
  static void* call_and_end(void* runner);
  void call();
  void enter_all();

  dist_strategy* const strategy_;
  const dist_threads threads_;
  const dist_replica_fn fn_;
  void* const user_data_;
  dist_status status_ = DIST_OK;
  Report report_;
  std::string trouble_;
  bool returned_ = false;
};

// An allocator that counts outstanding memory.
dist_allocator counting_allocator();

struct Holdings {
  int64_t bytes = 0;
  int threads = 0;
  int descriptors = 0;
};
Holdings holdings();
// Describes the resources that are held in addition to `before`; "" = none. Waits a moment for ended threads
// to disappear. oneTBB may start some threads; `before` is then increased.
std::string left_behind(Holdings& before);

}  // namespace faults
