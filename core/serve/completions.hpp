// SPDX-License-Identifier: Apache-2.0
// Completions: what has ended, or has partial results, in that order, until the host takes it.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/os/event.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"

namespace dist {

class Promise;

class Completions final : public Counted {
 public:
  explicit Completions(Memory& memory) noexcept : Counted(memory) {}

  // Takes over a use of the promise, which lies here once at a time. `last`: it does not come again. False: the host has
  // given them up.
  bool add(Promise& promise, bool last) noexcept;
  // The one that ended first, with its use; NULL: none has within `timeout_ns` (0: at once; < 0: no limit), or it is
  // closed.
  Promise* next(int64_t timeout_ns) noexcept;
  Status descriptor(int32_t* out) noexcept;
  // Nothing comes any more: next() gives what is there, and then NULL.
  void end() noexcept;
  // Nobody takes any more: lets go of what is there, and of what comes.
  void close() noexcept;

 private:
  ~Completions() override = default;
  Promise* take() noexcept;
  Promise* take_first() noexcept;

  std::mutex mutex_;  // what follows
  Promise* first_ = nullptr;
  Promise* last_ = nullptr;
  bool closed_ = false;
  bool over_ = false;  // by end() or close()
  EventDescriptor descriptor_;
  Word changed_;  // how often something came, or it was closed
};

}  // namespace dist
