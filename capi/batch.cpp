// SPDX-License-Identifier: Apache-2.0
// batch.h: items that an instance processes in batches.
#include <limits>
#include <utility>

#include "capi/guard.hpp"
#include "capi/submission.hpp"
#include "core/run/current.hpp"
#include "core/serve/batcher.hpp"
#include "core/strategy/scope.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

constexpr int32_t kMostItems = static_cast<int32_t>(StepSizes::kMost);
static_assert(kMostItems == 4096);
constexpr int64_t kMostWaiting = int64_t{1} << 24;
constexpr std::size_t kMostBuckets = 64;
constexpr int32_t kMostResults = 1 << 16;

Batcher& unwrap(dist_batcher* handle) noexcept { return *reinterpret_cast<Batcher*>(handle); }
Batch* unwrap(dist_batch* handle) noexcept { return reinterpret_cast<Batch*>(handle); }
const Batch* unwrap(const dist_batch* handle) noexcept { return reinterpret_cast<const Batch*>(handle); }

Item* item_of(const dist_batch* handle, std::size_t i) noexcept {
  return handle == nullptr ? nullptr : unwrap(handle)->at(i);
}

dist_status call_step(Replica& replica, Batch& batch, const Batcher::Options& self) {
  return guarded("the step function", [&] {
    return reinterpret_cast<dist_batch_fn>(self.host_step)(
        wrap(&replica), reinterpret_cast<dist_batch*>(&batch), self.user_data);
  });
}

void call_free(void (*function)(), void* what, void* user_data) {
  (void)survived([&] { reinterpret_cast<dist_batch_free_fn>(function)(what, user_data); });
}

Status require_range(int64_t given, int64_t most, const char* field, int64_t* out) noexcept {
  if (given < 0 || given > most) {
    return invalid_argument("`dist_batcher_options.%s` is %lld, but must be 0 to %lld", field,
                            static_cast<long long>(given), static_cast<long long>(most));
  }
  if (given != 0) *out = given;
  return kOk;
}

Status read_buckets(const dist_batcher_options& given, std::pmr::vector<int64_t>* out) {
  if (given.buckets == nullptr && given.num_buckets != 0)
    return invalid_argument("`dist_batcher_options.buckets` is `NULL`, but `num_buckets` is %zu",
                            given.num_buckets);
  if (given.num_buckets > kMostBuckets) {
    return invalid_argument("`dist_batcher_options.num_buckets` is %zu, but must be 0 to %zu",
                            given.num_buckets, kMostBuckets);
  }
  for (std::size_t i = 0; i < given.num_buckets; ++i) {
    const int64_t before = i == 0 ? 0 : given.buckets[i - 1];
    if (given.buckets[i] <= before) {
      return invalid_argument(
          "`dist_batcher_options.buckets[%zu]` is %lld, but lengths must ascend and be at least 1", i,
          static_cast<long long>(given.buckets[i]));
    }
    out->push_back(given.buckets[i]);
  }
  return kOk;
}

Status read_batcher_options(const dist_batcher_options* options, Batcher::Options* out) {
  dist_batcher_options given;
  DIST_TRY(read_options(options, &given, "dist_batcher_options"));
  DIST_TRY(require_flag(given.continuous, "dist_batcher_options.continuous"));
  int64_t items = out->queue.max_items;
  int64_t waiting = static_cast<int64_t>(out->queue.max_waiting);
  int64_t results = out->max_results;
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  DIST_TRY(require_range(given.max_items, kMostItems, "max_items", &items));
  DIST_TRY(require_range(given.max_delay_ns, kAny, "max_delay_ns", &out->queue.max_delay_ns));
  DIST_TRY(require_range(given.max_waiting, kMostWaiting, "max_waiting", &waiting));
  DIST_TRY(read_size(given.max_bytes, "dist_batcher_options.max_bytes", &out->queue.max_bytes));
  DIST_TRY(require_range(given.max_results, kMostResults, "max_results", &results));
  DIST_TRY(read_buckets(given, &out->buckets));
  out->queue.max_items = static_cast<int>(items);
  out->queue.max_waiting = static_cast<std::size_t>(waiting);
  out->queue.num_buckets = given.num_buckets == 0 ? 1 : static_cast<int>(given.num_buckets);
  out->max_results = static_cast<int>(results);
  out->continuous = given.continuous == 1;
  out->free = call_free;
  out->free_state = reinterpret_cast<void (*)()>(given.free_state);
  out->free_result = reinterpret_cast<void (*)()>(given.free_result);
  return kOk;
}

Status check_process(Batcher& batcher, const char* call) noexcept {
  if (!batcher.memory().forked()) return kOk;
  return failed_precondition(
      "`%s()`: this is a forked child of the process that created the batcher. Create another one in the "
      "child.",
      call);
}

}  // namespace

void dist_batcher_options_init(dist_batcher_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_item_options_init(dist_item_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_batcher_create(dist_strategy* strategy, dist_batch_fn step, void* user_data,
                                const dist_batcher_options* options, dist_batcher** out_batcher) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_batcher_create", "strategy"));
    if (step == nullptr) return invalid_argument("`dist_batcher_create()`: `step` is `NULL`");
    DIST_TRY(require(out_batcher, "dist_batcher_create", "out_batcher"));
    Strategy& owner = unwrap(strategy);
    DIST_TRY(owner.check_process());
    Batcher::Options wanted(owner.memory());
    DIST_TRY(read_batcher_options(options, &wanted));
    wanted.step = call_step;
    wanted.host_step = reinterpret_cast<void (*)()>(step);
    wanted.user_data = user_data;
    Instances& instances = owner.instances();
    DIST_TRY(instances.open_once("dist_batcher_create"));
    auto batcher = make_counted<Batcher>(owner.memory(), instances, std::move(wanted));
    instances.batchers().add(*batcher);
    *out_batcher = reinterpret_cast<dist_batcher*>(batcher.take());
    return kOk;
  });
}

