// SPDX-License-Identifier: Apache-2.0
// An instance: one replica that serves requests, and the thread that serves it.
//
// | the instance is | attended | awaited | ready | failure |
// |---|---|---|---|---|
// | without a thread | no | no | no | DIST_OK |
// | waiting for a replacement thread | no | yes | no | DIST_OK |
// | creating its state | yes | no | no | DIST_OK |
// | serving | yes | no | yes | DIST_OK |
// | lost: it could not create its state, or its thread ended | any | no | no | the error |
//
// Invariant: only the thread that `stay` refers to uses the members that are neither atomic nor changed under the
// dispatcher's mutex. A thread that was abandoned (Stay::kLeft) must not touch the instance.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "core/base/status.hpp"
#include "core/comm/slot.hpp"
#include "core/comm/word.hpp"
#include "core/run/inner_pool.hpp"
#include "core/serve/endings.hpp"
#include "core/serve/request.hpp"
#include "core/serve/request_numbers.hpp"

namespace dist {

class Stuck;

// A thread that serves. While its call is kIn it can be abandoned: kLeft, with `stuck` owning what it must clean
// up.
struct Stay {
  enum : uint32_t { kOut, kIn, kLeft };
  bool left() const noexcept { return call.load(std::memory_order_acquire) == kLeft; }
  std::atomic<uint32_t> call{kOut};
  Stuck* stuck = nullptr;
  const InnerPool::Caller caller{};  // the thread itself
};

struct alignas(kApart) Instance {
  // The request that it was given; NULL: none.
  Request* take_given() noexcept {
    Request* const request = given.load(std::memory_order_acquire);
    if (request == nullptr) return nullptr;
    request->prefetch();
    given.store(nullptr, std::memory_order_relaxed);
    return request;
  }
  // Steps of batchers do not count as requests.
  void count_end(const Request& request, dist_status status) noexcept {
    if (request.unlimited) return;
    const RequestEnd end = status == DIST_OK ? RequestEnd::kCompleted : end_of(status);
    numbers.ended[static_cast<std::size_t>(end)].add(1);
  }
  void count_times(uint64_t accepted, uint64_t begun, uint64_t ended) noexcept {
    begun = std::max(begun, accepted);
    ended = std::max(ended, begun);
    numbers.queued.add(begun - accepted);
    numbers.computed.add(ended - begun);
    numbers.waited.add(ended - accepted);
  }
  // Runs a function of the host that is not a request's. Errors recorded on this thread belong to the request that
  // it runs for.
  Status run_alone(const Body& body, const RunLimits& limits) {
    inside.store(true, std::memory_order_relaxed);
    const Status status = pool->pool().run(body, limits);
    inside.store(false, std::memory_order_release);
    return status;
  }

  // An idle instance looks only at these.
  Word bell;  // rung when there is something to do, once for each request that is given
  std::atomic<Request*> given{nullptr};
  alignas(kApart) Endings endings;
  InnerPool* pool = nullptr;
  int rank = 0;
  Recorder* recorder = nullptr;     // of the replica
  Request* current = nullptr;       // the request that it runs
  Stay* stay = nullptr;             // of the thread that serves here
  int64_t stuck_at = 0;             // when the current function counts as stuck; 0: never
  bool told = false;                // the function was told to end, at a time not recorded yet
  bool attended = false;            // a thread serves here
  bool awaited = false;             // a replacement thread is starting and will create its state
  std::atomic<bool> inside{false};  // a host callback is running
  bool ready = false;               // has its state
  dist_status failure = DIST_OK;    // the error of creating the state
  ErrorRecord* why = nullptr;       // its report, if there was memory
  RequestNumbers numbers;
};

}  // namespace dist
