// SPDX-License-Identifier: Apache-2.0
// dataset.h: creating datasets and iterating over them.
#include <memory_resource>
#include <string>

#include "capi/dataset.hpp"
#include "capi/options.hpp"
#include "core/input/coverage.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"
#include "core/input/reduce.hpp"
#include "core/input/spec.hpp"
#include "core/strategy/batches.hpp"
#include "core/strategy/scope.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Status read(const dist_dataset_options* options, const char* call, DatasetOptions* out) noexcept {
  dist_dataset_options given;
  DIST_TRY(read_options(options, &given, "dist_dataset_options"));
  if ((given.batch_sizes == nullptr) != (given.num_batch_sizes == 0)) {
    return invalid_argument("`batch_sizes` is %s, but `num_batch_sizes` is %zu. Pass both, or `NULL` and 0.",
                            given.batch_sizes == nullptr ? "NULL" : "set", given.num_batch_sizes);
  }
  DIST_TRY(check_list(given.batch_sizes, given.num_batch_sizes, call, "options->batch_sizes",
                      "options->num_batch_sizes"));
  out->drop_remainder = given.drop_remainder;
  out->global_batch_size = given.global_batch_size;
  out->shuffle = given.shuffle;
  out->prefetch = given.prefetch;
  out->seed = given.seed;
  out->shard_policy = or_default(given.shard_policy, DIST_SHARD_AUTO);
  out->num_workers = given.num_workers;
  out->worker_index = given.worker_index;
  out->worker_batches = given.worker_batches;
  out->shard_hint = given.shard_hint;
  out->interleave = given.interleave;
  out->static_shapes = given.static_shapes;
  out->replication_mode = or_default(given.replication_mode, DIST_INPUT_PER_WORKER);
  out->batch_sizes = {given.batch_sizes, given.num_batch_sizes};
  out->as_one_process = given.as_one_process;
  DIST_TRY(require_zero(given.reserved, "dist_dataset_options.reserved"));
  return kOk;
}

InputContext unwrap(const dist_input_context& context) noexcept {
  return {context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync};
}

// The host's function in the form that core calls.
struct HostMaker {
  dist_strategy* strategy;
  dist_dataset_fn fn;
  void* user_data;

  static dist_status call(const InputContext& context, dist_dataset** out_dataset, void* maker) {
    const dist_input_context given{context.num_input_pipelines, context.input_pipeline_id,
                                   context.num_replicas_in_sync};
    const auto& host = *static_cast<HostMaker*>(maker);
    return guarded("the dataset function",
                   [&] { return host.fn(host.strategy, &given, out_dataset, host.user_data); });
  }
};

// The common part of the functions that create datasets: make(strategy, options, &dataset).
template <class Make>
dist_status create(const char* call, dist_strategy* strategy, const dist_dataset_options* options,
                   dist_dataset** out_dataset, const Make& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(strategy, call, "strategy"));
        DIST_TRY(require(out_dataset, call, "out_dataset"));
        DIST_TRY(capi::unwrap(strategy).check_cross_replica(call));
        DatasetOptions wanted;
        DIST_TRY(read(options, call, &wanted));
        const CallInProgress here(capi::unwrap(strategy), call);
        Ref<Dataset> dataset;
        DIST_TRY(make(capi::unwrap(strategy), wanted, &dataset));
        dataset->handle().open(capi::unwrap(strategy).handles(), LiveHandles::kDataset, nullptr);
        *out_dataset = reinterpret_cast<dist_dataset*>(dataset.take());
        return kOk;
      },
      call);
}

}  // namespace

namespace dist::capi {

Status check_dataset(dist_dataset* dataset, const char* call) noexcept {
  Dataset* known;
  return Dataset::of(dataset, call, &known);
}

Status read_position(const dist_position* given, Position* out) noexcept {
  dist_position known;
  DIST_TRY(read_options(given, &known, "dist_position"));
  // Loading a checkpoint also writes the position, at a point when nothing may fail any more.
  DIST_TRY(check_room(*given, "dist_position"));
  DIST_TRY(require_zero(known.reserved, "dist_position.reserved"));
  *out = {known.pass, known.elements, known.examples, known.batches};
  return kOk;
}

Status write_position(const Position& position, dist_position* out) noexcept {
  const dist_position all{sizeof all,      0, position.pass, position.elements, position.examples,
                          position.batches};
  return write_struct(all, out, "dist_position");
}

}  // namespace dist::capi

