// SPDX-License-Identifier: Apache-2.0
// Request: a function that one replica is to run, alone.
#pragma once

#include <cstdint>

#include "core/serve/promise.hpp"
#include "core/serve/request_queue.hpp"

namespace dist {

class Batcher;

class Request : public Promise, public RequestQueue::Entry {
 public:
  Request(Memory& memory, Instances& home) noexcept : Promise(memory, home) {}

  void cancel() noexcept override;

  // It is the caller's, with `uses` uses.
  void begin(const Submission& given, int64_t now_ns, int uses) noexcept;

  // Whose step it is; NULL: it is none. Then, its function has been left alone, and has returned, on that thread.
  virtual Batcher* batcher() noexcept { return nullptr; }
  virtual void come_back() noexcept {}

  int64_t id = 0;
  uint64_t accepted_at = 0;  // a stamp of the recorders'

 private:
  void cancelled(const char* reason) noexcept override;
  void recycle() noexcept override;
};

}  // namespace dist
