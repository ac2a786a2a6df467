// SPDX-License-Identifier: Apache-2.0
// The batchers of one strategy, ordered by number.
//
// Invariant: a batcher is in the list from its creation until its destruction. `mutex_` protects the list only. No
// host callback is called under it, so at() returns a reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Batcher;
class Item;
class Request;

class BatcherList {
 public:
  BatcherList() noexcept = default;
  BatcherList(const BatcherList&) = delete;
  BatcherList& operator=(const BatcherList&) = delete;

  // Gives the batcher the lowest free number.
  void add(Batcher& batcher) noexcept;
  void remove(Batcher& batcher) noexcept;
  // The batcher at this position; empty if there are fewer.
  Ref<Batcher> at(std::size_t position) const noexcept;

  // Ends the items whose deadline has expired and starts the steps that are due. Returns the time of the next
  // event; 0: none.
  int64_t tend() noexcept;
  // Ends all items; those in a step end when the step is over.
  void end_all(const ErrorRecord& why) noexcept;
  // Takes the items of an instance whose function is stuck, linked by next_to_end. `running` is its request.
  Item* leave_alone(int instance, Request& running) noexcept;

 private:
  mutable std::mutex mutex_;
  Batcher* first_ = nullptr;
};

}  // namespace dist
