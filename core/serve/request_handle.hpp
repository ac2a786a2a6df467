// SPDX-License-Identifier: Apache-2.0
// RequestHandle: the object behind a dist_request.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Future;

class RequestHandle : public Counted {
 public:
  // Whether it has ended; fails with the report if it failed. Does not wait.
  virtual Status test(bool* out_ended) noexcept = 0;
  // Waits until it has ended, and returns its result; DEADLINE_EXCEEDED if that takes longer than timeout_ns,
  // while it continues. 0 does not wait, a negative value waits without limit.
  virtual Status wait(int64_t timeout_ns) noexcept = 0;
  // Waits until one of n requests, of which this is the first, has ended; *out_index is that one.
  virtual Status wait_any(RequestHandle* const* requests, std::size_t n, int64_t timeout_ns,
                          std::size_t* out_index) noexcept = 0;
  virtual void cancel() noexcept = 0;
  // The host releases its handle.
  virtual void close() noexcept = 0;
  virtual Future& future() noexcept = 0;
  // Returns its next partial result, waiting for it; *out is NULL if there is none left. timeout_ns: 0 does
  // not wait, a negative value waits without limit.
  virtual Status take(int64_t timeout_ns, void** out) noexcept = 0;
  // The host's pointer; may be NULL.
  virtual void* user_data() const noexcept = 0;

 protected:
  using Counted::Counted;
};

}  // namespace dist
