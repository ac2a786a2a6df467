// SPDX-License-Identifier: Apache-2.0
// HostWork: the object behind a dist_work, a member's handle of a collective (work.hpp), or a dist_request, a request
// (core/serve).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Promise;
class Work;
class WorkList;

class HostWork : public Counted {
 public:
  // Whether the calling thread may use it. `here`: the works of the replica on this thread; NULL: outside
  // replicas. `call` is the function's name for messages.
  virtual Status check_use(const WorkList* here, const char* call) const noexcept = 0;
  // Whether it has ended; fails with the report if it failed. Does not wait.
  virtual Status test(bool* out_ended) noexcept = 0;
  // Waits until it has ended, and returns its result; DEADLINE_EXCEEDED if that takes longer than timeout_ns, while the
  // work continues. 0 does not wait, a negative value waits without limit.
  virtual Status wait(int64_t timeout_ns) noexcept = 0;
  // Waits until one of n works, of which this is the first, has ended; *out_index is that one.
  virtual Status wait_any(HostWork* const* works, std::size_t n, int64_t timeout_ns,
                          std::size_t* out_index) noexcept = 0;
  virtual void cancel() noexcept = 0;
  // The host releases its handle.
  virtual void close() noexcept = 0;

  // NULL if it is not the work of a collective.
  virtual Work* collective() noexcept { return nullptr; }
  // NULL if it is not the work of a request or an item.
  virtual Promise* promise() noexcept { return nullptr; }
  // Returns its next partial result, waiting for it; *out is NULL if there is none left. timeout_ns: 0 does
  // not wait, a negative value waits without limit.
  virtual Status take(int64_t timeout_ns, void** out) noexcept;
  // The host's pointer; may be NULL.
  virtual void* user_data() const noexcept { return nullptr; }

 protected:
  using Counted::Counted;
};

}  // namespace dist
