// SPDX-License-Identifier: Apache-2.0
#include "core/input/reduce.hpp"

#include "core/base/host_call.hpp"

namespace dist {

Status reduce_pass(Dataset& dataset, TakeBatch take, ReducePassFn fn, void* user_data, ValueRef* state) {
  Ref<Iterator> iterator;
  DIST_TRY(Iterator::create(dataset, &iterator));
  for (;;) {
    ValueRef batch;
    DIST_TRY(take(*iterator, "dist_dataset_reduce", &batch));
    if (!batch) return kOk;
    const uint64_t failures = failures_on_this_thread();
    dist_value* made = nullptr;
    const dist_status code = guarded("the reducing function", [&] {
      return fn(reinterpret_cast<dist_dataset*>(&dataset), reinterpret_cast<dist_value*>(state->get()),
                reinterpret_cast<dist_value*>(batch.get()), &made, user_data);
    });
    ValueRef next = ValueRef::adopt(reinterpret_cast<Value*>(made));  // released even if the call fails
    if (code != DIST_OK) {
      if (failures_on_this_thread() != failures && last_error().code == code) return Status(code);
      return fail(code, "the reducing function returned %s without a reason. Use `dist_fail()` to report one",
                  status_name(code));
    }
    *state = std::move(next);
  }
}

}  // namespace dist
