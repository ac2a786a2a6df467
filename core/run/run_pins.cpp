// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_pins.hpp"

#include <new>
#include <utility>

namespace dist {

RunPins::~RunPins() {
  {
    Unseen unseen;
    let_go(unseen, [](uint32_t) { return false; });
  }
  while (spare_ != nullptr) memory_.free(std::exchange(spare_, spare_->next), sizeof(Pin), alignof(Pin));
}

Status RunPins::see(uint32_t run, Versions& series, Version** out) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Pin* each = first_; each != nullptr; each = each->next) {
    if (each->run != run || &each->version->series() != &series) continue;
    *out = each->version;
    return kOk;
  }
  if (spare_ == nullptr) {
    void* const place = memory_.try_allocate(sizeof(Pin), alignof(Pin));
    if (place == nullptr) return out_of_memory();
    spare_ = new (place) Pin{};
  }
  Version* const latest = series.see_latest();
  if (latest == nullptr) {
    return failed_precondition(
        "`dist_replica_version()`: no version has been published. Call `dist_versions_publish()` first.");
  }
  Pin* const pin = std::exchange(spare_, spare_->next);
  *pin = {first_, latest, run};
  first_ = pin;
  any_.store(true, std::memory_order_relaxed);
  *out = latest;
  return kOk;
}

}  // namespace dist
