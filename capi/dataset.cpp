// SPDX-License-Identifier: Apache-2.0
// dist.h, section 10: datasets.
#include "core/input/dataset.hpp"

#include "capi/guard.hpp"
#include "core/input/iterator.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Dataset* unwrap_dataset(dist_dataset* handle) noexcept { return reinterpret_cast<Dataset*>(handle); }
Iterator* unwrap_iterator(dist_iterator* handle) noexcept { return reinterpret_cast<Iterator*>(handle); }

Status read(const dist_dataset_options* options, DatasetOptions* out) noexcept {
  dist_dataset_options given;
  DIST_TRY(read_options(options, &given, "dist_dataset_options"));
  *out = {given.drop_remainder, given.global_batch_size, given.shuffle, given.prefetch, given.seed};
  return kOk;
}

}  // namespace

void dist_dataset_options_init(dist_dataset_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_dataset_create_from_tensors(dist_strategy* strategy, const dist_tensor* tensors, size_t n,
                                             const dist_dataset_options* options,
                                             dist_dataset** out_dataset) {
  return guard([&]() -> Status {
    constexpr const char* kCall = "dist_dataset_create_from_tensors";
    DIST_TRY(require(strategy, kCall, "strategy"));
    DIST_TRY(require(tensors, kCall, "tensors"));
    DIST_TRY(require(out_dataset, kCall, "out_dataset"));
    DIST_TRY(unwrap(strategy).check_cross_replica(kCall));
    DatasetOptions wanted;
    DIST_TRY(read(options, &wanted));
    Ref<Dataset> dataset;
    DIST_TRY(Dataset::create_from_tensors(unwrap(strategy).memory(), unwrap(strategy).num_replicas(),
                                          {tensors, n}, wanted, &dataset));
    *out_dataset = reinterpret_cast<dist_dataset*>(dataset.take());
    return kOk;
  });
}

dist_status dist_dataset_create_from_callback(dist_strategy* strategy, dist_source_fn fn, void* user_data,
                                              dist_release_fn release, const dist_dataset_options* options,
                                              dist_dataset** out_dataset) {
  return guard([&]() -> Status {
    constexpr const char* kCall = "dist_dataset_create_from_callback";
    DIST_TRY(require(strategy, kCall, "strategy"));
    if (fn == nullptr) return invalid_argument("%s(): fn is NULL", kCall);
    DIST_TRY(require(out_dataset, kCall, "out_dataset"));
    DIST_TRY(unwrap(strategy).check_cross_replica(kCall));
    DatasetOptions wanted;
    DIST_TRY(read(options, &wanted));
    Ref<Dataset> dataset;
    DIST_TRY(Dataset::create_from_callback(unwrap(strategy).memory(), unwrap(strategy).num_replicas(), fn,
                                           user_data, release, wanted, &dataset));
    *out_dataset = reinterpret_cast<dist_dataset*>(dataset.take());
    return kOk;
  });
}

void dist_dataset_destroy(dist_dataset* dataset) {
  if (dataset != nullptr) Dataset::close(unwrap_dataset(dataset));
}

dist_status dist_iterator_create(dist_dataset* dataset, dist_iterator** out_iterator) {
  return guard([&]() -> Status {
    DIST_TRY(require(dataset, "dist_iterator_create", "dataset"));
    DIST_TRY(require(out_iterator, "dist_iterator_create", "out_iterator"));
    Ref<Iterator> iterator;
    DIST_TRY(Iterator::create(*unwrap_dataset(dataset), &iterator));
    *out_iterator = reinterpret_cast<dist_iterator*>(iterator.take());
    return kOk;
  });
}

dist_status dist_iterator_next(dist_iterator* iterator, dist_value** out_batch) {
  return guard([&]() -> Status {
    DIST_TRY(require(iterator, "dist_iterator_next", "iterator"));
    DIST_TRY(require(out_batch, "dist_iterator_next", "out_batch"));
    ValueRef batch;
    DIST_TRY(unwrap_iterator(iterator)->next(&batch));
    *out_batch = wrap(batch.take());
    return kOk;
  });
}

void dist_iterator_destroy(dist_iterator* iterator) {
  if (iterator != nullptr) Iterator::close(unwrap_iterator(iterator));
}
