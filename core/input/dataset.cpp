// SPDX-License-Identifier: Apache-2.0
#include "core/input/dataset.hpp"

#include <utility>

#include "core/input/ahead_arena.hpp"
#include "core/input/batch.hpp"
#include "core/input/deal.hpp"
#include "core/input/function_source.hpp"
#include "core/input/row_source.hpp"

namespace dist {
namespace {

Status check_one_pipeline(const DatasetOptions& options) noexcept {
  if (options.replication_mode != DIST_INPUT_PER_REPLICA) return kOk;  // divide() checks the other modes
  return fail(
      DIST_UNIMPLEMENTED,
      "`replication_mode` is `DIST_INPUT_PER_REPLICA`, but one source cannot be read once for each replica. "
      "Use `dist_dataset_create_from_function()`, which creates a dataset for each replica.");
}

// Only prefetch and replication_mode may be set. All other options belong to the datasets that the function
// creates.
Status check_function_options(const DatasetOptions& options, bool may_replicate) noexcept {
  Division division;
  DIST_TRY(divide(options, 1, {}, {}, &division));
  const bool batching = options.drop_remainder != 0 || options.global_batch_size != 0 ||
                        options.shuffle != 0 || options.seed != 0 || options.static_shapes != 0 ||
                        !options.batch_sizes.empty();
  const bool sharding = options.shard_policy != DIST_SHARD_AUTO || options.num_workers != 0 ||
                        options.worker_index != 0 || options.worker_batches != 0 || options.shard_hint != 0 ||
                        options.interleave != 0 || options.as_one_process != 0;
  if (batching || sharding) {
    return invalid_argument(
        "for a dataset that a function creates, only prefetch and `replication_mode` can be set here. Set "
        "batching and sharding in the function.");
  }
  if (options.replication_mode == DIST_INPUT_PER_REPLICA && !may_replicate) {
    return fail(DIST_UNIMPLEMENTED,
                "`replication_mode` is `DIST_INPUT_PER_REPLICA`, but only a mirrored strategy supports it. "
                "Use `DIST_INPUT_PER_WORKER`.");
  }
  return kOk;
}

}  // namespace

Status per_replica_batch_size(const InputContext& context, int64_t global_batch_size, int64_t* out) noexcept {
  const int64_t replicas = context.num_replicas_in_sync;
  if (replicas < 1) {
    return invalid_argument("`num_replicas_in_sync` is %lld, but must be at least 1",
                            static_cast<long long>(replicas));
  }
  if (global_batch_size % replicas != 0) {
    return invalid_argument(
        "`global_batch_size` is %lld, which is not a multiple of the %lld replicas in sync",
        static_cast<long long>(global_batch_size), static_cast<long long>(replicas));
  }
  *out = global_batch_size / replicas;
  return kOk;
}

Dataset::Dataset(Memory& memory, const Readers& readers, const DatasetOptions& options)
    : Counted(memory),
      readers_(readers),
      of_strategys_workers_(readers.workers && options.num_workers == 0),
      options_(options),
      sizes_(options.batch_sizes.empty() ? Ref<Sizes>() : make_counted<Sizes>(memory, options.batch_sizes)),
      prefetch_(options.prefetch < 0    ? 0
                : options.prefetch == 0 ? (readers.no_helpers ? 0 : 1)
                                        : options.prefetch),
      arena_(make_counted<AheadArena>(memory)) {
  if (sizes_) options_.batch_sizes = sizes_->all;
  if (!of_strategys_workers_) return;
  options_.num_workers = readers.workers->num_workers();
  options_.worker_index += readers.me;
  options_.layout = readers.workers;
}

Dataset::~Dataset() = default;

// The last step of creation that can fail, apart from checks of the options.
Status Dataset::set_source(Ref<Source> source) {
  if (of_strategys_workers_ && options_.worker_index != readers_.me) {
    return invalid_argument(
        "`worker_index` is set, but `num_workers` is 0. Set both, or neither to use the workers of the "
        "strategy.");
  }
  DIST_TRY(divide(options_, num_replicas(), sizes_, source->facts(), &division_));
  source_ = std::move(source);
  return kOk;
}

Status Dataset::create_from_tensors(Memory& memory, const Readers& readers,
                                    std::span<const dist_tensor> tensors, const DatasetOptions& options,
                                    Ref<Dataset>* out) {
  DIST_TRY(check_one_pipeline(options));
  Ref<RowSource> source;
  DIST_TRY(RowSource::create(memory, tensors, &source));
  Ref<Dataset> dataset = make_counted<Dataset>(memory, readers, options);
  dataset->of_rows_ = true;
  DIST_TRY(dataset->set_source(Ref<Source>::adopt(source.take())));
  *out = std::move(dataset);
  return kOk;
}

Status Dataset::create_from_host(Memory& memory, const Readers& readers, Ref<HostSource> host,
                                 const DatasetOptions& options, Ref<Dataset>* out) {
  DIST_TRY(check_one_pipeline(options));
  if (options.shuffle == 1) {
    return invalid_argument(
        "`shuffle` is set, but libdist cannot shuffle a callback source. Shuffle in the callback.");
  }
  Ref<Dataset> dataset = make_counted<Dataset>(memory, readers, options);
  DIST_TRY(dataset->set_source(
      Ref<Source>::adopt(make_counted<ElementSource>(memory, std::move(host), options.interleave,
                                                     ElementSource::Give::kElements, int64_t{0})
                             .take())));
  *out = std::move(dataset);
  return kOk;
}

Status Dataset::create_from_callback(Memory& memory, const Readers& readers, dist_strategy* strategy,
                                     HostSource::Fn fn, void* user_data, HostSource::Release release,
                                     const DatasetOptions& options, Ref<Dataset>* out) {
  Ref<HostSource> host =
      make_counted<HostSource>(memory, strategy, fn, nullptr, std::span<const char* const>(), user_data);
  DIST_TRY(create_from_host(memory, readers, host, options, out));
  host->own(release);
  return kOk;
}

Status Dataset::create_from_files(Memory& memory, const Readers& readers, std::span<const char* const> names,
                                  dist_strategy* strategy, HostSource::FileFn fn, void* user_data,
                                  HostSource::Release release, const DatasetOptions& options,
                                  Ref<Dataset>* out) {
  if (names.empty()) return invalid_argument("there are no files, but a dataset needs at least one");
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == nullptr) return invalid_argument("`names[%zu]` is `NULL`; a file must have a name", i);
  }
  Ref<HostSource> host = make_counted<HostSource>(memory, strategy, nullptr, fn, names, user_data);
  DIST_TRY(create_from_host(memory, readers, host, options, out));
  host->own(release);
  return kOk;
}

