// SPDX-License-Identifier: Apache-2.0
// Dataset: a source, and how its elements become batches. Iterators pass over it (core/input/iterator.hpp).
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/os/affinity.hpp"
#include "core/base/os/fork.hpp"
#include "core/base/status.hpp"
#include "core/input/ahead_choice.hpp"
#include "core/input/element_source.hpp"
#include "core/input/source.hpp"
#include "core/input/steps.hpp"

namespace dist {

// The input pipeline that a function makes a dataset for.
struct InputContext {
  int32_t num_input_pipelines = 1;
  int32_t input_pipeline_id = 0;
  int32_t num_replicas_in_sync = 1;
};

// The part of a global batch that one replica gets.
Status per_replica_batch_size(const InputContext& context, int64_t global_batch_size, int64_t* out) noexcept;

class Dataset;

// A function of the host's that makes the dataset of an input pipeline.
class DatasetMaker {
 public:
  // What it makes comes with a reference.
  using Fn = dist_status (*)(const InputContext& context, dist_dataset** out_dataset, void* user_data);

  DatasetMaker(Fn fn, void* user_data) noexcept : fn_(fn), user_data_(user_data) {}
  // A failure has the message of the function, where it gave one.
  Status make(const InputContext& context, Ref<Dataset>* out) const;

 private:
  const Fn fn_;
  void* const user_data_;
};

// For which replicas a dataset makes batches: those of this worker, and where there are others, which it is of them.
struct Readers {
  // NOLINTNEXTLINE(google-explicit-constructor): a number of replicas is all of it mostly
  Readers(int32_t replicas) noexcept : num_replicas(replicas) {}

  int32_t num_replicas;
  int32_t me = 0;
  Ref<WorkerLayout> workers;  // NULL: there is one alone
  Ref<Steps> steps;           // likewise
  bool no_helpers = false;    // no thread makes batches ahead, unless the dataset's options ask for it
  // For threads that make batches ahead: whether the host has chosen CPUs, and which.
  bool on_cpus = false;
  CpuSet cpus;
};

class Dataset final : public Counted {
 public:
  static Status create_from_tensors(Memory& memory, const Readers& readers,
                                    std::span<const dist_tensor> tensors, const DatasetOptions& options,
                                    Ref<Dataset>* out);
  // Where it fails, `release` is not called.
  static Status create_from_callback(Memory& memory, const Readers& readers, HostSource::Fn fn,
                                     void* user_data, HostSource::Release release,
                                     const DatasetOptions& options, Ref<Dataset>* out);
  static Status create_from_files(Memory& memory, const Readers& readers, std::span<const char* const> names,
                                  HostSource::FileFn fn, void* user_data, HostSource::Release release,
                                  const DatasetOptions& options, Ref<Dataset>* out);
  // `may_replicate`: the strategy can have a pipeline for each replica.
  static Status create_from_function(Memory& memory, const Readers& readers, bool may_replicate,
                                     const DatasetMaker& maker, const DatasetOptions& options,
                                     Ref<Dataset>* out);
  // Of a handle, which may be another object's, or NULL: INVALID_ARGUMENT. `call` is the function's name in
  // messages.
  static Status of(dist_dataset* handle, const char* call, Dataset** out) noexcept;
  // Releases the owner's reference; iterators have their own. In a forked child it does nothing: a thread
  // that is gone may have held a lock.
  static void close(Dataset* dataset) noexcept;

  Dataset(Memory& memory, const Readers& readers, const DatasetOptions& options);

  // FAILED_PRECONDITION in a child of the process that made the dataset.
  Status check_process() const noexcept;
  bool forked() const noexcept { return fork_guard_.forked(); }

  const DatasetOptions& options() const noexcept { return options_; }
  const Division& division() const noexcept { return division_; }
  Source& source() const noexcept { return *source_; }
  // Of this worker.
  int32_t num_replicas() const noexcept { return readers_.num_replicas; }
  // With whom passes go on step by step; NULL: nobody.
  Steps* steps() const noexcept { return readers_.steps.get(); }
  bool is_of_function() const noexcept { return of_function_; }
  // Whether all batches have one shape, so that none can be empty.
  bool has_static_shapes() const noexcept;

  Status make_pass(Ref<Pass>* out) { return source_->make_pass(recipe(division_), out); }
  // A pass whose batches are not split, as for one replica.
  Status make_pass_for_one(Ref<Pass>* out);
  // A batch without examples, as a worker gets one that is out of data. *out stays NULL where batches have a part that
  // has no examples.
  Status make_empty(ValueRef* out);
  // A pass of another worker of the same dataset, over another source.
  Status make_pass_of(int32_t worker, Source& source, Ref<Pass>* out);

  // For iterators: the number of the next pass, and that the next one comes after `number`.
  uint64_t count_pass() noexcept { return passes_.fetch_add(1, std::memory_order_relaxed); }
  void continue_after(uint64_t number) noexcept;
  // How many batches are made ahead at most.
  int64_t prefetch() const noexcept { return prefetch_; }
  // Whether they are only where that is faster, and what earlier passes have found out about that.
  bool measures_ahead() const noexcept { return prefetch_ > 0 && options_.prefetch == 0; }
  AheadChoice ahead_choice() const noexcept {
    const std::lock_guard lock(choice_mutex_);
    return choice_;
  }
  void keep(const AheadChoice& choice) noexcept {
    const std::lock_guard lock(choice_mutex_);
    choice_ = choice;
  }
  // The arena in which batches are made ahead; it starts no thread before it is used.
  tbb::task_arena& arena() noexcept { return arena_; }
  // Where its threads may be; NULL: anywhere.
  const CpuSet* cpus() const noexcept { return readers_.on_cpus ? &readers_.cpus : nullptr; }

 private:
  static Status create_from_host(Memory& memory, const Readers& readers, Ref<HostSource> host,
                                 const DatasetOptions& options, Ref<Dataset>* out);
  Status set_source(Ref<Source> source);
  Recipe recipe(const Division& division) const noexcept {
    return {division, options_.shuffle != 0, options_.seed};
  }

  const Readers readers_;
  bool of_strategys_workers_;  // and of no others that the options gave
  DatasetOptions options_;
  Ref<Sizes> sizes_;  // options_.batch_sizes
  Division division_;
  int64_t prefetch_;  // batches
  mutable std::mutex choice_mutex_;
  AheadChoice choice_;  // under it
  bool of_function_ = false;
  bool of_rows_ = false;
  ForkGuard fork_guard_;
  Ref<Source> source_;
  std::atomic<uint64_t> passes_{0};
  // Of oneTBB's own width: asked for more workers than the machine has, it writes a warning to stderr.
  tbb::task_arena arena_;
};

}  // namespace dist
