// SPDX-License-Identifier: Apache-2.0
// Dataset: a source and how its elements become batches. Iterators make the passes (core/input/iterator.hpp).
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/os/fork.hpp"
#include "core/base/status.hpp"
#include "core/input/source.hpp"

namespace dist {

struct DatasetOptions {
  int32_t drop_remainder = 0;
  int64_t global_batch_size = 0;
  int32_t shuffle = 0;
  int32_t prefetch = 0;  // 0: one batch; < 0: none
  uint64_t seed = 0;
};

class Dataset final : public Counted {
 public:
  static Status create_from_tensors(Memory& memory, int32_t num_replicas,
                                    std::span<const dist_tensor> tensors, const DatasetOptions& options,
                                    Ref<Dataset>* out);
  // Where it fails, `release` is not called.
  static Status create_from_callback(Memory& memory, int32_t num_replicas, CallbackSource::Fn fn,
                                     void* user_data, CallbackSource::Release release,
                                     const DatasetOptions& options, Ref<Dataset>* out);
  // Ends the owner's reference; iterators have their own. In a forked child nothing is done: the threads that
  // might hold a lock are gone.
  static void close(Dataset* dataset) noexcept;

  Dataset(Memory& memory, int32_t num_replicas, const DatasetOptions& options) noexcept;

  // FAILED_PRECONDITION in a child of the process that made the dataset.
  Status check_process() const noexcept;
  bool forked() const noexcept { return fork_guard_.forked(); }

  // For iterators.
  Ref<Pass> make_pass() { return source_->make_pass(options_); }
  uint64_t count_pass() noexcept { return passes_.fetch_add(1, std::memory_order_relaxed); }
  int64_t prefetch() const noexcept { return prefetch_; }
  // Where batches are made ahead; nothing is started before it is used.
  tbb::task_arena& arena() noexcept { return arena_; }

 private:
  BatchOptions options_;
  int64_t prefetch_;  // batches
  ForkGuard fork_guard_;
  Ref<Source> source_;
  std::atomic<uint64_t> passes_{0};
  // Of oneTBB's own width: asked for more workers than the machine has, it writes a warning to stderr.
  tbb::task_arena arena_;
};

}  // namespace dist
