// SPDX-License-Identifier: Apache-2.0
// The memory that the worker processes of a cell share with the test: a page, which contains a word on which
// they wait for each other.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>

#include "tests/faults/worker_play.hpp"

namespace faults {

// A Report in memory that another process can read.
struct PlainReport {
  int32_t code, replica, device, collective, group, worker;
  int64_t sequence;
  char message[1024], tag[128], expected[512], received[512], hint[512];

  void keep(const Report& report) {
    code = report.code, replica = report.replica, device = report.device, collective = report.collective;
    group = report.group, worker = report.worker, sequence = report.sequence;
    copy(message, report.message), copy(tag, report.tag), copy(expected, report.expected);
    copy(received, report.received), copy(hint, report.hint);
  }
  Report report() const {
    return {static_cast<dist_status>(code),
            replica,
            device,
            collective,
            group,
            sequence,
            message,
            tag,
            expected,
            received,
            hint,
            worker};
  }

 private:
  template <std::size_t kBytes>
  static void copy(char (&to)[kBytes], const std::string& from) {
    const std::size_t bytes = std::min(from.size(), kBytes - 1);
    std::memcpy(to, from.data(), bytes);
    to[bytes] = '\0';
  }
};

struct ProcessPage {
  struct alignas(128) Replica {
    std::atomic<int> phase{kAway};
    dist_status status = DIST_OK;
    int64_t coming_ns = 0;
    int64_t returned_ns = 0;
    PlainReport report;
  };
  struct alignas(128) Worker {
    std::atomic<bool> over{false};  // the run with the fault has ended
    std::atomic<bool> told{false};  // and so has the run after it
    dist_status before = DIST_OK, run = DIST_OK, after = DIST_OK, end = DIST_OK;
    int64_t returned_ns = 0;
    int64_t left_bytes = 0;
    std::atomic<int> wrong_data{0};  // sums with a wrong result
    PlainReport before_report, run_report, after_report, end_report;
  };

  WorkerCell cell;
  int64_t timeout_ns = 0;  // of late members, or of members that wait for a worker that never starts
  std::atomic<uint32_t> changes{0};  // the word on which processes wait
  std::atomic<int64_t> cause_ns{0};
  std::atomic<bool> inside{
      false};  // the guilty worker has reached the point where its strategy is shut down or its link cut
  Replica replicas[kMostMembers];
  Worker workers[kMostWorkers];

  // Returns false if another replica was the cause before.
  bool cause() {
    int64_t none = 0;
    return cause_ns.compare_exchange_strong(none, now_ns());
  }
  void changed() {
    changes.fetch_add(1);
    syscall(SYS_futex, &changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  // Waits until the condition is true, or at most `most_ns` if this is not 0.
  template <class Condition>
  bool await(Condition condition, int64_t most_ns = 0) {
    const int64_t end = now_ns() + most_ns;
    for (;;) {
      const uint32_t seen = changes.load();
      if (condition()) return true;
      timespec left{};
      if (most_ns != 0) {
        const int64_t ns = end - now_ns();
        if (ns <= 0) return false;
        left.tv_sec = ns / 1'000'000'000, left.tv_nsec = ns % 1'000'000'000;
      }
      syscall(SYS_futex, &changes, FUTEX_WAIT, seen, most_ns == 0 ? nullptr : &left, nullptr, 0);
    }
  }
  // Whether all replicas except the guilty ones have reached the phase. A replica that has left its run stays
  // in its last phase.
  bool peers_are(int phase) const {
    for (int r = 0; r < cell.members(); ++r) {
      if (!cell.is_guilty(r) && replicas[r].phase.load() < phase) return false;
    }
    return true;
  }
  bool peers_are_told() const {
    for (int w = 0; w < cell.workers; ++w) {
      if (w != cell.guilty && !workers[w].told.load()) return false;
    }
    return true;
  }
  bool peers_runs_are_over() const {
    for (int w = 0; w < cell.workers; ++w) {
      if (w != cell.guilty && !workers[w].over.load()) return false;
    }
    return true;
  }
};

}  // namespace faults
