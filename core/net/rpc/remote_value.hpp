// SPDX-License-Identifier: Apache-2.0
// RemoteValue: the result of an operation in another process, which arrives later as a value or an error (a
// future). Any number of threads may wait for it.
//
// Invariant: it is settled once; later attempts have no effect.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

class RemoteValue : public Counted {
 public:
  // Whether it has a value or an error.
  bool ready() noexcept;
  // Waits at most `timeout_ns` (< 0: until its own deadline) and returns the result. DEADLINE_EXCEEDED if it
  // has not arrived, or if its own deadline has expired.
  Status get(int64_t timeout_ns, ValueRef* out);
  // Settles it with CANCELLED unless it is settled already.
  virtual void cancel(const char* reason) noexcept = 0;

 protected:
  static constexpr int64_t kNever = INT64_MAX;

  RemoteValue(Memory& memory, int64_t until_ns) noexcept : Counted(memory), until_ns_(until_ns) {}
  ~RemoteValue() override = default;

  bool over() const noexcept { return over_.load(std::memory_order_acquire) != 0; }
  // Settles it. Returns false without effect if it is settled already. `value` may be absent if read()
  // provides it.
  bool settle(dist_status status, const char* text, ValueRef value = {}) noexcept;

  // Describes it for messages, for example "add at 127.0.0.1:29600".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;
  virtual const char* kind() const noexcept { return "call"; }
  // Provides the value if it was settled successfully without one. Called once, for the first caller of
  // get().
  virtual Status read(ValueRef* out);
  // Its own deadline has expired: settles it.
  virtual void expire() noexcept {}

 private:
  const int64_t until_ns_;
  std::atomic<uint32_t> over_{0};
  std::mutex mutex_;  // protects the result
  dist_status status_ = DIST_OK;
  char text_[sizeof ErrorRecord::message] = "";
  ValueRef value_;
};

}  // namespace dist
