// SPDX-License-Identifier: Apache-2.0
// budget.h: a limit on the threads of several strategies.
#include "core/run/budget.hpp"

#include "capi/guard.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

constexpr int32_t kMostThreads = 65536;

}  // namespace

dist_status dist_budget_create(const dist_allocator* allocator, int32_t threads, dist_budget** out_budget) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_budget, "dist_budget_create", "out_budget"));
    if (threads < 1 || threads > kMostThreads) {
      return invalid_argument("`dist_budget_create()`: `threads` is %d, but must be 1 to %d", threads,
                              kMostThreads);
    }
    Ref<Memory> memory;
    DIST_TRY(
        create_memory(allocator == nullptr ? dist_allocator{} : *allocator, "dist_budget_create()", &memory));
    *out_budget = wrap(make_counted<Budget>(*memory, static_cast<int>(threads)).take());
    return kOk;
  });
}

void dist_budget_destroy(dist_budget* budget) {
  if (budget != nullptr && !unwrap(budget)->memory().forked()) unwrap(budget)->release();
}
