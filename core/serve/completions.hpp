// SPDX-License-Identifier: Apache-2.0
// The queue in which completed requests and items, and items with partial results, wait for the host, in
// order of arrival.
//
// Invariant: a future is in the queue at most once, and the queue holds one of its references meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/os/event.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"
#include "core/serve/short_lock.hpp"

namespace dist {

class RequestHandle;
class Future;

class Completions final : public Counted {
 public:
  explicit Completions(Memory& memory) noexcept : Counted(memory) {}

  // Takes over a reference to the future. `last`: it will not be added again. Returns false if the host has
  // closed the queue.
  bool add(Future& future, bool last) noexcept;
  // Removes the first future and passes its reference to the caller, as the handle of this arrival. NULL if
  // none arrives within `timeout_ns` (0: do not wait; < 0: no limit), or if the queue has ended and is empty.
  RequestHandle* next(int64_t timeout_ns) noexcept;
  Status descriptor(int32_t* out) noexcept;
  // No more futures will arrive: next() returns the remaining ones and then NULL without waiting.
  void end() noexcept;
  // The host takes no more: releases the queued futures and all that arrive later.
  void close() noexcept;

 private:
  ~Completions() override = default;
  RequestHandle* take() noexcept;
  RequestHandle* take_first() noexcept;

  ShortLock mutex_;  // protects the members below
  Future* first_ = nullptr;
  Future* last_ = nullptr;
  bool closed_ = false;
  bool over_ = false;  // set by end() and close()
  EventDescriptor descriptor_;
  Word changed_;                    // counts arrivals and ends
  std::atomic<bool> eager_{false};  // for spin_eagerly(), as the latest future's instances do
};

}  // namespace dist