dist_status dist_batcher_submit(dist_batcher* batcher, void* user_data, const dist_item_options* options,
                                dist_request** out_request) {
  return guard([&]() -> Status {
    DIST_TRY(require(batcher, "dist_batcher_submit", "batcher"));
    DIST_TRY(check_process(unwrap(batcher), "dist_batcher_submit"));
    dist_item_options given;
    DIST_TRY(read_options(options, &given, "dist_item_options"));
    if (given.length < 0)
      return invalid_argument("`dist_item_options.length` is %lld, but must be 0 or more",
                              static_cast<long long>(given.length));
    int64_t bytes = 0;
    DIST_TRY(read_size(given.bytes, "dist_item_options.bytes", &bytes));
    Submission wanted;
    wanted.body.context = user_data;
    DIST_TRY(read_asking(given, "dist_item_options", &wanted));
    Item* item = nullptr;
    DIST_TRY(unwrap(batcher).submit(wanted, {given.length, bytes}, out_request == nullptr ? nullptr : &item));
    if (out_request != nullptr) *out_request = wrap_request(item);
    return kOk;
  });
}

void dist_batcher_count(dist_batcher* batcher, int64_t* out_waiting, int64_t* out_active) {
  int64_t waiting = 0;
  int64_t active = 0;
  if (batcher != nullptr && !unwrap(batcher).memory().forked()) unwrap(batcher).count(&waiting, &active);
  if (out_waiting != nullptr) *out_waiting = waiting;
  if (out_active != nullptr) *out_active = active;
}

dist_status dist_batcher_destroy(dist_batcher* batcher) {
  return guard([&]() -> Status {
    if (batcher == nullptr || unwrap(batcher).memory().forked()) return kOk;
    if (current().replica != nullptr)
      return failed_precondition(
          "`dist_batcher_destroy()`: this `thread` is inside a replica's function, which may be a step of "
          "the "
          "batcher. Call it outside the replicas.");
    return Batcher::destroy(&unwrap(batcher));
  });
}

std::size_t dist_batch_size(const dist_batch* batch) { return batch == nullptr ? 0 : unwrap(batch)->size(); }

int64_t dist_batch_bucket(const dist_batch* batch) { return batch == nullptr ? 0 : unwrap(batch)->bucket(); }

void* dist_batch_user_data(const dist_batch* batch, std::size_t i) {
  const Item* const item = item_of(batch, i);
  return item == nullptr ? nullptr : item->user_data();
}

void* dist_batch_state(const dist_batch* batch, std::size_t i) {
  const Item* const item = item_of(batch, i);
  return item == nullptr ? nullptr : item->state;
}

void dist_batch_set_state(dist_batch* batch, std::size_t i, void* state) {
  if (Item* const item = item_of(batch, i); item != nullptr) item->state = state;
}

dist_status dist_batch_check(dist_batch* batch, std::size_t i) {
  return guard([&]() -> Status {
    DIST_TRY(require(batch, "dist_batch_check", "batch"));
    const Item* const item = item_of(batch, i);
    if (item == nullptr)
      return invalid_argument("`dist_batch_check()`: `i` is %zu, but the step has %zu items", i,
                              unwrap(batch)->size());
    DIST_TRY(unwrap(batch)->check_here("dist_batch_check"));
    return unwrap(batch)->batcher().check_wanted(*item);
  });
}

dist_status dist_batch_emit(dist_batch* batch, std::size_t i, void* result) {
  return guard([&]() -> Status {
    DIST_TRY(require(batch, "dist_batch_emit", "batch"));
    if (result == nullptr) return invalid_argument("`dist_batch_emit()`: `result` is `NULL`");
    Item* const item = item_of(batch, i);
    if (item == nullptr)
      return invalid_argument("`dist_batch_emit()`: `i` is %zu, but the step has %zu items", i,
                              unwrap(batch)->size());
    DIST_TRY(unwrap(batch)->check_here("dist_batch_emit"));
    const Item::Emitted emitted = item->emit(result);
    if (emitted == Item::Emitted::kKept) return kOk;
    if (emitted == Item::Emitted::kLeft) return Batch::is_left("dist_batch_emit");
    return fail(
        DIST_RESOURCE_EXHAUSTED,
        "`dist_batch_emit()`: %d results of this item are waiting to be taken, which is the limit, or "
        "memory is exhausted. Take them, or raise `dist_batcher_options.max_results`.",
        unwrap(batch)->batcher().options().max_results);
  });
}

void dist_batch_end(dist_batch* batch, std::size_t i, dist_status status) {
  if (Item* const item = item_of(batch, i); item != nullptr) item->end_with(status);
}

dist_status dist_request_take(dist_request* request, int64_t timeout_ns, void** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(request, "dist_request_take", "request"));
    DIST_TRY(require(out_result, "dist_request_take", "out_result"));
    DIST_TRY(require_wait(timeout_ns, "dist_request_take"));
    RequestHandle& given = *unwrap(request);
    if (given.memory().forked()) return in_forked_child();
    void* result = nullptr;
    DIST_TRY(given.take(timeout_ns, &result));
    *out_result = result;
    return kOk;
  });
}
