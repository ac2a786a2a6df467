// SPDX-License-Identifier: Apache-2.0
#include "core/serve/teller.hpp"

#include "core/serve/future.hpp"

namespace dist {

Status Teller::need() noexcept {
  if (runs_.load(std::memory_order_acquire)) [[likely]]
    return kOk;
  const std::lock_guard lock(starting_);
  if (runs_.load(std::memory_order_relaxed)) return kOk;
  DIST_TRY(thread_.start(run, this, 0, pool_.cpus()));
  thread_.name("dist-done");
  runs_.store(true, std::memory_order_release);
  return kOk;
}

Status Teller::check(const char* call) const noexcept {
  if (id_.load(std::memory_order_relaxed) != this_thread()) return kOk;
  return failed_precondition(
      "`%s()`: this `thread` is inside a `dist_done_fn`, which other requests wait for. Call it on another "
      "thread.",
      call);
}

void Teller::stop() noexcept {
  ended_->end();
  thread_.join();
}

void* Teller::run(void* self) {
  auto& teller = *static_cast<Teller*>(self);
  block_async_signals();
  teller.id_.store(this_thread(), std::memory_order_relaxed);
  while (RequestHandle* const ended = teller.ended_->next(-1)) {
    Future& future = ended->future();
    future.call_done();
    future.let_go();
    teller.untold_.fetch_sub(1, std::memory_order_relaxed);
    teller.lifecycle_.delivered(teller.by_);
  }
  return nullptr;
}

}  // namespace dist
