// SPDX-License-Identifier: Apache-2.0
// Counts the requests and items of a strategy: accepted, refused, and completed without an instance.
//
// | a future is | counted by |
// |---|---|
// | accepted | accept_request() or accept_item() |
// | completed | Endings::completed of the thread that completes it |
// | delivered | Lifecycle::delivered() |
//
// Invariant: an accepted future is counted once in each row. So closing can wait until undelivered() is 0.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/serve/endings.hpp"
#include "core/serve/instance.hpp"
#include "core/serve/request_numbers.hpp"

namespace dist {

class Tally {
 public:
  Tally() noexcept = default;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // Must be called under the dispatcher's mutex.
  void accept_request() noexcept { ++requests_; }
  // A number for a request that has no id from the host. Must be called under the dispatcher's mutex.
  int64_t next_number() noexcept { return ++numbered_; }
  void accept_item() noexcept { items_.fetch_add(1, std::memory_order_seq_cst); }
  // Counts a request that is not accepted, and returns why.
  [[gnu::noinline, gnu::cold]] Status refuse(Status why) noexcept {
    refused_[static_cast<std::size_t>(refusal_of(why.code()))].fetch_add(1, std::memory_order_relaxed);
    return why;
  }
  // Counts a request that completed before an instance began it.
  void count_unbegun(dist_status status) noexcept {
    unbegun_[static_cast<std::size_t>(end_of(status))].fetch_add(1, std::memory_order_relaxed);
  }
  // The counts of threads other than the instances.
  Endings& elsewhere() noexcept { return elsewhere_; }

  // The number of accepted futures that have not been delivered. Must be called under the dispatcher's mutex, so
  // that no request is accepted meanwhile.
  std::size_t undelivered(std::span<const Instance> instances) const noexcept {
    uint64_t left = requests_ + items_.load(std::memory_order_seq_cst) -
                    elsewhere_.delivered.load(std::memory_order_seq_cst);
    for (const Instance& each : instances) left -= each.endings.delivered.load(std::memory_order_seq_cst);
    return left;
  }
  // Whether an accepted future has not completed. Must be called under the dispatcher's mutex.
  bool some_under_way(std::span<const Instance> instances) const noexcept {
    uint64_t left = requests_ + items_.load(std::memory_order_seq_cst) -
                    elsewhere_.completed.load(std::memory_order_relaxed);
    for (const Instance& each : instances) left -= each.endings.completed.load(std::memory_order_relaxed);
    return left != 0;
  }

  // ---- Statistics ----
  // Must be called under the dispatcher's mutex.
  uint64_t accepted() const noexcept { return requests_; }
  uint64_t refused(std::size_t why) const noexcept { return refused_[why].load(std::memory_order_relaxed); }
  uint64_t unbegun(std::size_t end) const noexcept { return unbegun_[end].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kRefusals> refused_{};
  std::array<std::atomic<uint64_t>, kRequestEnds> unbegun_{};
  Endings elsewhere_;
  // Only submitting threads change these.
  alignas(kApart) uint64_t requests_ = 0;
  int64_t numbered_ = 0;
  std::atomic<uint64_t> items_{0};
};

}  // namespace dist
