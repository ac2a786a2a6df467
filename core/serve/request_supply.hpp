// SPDX-License-Identifier: Apache-2.0
// The requests of one strategy: objects that are allocated several at a time, used again and again, and freed
// with this object.
//
// | a request is | it is |
// |---|---|
// | spare | in `spares_`, without users |
// | in use | with the submitter, the queue, an instance or the host |
//
// Invariant: a request that take() returned has no other user until put_back().
#pragma once

#include <atomic>
#include <cstddef>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/serve/request.hpp"
#include "core/serve/spares.hpp"

namespace dist {

class RequestSupply {
 public:
  RequestSupply() noexcept = default;
  ~RequestSupply();
  RequestSupply(const RequestSupply&) = delete;
  RequestSupply& operator=(const RequestSupply&) = delete;

  // Returns an unused request. `home` is passed to requests that have to be made.
  Status take(Instances& home, Request** out) noexcept {
    const Future* next = nullptr;
    *out = static_cast<Request*>(spares_.take(&next));
    if (next != nullptr) static_cast<const Request*>(next)->prefetch();
    return *out != nullptr ? kOk : make(home, out);
  }
  void put_back(Request& request) noexcept { spares_.put_back(request, request); }
  // Counts the requests that keep their instances allocated (Request::keeps_home).
  void count_kept() noexcept { kept_.fetch_add(1, std::memory_order_relaxed); }
  void count_released() noexcept { kept_.fetch_sub(1, std::memory_order_release); }
  bool has_kept() const noexcept { return kept_.load(std::memory_order_acquire) != 0; }

 private:
  struct Slab;
  [[gnu::noinline, gnu::cold]] Status make(Instances& home, Request** out) noexcept;

  Spares spares_;
  std::atomic<Slab*> slabs_{nullptr};  // the memory of all requests
  std::atomic<std::size_t> kept_{0};
};

}  // namespace dist
