// SPDX-License-Identifier: Apache-2.0
// run.h: the object that asks runs, collectives and works to end early.
#include "core/base/cancel.hpp"

#include "capi/guard.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Status check_process(const Cancel& cancel, const char* call) noexcept {
  if (!cancel.forked()) return kOk;
  return failed_precondition("%s(): this is a forked child of the process that made the cancel object", call);
}

}  // namespace

dist_status dist_cancel_create(const dist_allocator* allocator, dist_cancel** out_cancel) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_cancel, "dist_cancel_create", "out_cancel"));
    const dist_allocator chosen = allocator == nullptr ? dist_allocator{} : *allocator;
    if ((chosen.alloc == nullptr) != (chosen.free == nullptr))
      return invalid_argument("dist_cancel_create(): alloc and free come together, or neither");
    const auto memory = Ref<Memory>::adopt(Memory::create(chosen));
    if (!memory) return out_of_memory();
    *out_cancel = wrap(make_counted<Cancel>(*memory).take());
    return kOk;
  });
}

dist_status dist_cancel_signal(dist_cancel* cancel, const char* reason) {
  return guard([&]() -> Status {
    DIST_TRY(require(cancel, "dist_cancel_signal", "cancel"));
    DIST_TRY(check_process(*unwrap(cancel), "dist_cancel_signal"));
    const auto held = Ref<Cancel>::share(unwrap(cancel));
    held->signal(reason);
    return kOk;
  });
}

int32_t dist_cancel_signalled(const dist_cancel* cancel) {
  return cancel != nullptr && unwrap(cancel)->signalled() ? 1 : 0;
}

void dist_cancel_destroy(dist_cancel* cancel) {
  if (cancel != nullptr) unwrap(cancel)->release();
}
