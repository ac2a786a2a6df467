// SPDX-License-Identifier: Apache-2.0
#include "core/input/dataset.hpp"

#include <utility>

namespace dist {
namespace {

Status check_flag(const char* name, int32_t flag) noexcept {
  if (flag == 0 || flag == 1) return kOk;
  return invalid_argument("%s is %d; it is 0 or 1", name, flag);
}

Status check_options(const DatasetOptions& options) noexcept {
  DIST_TRY(check_flag("drop_remainder", options.drop_remainder));
  DIST_TRY(check_flag("shuffle", options.shuffle));
  if (options.global_batch_size < 0) {
    return invalid_argument(
        "global_batch_size is %lld; it is 1 or more, or 0 where elements are batches already",
        static_cast<long long>(options.global_batch_size));
  }
  return kOk;
}

}  // namespace

Dataset::Dataset(Memory& memory, int32_t num_replicas, const DatasetOptions& options) noexcept
    : Counted(memory),
      options_{num_replicas, options.global_batch_size, options.drop_remainder != 0, options.shuffle != 0,
               options.seed},
      prefetch_(options.prefetch < 0    ? 0
                : options.prefetch == 0 ? 1
                                        : options.prefetch) {}

Status Dataset::create_from_tensors(Memory& memory, int32_t num_replicas,
                                    std::span<const dist_tensor> tensors, const DatasetOptions& options,
                                    Ref<Dataset>* out) {
  DIST_TRY(check_options(options));
  Ref<RowSource> source;
  DIST_TRY(RowSource::create(memory, tensors, options.global_batch_size, &source));
  Ref<Dataset> dataset = make_counted<Dataset>(memory, num_replicas, options);
  dataset->source_ = Ref<Source>::adopt(source.take());
  *out = std::move(dataset);
  return kOk;
}

Status Dataset::create_from_callback(Memory& memory, int32_t num_replicas, CallbackSource::Fn fn,
                                     void* user_data, CallbackSource::Release release,
                                     const DatasetOptions& options, Ref<Dataset>* out) {
  DIST_TRY(check_options(options));
  if (options.shuffle != 0) {
    return invalid_argument(
        "shuffle is 1, but a source that is a callback has an order of its own: shuffle there");
  }
  Ref<Dataset> dataset = make_counted<Dataset>(memory, num_replicas, options);
  // Last: the source calls `release` when it ends, and nothing can fail any more.
  dataset->source_ = Ref<Source>::adopt(make_counted<CallbackSource>(memory, fn, user_data, release).take());
  *out = std::move(dataset);
  return kOk;
}

void Dataset::close(Dataset* dataset) noexcept {
  if (!dataset->forked()) dataset->release();
}

Status Dataset::check_process() const noexcept {
  if (!forked()) return kOk;
  return failed_precondition(
      "this process was forked from the one that made the dataset, whose threads it has not: "
      "make a strategy and a dataset here");
}

}  // namespace dist
