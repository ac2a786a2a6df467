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
  // Waits for at most `timeout_ns` (< 0: until its own deadline) and returns the result. Fails with
  // DEADLINE_EXCEEDED if the result has not arrived, or if its own deadline has expired.
  Status get(int64_t timeout_ns, ValueRef* out);
  // Settles it with CANCELLED, unless it has been settled.
  virtual void cancel(const char* reason) noexcept = 0;

 protected:
  static constexpr int64_t kNever = INT64_MAX;

  RemoteValue(Memory& memory, int64_t until_ns) noexcept : Counted(memory), until_ns_(until_ns) {}
  ~RemoteValue() override = default;

  bool over() const noexcept { return over_.load(std::memory_order_acquire) != 0; }
  // Settles it. If it has been settled already, returns false and has no effect. `value` may be empty if
  // read() provides the value.
  bool settle(dist_status status, const char* text, ValueRef value = {}) noexcept;

  // Describes it for messages, for example "add at 127.0.0.1:29600".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;
  virtual const char* kind() const noexcept { return "call"; }
  // Provides the value if it was settled successfully without one. Called once, when get() is first called.
  virtual Status read(ValueRef* out);
  // Its own deadline has expired, so this settles it.
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
