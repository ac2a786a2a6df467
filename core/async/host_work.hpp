// SPDX-License-Identifier: Apache-2.0
// HostWork: the object behind a dist_work, which is a member's handle of a collective (work.hpp) or a request
// (core/serve).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Work;
class WorkList;

class HostWork : public Counted {
 public:
  // Whether the calling thread may use it. `here`: the works of the replica that it is inside; NULL: it is inside none.
  // `call` is the function's name in messages.
  virtual Status check_use(const WorkList* here, const char* call) const noexcept = 0;
  // Whether it has ended, and fails with the report if it failed. Waits for nobody.
  virtual Status test(bool* out_ended) noexcept = 0;
  // Waits until it has ended, and returns how. `timeout_ns` 0: its own; < 0: no limit.
  virtual Status wait(int64_t timeout_ns) noexcept = 0;
  // Waits until one of n works has ended, of which this is the first; *out_index: which one.
  virtual Status wait_any(HostWork* const* works, std::size_t n, int64_t timeout_ns,
                          std::size_t* out_index) noexcept = 0;
  virtual void cancel() noexcept = 0;
  // The host gives up its handle.
  virtual void close() noexcept = 0;

  // NULL: it is no collective's.
  virtual Work* collective() noexcept { return nullptr; }
  // The next of its partial results, for which it waits; *out NULL: there is none, or none any more. `timeout_ns` 0: it does
  // not wait; < 0: no limit.
  virtual Status take(int64_t timeout_ns, void** out) noexcept;
  // What the host gave with it; NULL: nothing.
  virtual void* user_data() const noexcept { return nullptr; }

 protected:
  using Counted::Counted;
};

}  // namespace dist
