// SPDX-License-Identifier: Apache-2.0
// A request: a function that runs on one replica.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/serve/future.hpp"
#include "core/serve/request_queue.hpp"

namespace dist {

class Batcher;

class alignas(64) Request : public Future, public RequestQueue::Entry {
 public:
  Request(Memory& memory, Instances& home) noexcept : Future(memory, home) {}

  void cancel() noexcept override;

  // Prepares it for a submission, with `uses` references. The caller must be its only user.
  void begin(const Submission& given, int64_t now_ns, int uses, BudgetParty* insider) noexcept {
    begin_future(given, uses, insider);
    keeps_home = uses > 1 || given.completions != nullptr || given.cancel != nullptr;
    priority = given.priority;
    deadline_ns = given.timeout_ns > 0 ? deadline_after(now_ns, given.timeout_ns) : 0;
    id = given.id;
  }

  // The batcher, if this is a step of one; otherwise NULL. come_back() is called on the thread of an
  // abandoned step when its function has returned.
  virtual Batcher* batcher() noexcept { return nullptr; }
  virtual void come_back() noexcept {}

  // It keeps its instances allocated, because it has a handle or a cancel object or will be in completions.
  bool keeps_home = false;
  // Fetches it into the caches of a thread that uses it next.
  void prefetch() const noexcept { prefetch(this); }
  // The same for the request that was queued behind it, if any.
  void prefetch_behind() const noexcept {
    const std::ptrdiff_t to_queued = reinterpret_cast<const std::byte*>(static_cast<const Queued*>(this)) -
                                     reinterpret_cast<const std::byte*>(this);
    prefetch(static_cast<const std::byte*>(Queued::behind()) - to_queued);
  }

  int64_t id = 0;
  uint64_t accepted_at = 0;  // timestamp

 private:
  static void prefetch(const void* request) noexcept {
    for (std::size_t at = 0; at < sizeof(Request); at += 64)
      __builtin_prefetch(static_cast<const std::byte*>(request) + at, 1);
  }
  void cancelled(const char* reason) noexcept override;
  void recycle() noexcept override;
};

}  // namespace dist