void dist_dataset_options_init(dist_dataset_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_DATASET_OPTIONS_INIT);
}

dist_status dist_dataset_create_from_tensors(dist_strategy* strategy, const dist_tensor* tensors, size_t n,
                                             const dist_dataset_options* options,
                                             dist_dataset** out_dataset) {
  constexpr const char* kCall = "dist_dataset_create_from_tensors";
  return create(
      kCall, strategy, options, out_dataset,
      [&](Strategy& self, const DatasetOptions& wanted, Ref<Dataset>* out) -> Status {
        DIST_TRY(require(tensors, kCall, "tensors"));
        DIST_TRY(check_list(tensors, n, kCall, "tensors"));
        return Dataset::create_from_tensors(self.memory(), self.readers(), {tensors, n}, wanted, out);
      });
}

dist_status dist_dataset_create_from_callback(dist_strategy* strategy, dist_source_fn fn, void* user_data,
                                              dist_release_fn release, const dist_dataset_options* options,
                                              dist_dataset** out_dataset) {
  constexpr const char* kCall = "dist_dataset_create_from_callback";
  return create(kCall, strategy, options, out_dataset,
                [&](Strategy& self, const DatasetOptions& wanted, Ref<Dataset>* out) -> Status {
                  if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
                  return Dataset::create_from_callback(self.memory(), self.readers(), strategy, fn, user_data,
                                                       release, wanted, out);
                });
}

dist_status dist_dataset_create_from_files(dist_strategy* strategy, const char* const* names, size_t n,
                                           dist_file_source_fn fn, void* user_data, dist_release_fn release,
                                           const dist_dataset_options* options, dist_dataset** out_dataset) {
  constexpr const char* kCall = "dist_dataset_create_from_files";
  return create(kCall, strategy, options, out_dataset,
                [&](Strategy& self, const DatasetOptions& wanted, Ref<Dataset>* out) -> Status {
                  DIST_TRY(require(names, kCall, "names"));
                  DIST_TRY(check_list(names, n, kCall, "names"));
                  if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
                  return Dataset::create_from_files(self.memory(), self.readers(), {names, n}, strategy, fn,
                                                    user_data, release, wanted, out);
                });
}

dist_status dist_dataset_create_from_function(dist_strategy* strategy, dist_dataset_fn fn, void* user_data,
                                              const dist_dataset_options* options,
                                              dist_dataset** out_dataset) {
  constexpr const char* kCall = "dist_dataset_create_from_function";
  return create(kCall, strategy, options, out_dataset,
                [&](Strategy& self, const DatasetOptions& wanted, Ref<Dataset>* out) -> Status {
                  if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
                  HostMaker host{strategy, fn, user_data};
                  const DatasetMaker maker(HostMaker::call, &host);
                  const bool may_replicate = self.layout() == DIST_STRATEGY_MIRRORED &&
                                             self.kind() != DIST_STRATEGY_MULTI_WORKER_MIRRORED;
                  return Dataset::create_from_function(self.memory(), self.readers(), may_replicate, maker,
                                                       wanted, out);
                });
}

dist_status dist_input_context_per_replica_batch_size(const dist_input_context* context,
                                                      int64_t global_batch_size, int64_t* out_size) {
  return guard([&]() -> Status {
    DIST_TRY(require(context, "dist_input_context_per_replica_batch_size", "context"));
    DIST_TRY(require(out_size, "dist_input_context_per_replica_batch_size", "out_size"));
    return per_replica_batch_size(unwrap(*context), global_batch_size, out_size);
  });
}

dist_status dist_batch_sizes_for_worker(int64_t global_batch_size, int32_t num_workers,
                                        int32_t num_replicas_per_worker, int32_t worker, int64_t* out_sizes,
                                        size_t n) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_sizes, "dist_batch_sizes_for_worker", "out_sizes"));
    DIST_TRY(check_list(out_sizes, n, "dist_batch_sizes_for_worker", "out_sizes"));
    return batch_sizes_for_worker(global_batch_size, num_workers, num_replicas_per_worker, worker,
                                  {out_sizes, n});
  });
}

