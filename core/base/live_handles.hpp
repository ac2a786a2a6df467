// SPDX-License-Identifier: Apache-2.0
// LiveHandles: the objects of a strategy that the host has not destroyed yet. They are listed in a warning
// when the host destroys the strategy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"

namespace dist {

class LiveHandle;

class LiveHandles final : public Counted {
 public:
  explicit LiveHandles(Memory& memory) noexcept : Counted(memory) {}

  enum Kind : uint8_t { kVariable, kDataset, kIterator, kMetric, kKinds };

  // Writes, for example, `2 variables (the first is "w") and 1 dataset`. Returns false if there are no such
  // objects.
  bool describe(char* to, std::size_t size) const noexcept;

 private:
  friend class LiveHandle;

  mutable std::mutex mutex_;
  int64_t counts_[kKinds] = {};
  IntrusiveList<LiveHandle, LiveHandles> variables_;  // the oldest one first
};

// The member of such an object through which it is listed.
class LiveHandle : private ListLink<LiveHandles> {
 public:
  LiveHandle() noexcept = default;
  LiveHandle(const LiveHandle&) = delete;
  LiveHandle& operator=(const LiveHandle&) = delete;
  ~LiveHandle() { close(); }

  // Called when the host gets a handle. `name` must stay valid until close(); only names of variables are
  // used.
  void open(LiveHandles& all, LiveHandles::Kind kind, const char* name) noexcept;
  // Called when the host destroys the handle. Does nothing if it is not open, or in a forked child.
  void close() noexcept;
  // The list that contains the handle; NULL if it is not open.
  LiveHandles* list() const noexcept { return all_.get(); }

 private:
  friend class LiveHandles;
  friend class IntrusiveList<LiveHandle, LiveHandles>;

  Ref<LiveHandles> all_;  // NULL: not open
  LiveHandles::Kind kind_ = LiveHandles::kVariable;
  const char* name_ = nullptr;
};

}  // namespace dist