Status Dataset::of(dist_dataset* handle, const char* call, Dataset** out) noexcept {
  if (handle == nullptr) return invalid_argument("`%s()`: `dataset` is `NULL`", call);
  // Handles of datasets, values and variables are all counted objects, so the type can be checked.
  *out = dynamic_cast<Dataset*>(reinterpret_cast<Counted*>(handle));
  return *out != nullptr ? kOk : invalid_argument("`%s()`: the handle is not a dataset", call);
}

Status DatasetMaker::make(const InputContext& context, Ref<Dataset>* out) const {
  const uint64_t failures = failures_on_this_thread();
  dist_dataset* handle = nullptr;
  const dist_status code = fn_(context, &handle, user_data_);
  Dataset* const made = dynamic_cast<Dataset*>(reinterpret_cast<Counted*>(handle));
  if (code != DIST_OK) {
    // The caller of the function owns the returned dataset, also if the status is an error.
    if (made != nullptr) Dataset::close(made);
    if (failures_on_this_thread() != failures && last_error().code == code) return Status(code);
    return fail(
        code,
        "the function returned %s for input pipeline %d without a reason. Use `dist_fail()` to report one",
        status_name(code), context.input_pipeline_id);
  }
  if (handle == nullptr) {
    return invalid_argument("the function returned `DIST_OK` for input pipeline %d, but created no dataset",
                            context.input_pipeline_id);
  }
  if (made == nullptr) {
    return invalid_argument("the function returned a handle for input pipeline %d that is not a dataset",
                            context.input_pipeline_id);
  }
  made->handle().close();
  *out = Ref<Dataset>::adopt(made);
  return kOk;
}