dist_status dist_dataset_element_spec(dist_dataset* dataset, dist_value** out_spec) {
  return guard([&]() -> Status {
    DIST_TRY(check_dataset(dataset, "dist_dataset_element_spec"));
    DIST_TRY(require(out_spec, "dist_dataset_element_spec", "out_spec"));
    ValueRef spec;
    DIST_TRY(element_spec(*unwrap_dataset(dataset), &spec));
    *out_spec = wrap(spec.take());
    return kOk;
  });
}

dist_status dist_dataset_check_shards(dist_dataset* dataset, int64_t limit) {
  return guard([&]() -> Status {
    DIST_TRY(check_dataset(dataset, "dist_dataset_check_shards"));
    return check_coverage(*unwrap_dataset(dataset), limit);
  });
}

void dist_dataset_destroy(dist_dataset* dataset) {
  if (dataset != nullptr) Dataset::close(unwrap_dataset(dataset));
}

namespace {

// `take` is next_batch() or a variant of it.
template <class Take>
dist_status next(dist_iterator* iterator, const char* call, dist_value** out_batch, const Take& take) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(iterator, call, "iterator"));
        DIST_TRY(require(out_batch, call, "out_batch"));
        ValueRef batch;
        DIST_TRY(take(*unwrap_iterator(iterator), call, &batch));
        *out_batch = wrap(batch.take());
        return kOk;
      },
      call);
}

Status create(dist_dataset* dataset, const Position* position, const char* call,
              dist_iterator** out_iterator) {
  DIST_TRY(check_dataset(dataset, call));
  DIST_TRY(require(out_iterator, call, "out_iterator"));
  DIST_TRY(check_may_pass(*unwrap_dataset(dataset), call));
  Ref<Iterator> iterator;
  DIST_TRY(position == nullptr ? Iterator::create(*unwrap_dataset(dataset), &iterator)
                               : Iterator::create_at(*unwrap_dataset(dataset), *position, &iterator));
  // A dataset that has been handed over to a function's caller is not listed, and neither are its iterators.
  if (LiveHandles* const list = unwrap_dataset(dataset)->handle().list(); list != nullptr) {
    iterator->handle().open(*list, LiveHandles::kIterator, nullptr);
  }
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
    Position at;
    DIST_TRY(read_position(position, &at));
    return create(dataset, &at, "dist_iterator_create_at", out_iterator);
  });
}

dist_status dist_iterator_position(dist_iterator* iterator, dist_position* out_position) {
  return guard([&]() -> Status {
    DIST_TRY(require(iterator, "dist_iterator_position", "iterator"));
    DIST_TRY(require(out_position, "dist_iterator_position", "out_position"));
    Position at;
    DIST_TRY(unwrap_iterator(iterator)->position(&at));
    return write_position(at, out_position);
  });
}

dist_status dist_iterator_next(dist_iterator* iterator, dist_value** out_batch) {
  return next(iterator, "dist_iterator_next", out_batch, next_batch);
}

dist_status dist_iterator_next_optional(dist_iterator* iterator, dist_value** out_batch) {
  return next(iterator, "dist_iterator_next_optional", out_batch, next_batch_or_rest);
}

dist_status dist_dataset_reduce(dist_dataset* dataset, dist_value* initial, dist_dataset_reduce_fn fn,
                                void* user_data, dist_value** out_state) {
  return guard([&]() -> Status {
    constexpr const char* kCall = "dist_dataset_reduce";
    DIST_TRY(check_dataset(dataset, kCall));
    if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
    DIST_TRY(require(out_state, kCall, "out_state"));
    DIST_TRY(check_may_pass(*unwrap_dataset(dataset), kCall));
    ValueRef state = ValueRef::share(unwrap(initial));
    DIST_TRY(reduce_pass(*unwrap_dataset(dataset), next_batch_or_rest, fn, user_data, &state));
    *out_state = wrap(state.take());
    return kOk;
  });
}

void dist_iterator_destroy(dist_iterator* iterator) {
  if (iterator != nullptr) Iterator::close(unwrap_iterator(iterator));
}
