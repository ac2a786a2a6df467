// SPDX-License-Identifier: Apache-2.0
// dataset.h: passes over datasets.
#include "core/input/iterator.hpp"

#include "capi/dataset.hpp"
#include "core/input/reduce.hpp"
#include "core/run/current.hpp"
#include "core/run/replica.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// A batch for all replicas is taken outside their functions. A dataset for one replica is like any other
// object there.
Status check_outside(const Dataset& dataset, const char* call) noexcept {
  DIST_TRY(dataset.check_process());
  const Current& here = current();
  if (here.replica == nullptr || here.merging || dataset.num_replicas() == 1) [[likely]]
    return kOk;
  return failed_precondition(
      "%s() of a dataset for %d replicas belongs to the cross-replica context, and this thread is inside "
      "replica %d's function: take the batch outside, and give it to dist_run_values()",
      call, dataset.num_replicas(), here.replica->id());
}

Status next(dist_iterator* handle, const char* call, dist_value** out_batch, ValueRef* out) {
  DIST_TRY(require(handle, call, "iterator"));
  DIST_TRY(require(out_batch, call, "out_batch"));
  Iterator& iterator = *unwrap_iterator(handle);
  DIST_TRY(check_outside(iterator.dataset(), call));
  Replica* const replica = current().replica;
  if (replica == nullptr) return iterator.next({}, out);
  // The source may never give it, and the run have a deadline, or be cancelled.
  const auto check_run = [](void* inside) noexcept {
    return static_cast<Replica*>(inside)->group().check_run();
  };
  return iterator.next({check_run, replica}, out);
}

Status create(dist_dataset* dataset, const Position* position, const char* call,
              dist_iterator** out_iterator) {
  DIST_TRY(check_dataset(dataset, call));
  DIST_TRY(require(out_iterator, call, "out_iterator"));
  DIST_TRY(check_outside(*unwrap_dataset(dataset), call));
  Ref<Iterator> iterator;
  DIST_TRY(position == nullptr ? Iterator::create(*unwrap_dataset(dataset), &iterator)
                               : Iterator::create_at(*unwrap_dataset(dataset), *position, &iterator));
  *out_iterator = reinterpret_cast<dist_iterator*>(iterator.take());
  return kOk;
}

}  // namespace

dist_status dist_iterator_create(dist_dataset* dataset, dist_iterator** out_iterator) {
  return guard([&]() -> Status { return create(dataset, nullptr, "dist_iterator_create", out_iterator); });
}

dist_status dist_iterator_create_at(dist_dataset* dataset, const dist_position* position,
                                    dist_iterator** out_iterator) {
  return guard([&]() -> Status {
    DIST_TRY(require(position, "dist_iterator_create_at", "position"));
    dist_position given;
    DIST_TRY(read_options(position, &given, "dist_position"));
    DIST_TRY(require_zero(given.reserved, "dist_position.reserved"));
    const Position at{given.pass, given.elements, given.examples, given.batches};
    return create(dataset, &at, "dist_iterator_create_at", out_iterator);
  });
}

dist_status dist_iterator_position(dist_iterator* iterator, dist_position* out_position) {
  return guard([&]() -> Status {
    DIST_TRY(require(iterator, "dist_iterator_position", "iterator"));
    DIST_TRY(require(out_position, "dist_iterator_position", "out_position"));
    uint32_t size = 0;
    std::memcpy(&size, out_position, sizeof size);
    if (size < sizeof size) {
      return invalid_argument("dist_iterator_position(): struct_size is %u: begin with DIST_POSITION_INIT",
                              size);
    }
    Position at;
    DIST_TRY(unwrap_iterator(iterator)->position(&at));
    const dist_position position{size, 0, at.pass, at.elements, at.examples, at.batches};
    std::memcpy(out_position, &position, std::min<std::size_t>(size, sizeof position));
    return kOk;
  });
}

dist_status dist_iterator_next(dist_iterator* iterator, dist_value** out_batch) {
  return guard([&]() -> Status {
    ValueRef batch;
    DIST_TRY(next(iterator, "dist_iterator_next", out_batch, &batch));
    *out_batch = wrap(batch.take());
    return kOk;
  });
}

dist_status dist_iterator_next_optional(dist_iterator* iterator, dist_value** out_batch) {
  return guard([&]() -> Status {
    ValueRef batch;
    const Status status = next(iterator, "dist_iterator_next_optional", out_batch, &batch);
    if (status.code() != DIST_OUT_OF_RANGE) DIST_TRY(status);
    *out_batch = wrap(batch.take());
    return kOk;
  });
}

dist_status dist_dataset_reduce(dist_dataset* dataset, dist_value* initial, dist_dataset_reduce_fn fn,
                                void* user_data, dist_value** out_state) {
  return guard([&]() -> Status {
    constexpr const char* kCall = "dist_dataset_reduce";
    DIST_TRY(check_dataset(dataset, kCall));
    if (fn == nullptr) return invalid_argument("%s(): fn is NULL", kCall);
    DIST_TRY(require(out_state, kCall, "out_state"));
    DIST_TRY(check_outside(*unwrap_dataset(dataset), kCall));
    ValueRef state = ValueRef::share(unwrap(initial));
    DIST_TRY(reduce_pass(*unwrap_dataset(dataset), fn, user_data, &state));
    *out_state = wrap(state.take());
    return kOk;
  });
}

void dist_iterator_destroy(dist_iterator* iterator) {
  if (iterator != nullptr) Iterator::close(unwrap_iterator(iterator));
}