Status Dataset::create_from_function(Memory& memory, const Readers& readers, bool may_replicate,
                                     const DatasetMaker& maker, const DatasetOptions& options,
                                     Ref<Dataset>* out) {
  DIST_TRY(check_function_options(options, may_replicate));
  const int32_t num_replicas = readers.num_replicas;
  const int32_t pipelines = options.replication_mode == DIST_INPUT_PER_REPLICA ? num_replicas : 1;
  std::pmr::vector<Ref<Dataset>> made(static_cast<std::size_t>(pipelines), &memory);
  for (int32_t id = 0; id < pipelines; ++id) {
    Ref<Dataset>& one = made[static_cast<std::size_t>(id)];
    InputContext context{pipelines, id, num_replicas};
    if (readers.workers) {
      context = {readers.workers->num_workers(), readers.me, static_cast<int32_t>(readers.workers->all())};
    }
    DIST_TRY(maker.make(context, &one));
    if (one->is_of_function()) {
      return invalid_argument(
          "the function returned a dataset that is itself created from a function. Create it from tensors, a "
          "callback or files.");
    }
  }
  Ref<Dataset> dataset = make_counted<Dataset>(memory, readers, options);
  dataset->of_function_ = true;
  DIST_TRY(dataset->set_source(
      Ref<Source>::adopt(make_counted<FunctionSource>(memory, std::span<const Ref<Dataset>>(made),
                                                      num_replicas, static_cast<bool>(readers.steps))
                             .take())));
  *out = std::move(dataset);
  return kOk;
}

void Dataset::close(Dataset* dataset) noexcept {
  if (dataset->forked()) return;
  dataset->handle_.close();
  dataset->release();
}

Status Dataset::check_process() const noexcept {
  if (!forked()) return kOk;
  return failed_precondition(
      "this is a forked child of the dataset's process, and threads do not survive fork(). Create a strategy "
      "and a dataset in the child.");
}

bool Dataset::has_static_shapes() const noexcept {
  if (of_function_) return static_cast<const FunctionSource&>(*source_).has_static_shapes();
  if (options_.static_shapes != 0) return options_.static_shapes > 0;
  if (sizes_) return false;
  return options_.global_batch_size != 0 ? options_.drop_remainder != 0 : of_rows_;
}

Status Dataset::make_pass_for_one(Ref<Pass>* out) {
  // The function that created the dataset has already taken the input pipeline into account.
  DatasetOptions options = options_;
  if (of_strategys_workers_) {
    options.num_workers = 0;
    options.worker_index = 0;
    options.layout = {};
  }
  Division division;
  DIST_TRY(divide(options, 1, sizes_, source_->facts(), &division));
  return source_->make_pass(recipe(division), out);
}

Status Dataset::make_empty(ValueRef* out) {
  Slice model;
  bool fixed = false;
  DIST_TRY(source_->model(&model.element, &fixed));
  const auto replicas = static_cast<std::size_t>(num_replicas());
  if (!of_function_ && division_.cut != Division::Cut::kWhole) {
    const std::pmr::vector<Part> none(replicas, &memory());
    return division_.batch == 0 ? split_elements(memory(), {&model, 1}, none, out)
                                : stack_elements(memory(), {&model, 1}, none, out);
  }
  ValueRef empty;
  DIST_TRY(empty_like(memory(), *model.element, &empty));
  if (!empty) return kOk;
  const std::pmr::vector<Value*> all(replicas, empty.get(), &memory());
  return join_components(memory(), all, out);
}

Status Dataset::make_pass_of(int32_t worker, Source& source, Ref<Pass>* out) {
  DatasetOptions options = options_;
  options.worker_index = worker;
  const int64_t replicas = options.layout ? options.layout->replicas(worker) : num_replicas();
  Division division;
  DIST_TRY(divide(options, replicas, sizes_, source.facts(), &division));
  return source.make_pass(recipe(division), out);
}

void Dataset::continue_after(uint64_t number) noexcept {
  uint64_t next = passes_.load(std::memory_order_relaxed);
  while (next <= number && !passes_.compare_exchange_weak(next, number + 1, std::memory_order_relaxed)) {
  }
}

}  // namespace dist
