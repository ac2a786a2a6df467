// SPDX-License-Identifier: Apache-2.0
#include "core/input/division.hpp"

#include <algorithm>

namespace dist {
namespace {

constexpr int32_t kMostWorkers = 65536;

Status check_flag(const char* name, int32_t flag, int32_t least = 0) noexcept {
  if (flag >= least && flag <= 1) return kOk;
  return invalid_argument("`%s` is %d, but must be %s", name, flag, least == 0 ? "0 or 1" : "-1, 0 or 1");
}

Status check_numbers(const DatasetOptions& options) noexcept {
  DIST_TRY(check_flag("drop_remainder", options.drop_remainder));
  DIST_TRY(check_flag("shuffle", options.shuffle));
  DIST_TRY(check_flag("worker_batches", options.worker_batches));
  DIST_TRY(check_flag("shard_hint", options.shard_hint));
  DIST_TRY(check_flag("static_shapes", options.static_shapes, -1));
  DIST_TRY(check_flag("as_one_process", options.as_one_process));
  if (options.replication_mode != DIST_INPUT_PER_WORKER && options.replication_mode != DIST_INPUT_PER_REPLICA)
    return invalid_argument("`replication_mode` is `%d`; use one of `DIST_INPUT_...`",
                            options.replication_mode);
  if (options.global_batch_size < 0) {
    return invalid_argument(
        "`global_batch_size` is %lld, but must be 1 or more, or 0 if the elements are already batches",
        static_cast<long long>(options.global_batch_size));
  }
  if (options.interleave < 0) {
    return invalid_argument("`interleave` is %d, but must be the number of files to read in turn",
                            options.interleave);
  }
  return kOk;
}

Status check_workers(const DatasetOptions& options) noexcept {
  if (options.shard_policy < DIST_SHARD_AUTO || options.shard_policy > DIST_SHARD_OFF) {
    return invalid_argument("`shard_policy` is `%d`; use one of `DIST_SHARD_...`", options.shard_policy);
  }
  if (options.num_workers < 0 || options.num_workers > kMostWorkers) {
    return invalid_argument("`num_workers` is %d, but must be 1 to %d", options.num_workers, kMostWorkers);
  }
  const int32_t workers = std::max(options.num_workers, 1);
  const bool known = options.worker_index < workers || options.shard_policy == DIST_SHARD_OFF;
  if (options.worker_index < 0 || !known) {
    return invalid_argument("`worker_index` is %d, but for %d worker%s it must be 0 to %d",
                            options.worker_index, workers, workers == 1 ? "" : "s", workers - 1);
  }
  return kOk;
}

Status check_sizes(const DatasetOptions& options) noexcept {
  for (std::size_t i = 0; i < options.batch_sizes.size(); ++i) {
    if (options.batch_sizes[i] >= 0) continue;
    return invalid_argument("`batch_sizes[%zu]` is %lld, but must be 0 or more", i,
                            static_cast<long long>(options.batch_sizes[i]));
  }
  const bool none = std::all_of(options.batch_sizes.begin(), options.batch_sizes.end(),
                                [](int64_t size) { return size == 0; });
  if (none && !options.batch_sizes.empty()) {
    return invalid_argument("`batch_sizes` are all 0: the source would never end");
  }
  return kOk;
}

Status check_files(const SourceFacts& source, int64_t workers) noexcept {
  if (!source.has_files) {
    return fail(DIST_NOT_FOUND,
                "`shard_policy` is `DIST_SHARD_FILE`, but the source has no files. Create it with "
                "`dist_dataset_create_from_files()`, or use `DIST_SHARD_DATA`.");
  }
  if (source.num_files >= static_cast<std::size_t>(workers)) return kOk;
  return invalid_argument(
      "the dataset has %zu file(s), which is too few for %lld workers, because each worker gets whole files. "
      "Use `DIST_SHARD_DATA`, which distributes elements, or `DIST_SHARD_OFF`.",
      source.num_files, static_cast<long long>(workers));
}

// The number of replicas of the workers before this one, and of all workers. Without a layout, all workers
// have the same number of replicas.
struct Replicas {
  int64_t first;
  int64_t all;
};
Replicas replicas_of(const DatasetOptions& options, int64_t own) noexcept {
  if (options.layout) return {options.layout->first(options.worker_index), options.layout->all()};
  return {options.worker_index * own, options.num_workers * own};
}

// The replicas of all workers get what the replicas of a single process would get. Therefore every worker
// reads everything.
Status divide_as_one_process(const DatasetOptions& options, Division* out) noexcept {
  if (options.worker_batches != 0 ||
      (options.shard_policy != DIST_SHARD_AUTO && options.shard_policy != DIST_SHARD_DATA)) {
    return invalid_argument(
        "`as_one_process` is set, so `shard_policy` must be `DIST_SHARD_AUTO` or `DIST_SHARD_DATA`, and "
        "`worker_batches` must be 0");
  }
  const Replicas replicas = replicas_of(options, out->replicas);
  out->pieces = replicas.all;
  out->step_pieces = replicas.all;
  out->first_piece = replicas.first;
  return kOk;
}

// With several workers: determines this worker's part of the source, and whether batches are split over all
// workers.
Status divide_between_workers(const DatasetOptions& options, int32_t policy, const SourceFacts& source,
                              Division* out) noexcept {
  if (options.as_one_process != 0) return divide_as_one_process(options, out);
  const Turn own{options.worker_index, options.num_workers};
  const Replicas replicas = replicas_of(options, out->replicas);
  const bool even = !options.layout || options.layout->is_even();
  const bool cut_for_all = options.worker_batches == 0 && !out->sizes;
  if (policy == DIST_SHARD_DATA) {
    if (out->sizes) {
      return invalid_argument(
          "`batch_sizes` cannot be combined with `DIST_SHARD_DATA` of several workers. Use the sizes of "
          "`dist_batch_sizes_for_worker()` and a policy with which each worker reads a source of its own.");
    }
    if (cut_for_all) {
      out->pieces = replicas.all;
      out->first_piece = own.first;
      out->piece_step = own.step;
      if (!even) out->layout = options.layout;
      out->worker = own.first;
    } else {
      out->batches = own;
    }
    return kOk;
  }
  if (policy == DIST_SHARD_FILE) {
    DIST_TRY(check_files(source, own.step));
    out->files = own;
  } else if (policy == DIST_SHARD_HINT && options.shard_hint != 0) {
    out->elements = own;
  }
  if (cut_for_all) {
    out->cut = Division::Cut::kSizes;
    out->pieces = replicas.all;
    out->size_offset = replicas.first;
    // If workers have different numbers of replicas, the offset grows by one in each step, so that every
    // worker has received the same amount after as many steps as there are replicas.
    if (!even) out->size_turn = 1;
  }
  return kOk;
}

}  // namespace

int64_t Division::size(int64_t index, int64_t batch_examples) const noexcept {
  if (sizes) return sizes->all[static_cast<std::size_t>(index) % sizes->all.size()];
  const int64_t turned = index / step_pieces % pieces * size_turn + index % step_pieces;
  return piece_size(batch != 0 ? batch : batch_examples, pieces, size_offset, turned);
}

Status divide(const DatasetOptions& options, int64_t replicas, const Ref<Sizes>& sizes,
              const SourceFacts& source, Division* out) noexcept {
  DIST_TRY(check_numbers(options));
  DIST_TRY(check_workers(options));
  DIST_TRY(check_sizes(options));
  Division made;
  made.replicas = replicas;
  made.batch = options.global_batch_size;
  made.drop_remainder = options.drop_remainder != 0;
  made.pieces = replicas;
  made.step_pieces = replicas;
  made.size_turn = replicas;
  made.sizes = sizes;
  if (sizes) made.cut = Division::Cut::kSizes;
  int32_t policy = options.shard_policy;
  if (policy == DIST_SHARD_AUTO) policy = source.has_files ? DIST_SHARD_FILE : DIST_SHARD_DATA;
  if (options.num_workers > 1) DIST_TRY(divide_between_workers(options, policy, source, &made));
  if (options.shard_hint != 0 && options.shard_policy != DIST_SHARD_HINT) {
    return failed_precondition(
        "`shard_hint` requests sharding by element, which needs `shard_policy` `DIST_SHARD_HINT`");
  }
  if (made.cut == Division::Cut::kEven && made.pieces == 1 && made.batch == 0)
    made.cut = Division::Cut::kWhole;
  *out = std::move(made);
  return kOk;
}

Status batch_sizes_for_worker(int64_t batch, int64_t num_workers, int64_t replicas, int64_t worker,
                              std::span<int64_t> out) noexcept {
  if (batch < 0)
    return invalid_argument("the global batch size is %lld, but must be 0 or more",
                            static_cast<long long>(batch));
  if (num_workers < 1 || num_workers > kMostWorkers || replicas < 1) {
    return invalid_argument(
        "there are %lld workers of %lld replicas, but there must be 1 to %d workers with at least one "
        "replica each",
        static_cast<long long>(num_workers), static_cast<long long>(replicas), kMostWorkers);
  }
  if (worker < 0 || worker >= num_workers) {
    return invalid_argument("`worker` is %lld, but the %lld workers are 0 to %lld",
                            static_cast<long long>(worker), static_cast<long long>(num_workers),
                            static_cast<long long>(num_workers - 1));
  }
  const int64_t pieces = num_workers * replicas;
  if (out.size() != static_cast<std::size_t>(pieces)) {
    return invalid_argument("there is room for %zu sizes, but %lld workers of %lld replicas need %lld",
                            out.size(), static_cast<long long>(num_workers), static_cast<long long>(replicas),
                            static_cast<long long>(pieces));
  }
  for (int64_t i = 0; i < pieces; ++i) {
    out[static_cast<std::size_t>(i)] = piece_size(batch, pieces, worker * replicas, i);
  }
  return kOk;
}

}  // namespace dist
