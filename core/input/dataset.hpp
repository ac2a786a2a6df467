// SPDX-License-Identifier: Apache-2.0
// Dataset: a source, and the rules by which its elements become batches. Each iterator makes one pass over it
// (core/input/iterator.hpp).
//
// Invariant: a dataset does not change after creation, except for the pass counter and the prefetch
// measurements. It can outlive its strategy.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/base/live_handles.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/affinity.hpp"
#include "core/base/os/fork.hpp"
#include "core/base/status.hpp"
#include "core/input/ahead_choice.hpp"
#include "core/input/element_source.hpp"
#include "core/input/source.hpp"
#include "core/input/steps.hpp"

namespace dist {

class AheadArena;

// Describes the input pipeline for which a function creates a dataset.
struct InputContext {
  int32_t num_input_pipelines = 1;
  int32_t input_pipeline_id = 0;
  int32_t num_replicas_in_sync = 1;
};

// The part of a global batch for one replica.
Status per_replica_batch_size(const InputContext& context, int64_t global_batch_size, int64_t* out) noexcept;

class Dataset;

// A host function that creates the dataset of an input pipeline.
class DatasetMaker {
 public:
  // The caller owns *out_dataset and must release it.
  using Fn = dist_status (*)(const InputContext& context, dist_dataset** out_dataset, void* user_data);

  DatasetMaker(Fn fn, void* user_data) noexcept : fn_(fn), user_data_(user_data) {}
  // On failure, uses the function's message if it has recorded one.
  Status make(const InputContext& context, Ref<Dataset>* out) const;

 private:
  const Fn fn_;
  void* const user_data_;
};

// The replicas for which a dataset makes batches: those of this worker, and the position of this worker among
// the others.
struct Readers {
  // NOLINTNEXTLINE(google-explicit-constructor): usually the number of replicas is all that is needed
  Readers(int32_t replicas) noexcept : num_replicas(replicas) {}

  int32_t num_replicas;
  int32_t me = 0;
  Ref<WorkerLayout> workers;  // NULL if there is only one worker
  Ref<Steps> steps;           // NULL if there is only one worker
  bool no_helpers = false;    // do not prefetch unless the dataset's options ask for it
  // For prefetching threads: whether the host has selected CPUs, and which ones.
  bool on_cpus = false;
  CpuSet cpus;
};

class Dataset final : public Counted {
 public:
  static Status create_from_tensors(Memory& memory, const Readers& readers,
                                    std::span<const dist_tensor> tensors, const DatasetOptions& options,
                                    Ref<Dataset>* out);
  // If it fails, `release` is not called.
  static Status create_from_callback(Memory& memory, const Readers& readers, dist_strategy* strategy,
                                     HostSource::Fn fn, void* user_data, HostSource::Release release,
                                     const DatasetOptions& options, Ref<Dataset>* out);
  static Status create_from_files(Memory& memory, const Readers& readers, std::span<const char* const> names,
                                  dist_strategy* strategy, HostSource::FileFn fn, void* user_data,
                                  HostSource::Release release, const DatasetOptions& options,
                                  Ref<Dataset>* out);
  // `may_replicate`: the strategy allows one pipeline per replica.
  static Status create_from_function(Memory& memory, const Readers& readers, bool may_replicate,
                                     const DatasetMaker& maker, const DatasetOptions& options,
                                     Ref<Dataset>* out);
  // Converts a handle. Fails with INVALID_ARGUMENT if it is NULL or not a dataset. `call` is the host's
  // function, for messages.
  static Status of(dist_dataset* handle, const char* call, Dataset** out) noexcept;
  // Releases the owner's reference; iterators have references of their own. Has no effect in a forked child,
  // because a thread that does not exist there may have held a lock.
  static void close(Dataset* dataset) noexcept;

  Dataset(Memory& memory, const Readers& readers, const DatasetOptions& options);
  ~Dataset() override;

  // Fails with FAILED_PRECONDITION in a child of the process that created the dataset.
  Status check_process() const noexcept;
  bool forked() const noexcept { return fork_guard_.forked(); }

  const DatasetOptions& options() const noexcept { return options_; }
  const Division& division() const noexcept { return division_; }
  Source& source() const noexcept { return *source_; }
  // The number of replicas in this worker.
  int32_t num_replicas() const noexcept { return readers_.num_replicas; }
  // The vote with other workers on each step; NULL if there is only one worker.
  Steps* steps() const noexcept { return readers_.steps.get(); }
  bool is_of_function() const noexcept { return of_function_; }
  // Whether all batches have the same shape, so that none can be empty.
  bool has_static_shapes() const noexcept;

  Status make_pass(Ref<Pass>* out) { return source_->make_pass(recipe(division_), out); }
  // A pass whose batches are not split, as for a single replica.
  Status make_pass_for_one(Ref<Pass>* out);
  // Makes a batch without examples, for a worker whose source has ended. *out stays NULL if a part of the
  // batches cannot be empty.
  Status make_empty(ValueRef* out);
  // Makes the pass of another worker with the same dataset, over a different source.
  Status make_pass_of(int32_t worker, Source& source, Ref<Pass>* out);

  // For iterators: count_pass() takes the number of the next pass, and continue_after() makes the next pass
  // follow `number`.
  uint64_t count_pass() noexcept { return passes_.fetch_add(1, std::memory_order_relaxed); }
  void continue_after(uint64_t number) noexcept;
  // The maximum number of prefetched batches.
  int64_t prefetch() const noexcept { return prefetch_; }
  // Whether measurements decide on prefetching. ahead_choice() and keep() access those of
  // earlier passes.
  bool measures_ahead() const noexcept { return prefetch_ > 0 && options_.prefetch == 0; }
  AheadChoice ahead_choice() const noexcept {
    const std::lock_guard lock(choice_mutex_);
    return choice_;
  }
  void keep(const AheadChoice& choice) noexcept {
    const std::lock_guard lock(choice_mutex_);
    choice_ = choice;
  }
  // For prefetching.
  AheadArena& arena() noexcept { return *arena_; }
  // The CPUs for its threads; NULL: any.
  const CpuSet* cpus() const noexcept { return readers_.on_cpus ? &readers_.cpus : nullptr; }

  // The handle that the host has, until the caller of a function takes the dataset over.
  LiveHandle& handle() noexcept { return handle_; }

 private:
  static Status create_from_host(Memory& memory, const Readers& readers, Ref<HostSource> host,
                                 const DatasetOptions& options, Ref<Dataset>* out);
  Status set_source(Ref<Source> source);
  Recipe recipe(const Division& division) const noexcept {
    return {division, options_.shuffle != 0, options_.seed};
  }

  const Readers readers_;
  bool of_strategys_workers_;  // the workers are the strategy's, not others given in the options
  DatasetOptions options_;
  Ref<Sizes> sizes_;  // copy of options_.batch_sizes
  Division division_;
  int64_t prefetch_;  // maximum number of prefetched batches
  mutable std::mutex choice_mutex_;
  AheadChoice choice_;  // protected by choice_mutex_
  bool of_function_ = false;
  bool of_rows_ = false;
  ForkGuard fork_guard_;
  Ref<Source> source_;
  std::atomic<uint64_t> passes_{0};
  const Ref<AheadArena> arena_;
  LiveHandle handle_;
};

}  // namespace dist
