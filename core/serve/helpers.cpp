// SPDX-License-Identifier: Apache-2.0
#include "core/serve/helpers.hpp"

#include <algorithm>

#include "core/serve/future.hpp"
#include "core/serve/instances.hpp"

namespace dist {

Helpers::Helpers(Memory& memory, Instances& instances)
    : instances_(instances), ended_(make_counted<Completions>(memory)) {}

Helpers::~Helpers() { stop(); }

Status Helpers::start(Thread& thread, void* (*main)(void*), const char* name) noexcept {
  DIST_TRY(thread.start(main, this, 0, instances_.pool().cpus()));
  thread.name(name);
  return kOk;
}

Status Helpers::need_clock() noexcept {
  if (has_clock_.load(std::memory_order_acquire)) [[likely]]
    return kOk;
  const std::lock_guard lock(starting_);
  if (has_clock_.load(std::memory_order_relaxed)) return kOk;
  DIST_TRY(start(clock_, watch_clock, "dist-clock"));
  has_clock_.store(true, std::memory_order_release);
  return kOk;
}

Status Helpers::need_teller() noexcept {
  if (has_teller_.load(std::memory_order_acquire)) [[likely]]
    return kOk;
  const std::lock_guard lock(starting_);
  if (has_teller_.load(std::memory_order_relaxed)) return kOk;
  DIST_TRY(start(teller_, tell_host, "dist-done"));
  has_teller_.store(true, std::memory_order_release);
  return kOk;
}

void Helpers::stop_clock() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  changed_.advance();
  clock_.join();
}

void Helpers::stop() noexcept {
  stop_clock();
  ended_->end();
  teller_.join();
}

void* Helpers::watch_clock(void* self) {
  auto& helpers = *static_cast<Helpers*>(self);
  block_async_signals();
  Instances& instances = helpers.instances_;
  for (;;) {
    // The acquire keeps this load before the check, so a later deadline ends the sleep.
    const uint32_t seen = helpers.changed_.value.load(std::memory_order_acquire);
    if (helpers.stopping_.load(std::memory_order_seq_cst)) return nullptr;
    int64_t next_ns = instances.end_overdue();
    const int64_t stuck_ns = instances.replace_stuck();
    if (next_ns == 0 || (stuck_ns != 0 && stuck_ns < next_ns)) next_ns = stuck_ns;
    const int64_t left = next_ns == 0 ? -1 : std::max<int64_t>(next_ns - instances.host().now_ns(), 0);
    if (left == 0) continue;
    helpers.changed_.sleep(seen, instances.host().slice_ns(left), WaitPolicy{}, [&] {
      return helpers.changed_.value.load(std::memory_order_seq_cst) != seen ||
             helpers.stopping_.load(std::memory_order_seq_cst);
    });
  }
}

void* Helpers::tell_host(void* self) {
  auto& helpers = *static_cast<Helpers*>(self);
  block_async_signals();
  helpers.teller_id_.store(this_thread(), std::memory_order_relaxed);
  while (RequestHandle* const ended = helpers.ended_->next(-1)) {
    Future& future = ended->future();
    future.call_done();
    future.let_go();
    helpers.untold_.fetch_sub(1, std::memory_order_relaxed);
    helpers.instances_.one_less(helpers.instances_.elsewhere());
  }
  return nullptr;
}

}  // namespace dist
