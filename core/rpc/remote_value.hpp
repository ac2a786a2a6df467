// SPDX-License-Identifier: Apache-2.0
// RemoteValue: what something that another process does comes to, later: a value or an error. Any thread may ask for it,
// several at a time.
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
  // Whether it is there, or an error.
  bool ready() noexcept;
  // Waits at most so long (< 0: until its own deadline). DEADLINE_EXCEEDED: it is not there yet, or will never be, by its own
  // deadline. Else what it came to.
  Status get(int64_t timeout_ns, ValueRef* out);
  // It ends with CANCELLED, unless it has ended.
  virtual void cancel(const char* reason) noexcept = 0;

 protected:
  static constexpr int64_t kNever = INT64_MAX;

  RemoteValue(Memory& memory, int64_t until_ns) noexcept : Counted(memory), until_ns_(until_ns) {}
  ~RemoteValue() override = default;

  bool over() const noexcept { return over_.load(std::memory_order_acquire) != 0; }
  // How it ends: false, and nothing happens, where it has ended before. `value` may be absent where read() finds it.
  bool settle(dist_status status, const char* text, ValueRef value = {}) noexcept;

  // What it is, for messages: "add at 127.0.0.1:29600".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;
  virtual const char* kind() const noexcept { return "call"; }
  // Where it ended well without a value: called once, by the first who asks for it.
  virtual Status read(ValueRef* out);
  // Its own deadline has passed: settles it.
  virtual void expire() noexcept {}

 private:
  const int64_t until_ns_;
  std::atomic<uint32_t> over_{0};
  std::mutex mutex_;  // of what it came to
  dist_status status_ = DIST_OK;
  char text_[sizeof ErrorRecord::message] = "";
  ValueRef value_;
};

}  // namespace dist
