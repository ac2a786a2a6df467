// SPDX-License-Identifier: Apache-2.0
// Folds many tensors in this process's memory at once. All of them are cut into blocks, which the threads
// divide among themselves.
//
// Invariant: each element is folded independently of the others, so the cut does not affect the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/kernel/exact.hpp"
#include "core/kernel/reduce.hpp"
#include "core/value/value.hpp"

namespace dist {

// Returns OK for the operators that reduce values from outside: SUM and MEAN.
Status check_reduction(dist_reduce_op op) noexcept;
// Returns OK for a dtype that can be summed with these numerics.
Status check_numerics_of(dist_numerics numerics, dist_dtype dtype) noexcept;

class FoldPlan {
 public:
  // Waking a thread takes longer than a loop over fewer bytes. The sources of a block fit in the nearer
  // caches.
  static constexpr std::size_t kSerialBytes = std::size_t{256} << 10;
  static constexpr std::size_t kBlockBytes = std::size_t{64} << 10;

  // `workers` folds the tensors of the replicas of all workers; NULL: there are no other workers.
  explicit FoldPlan(Memory& memory, dist_numerics numerics = DIST_NUMERICS_ORDERED,
                    AcrossWorkers* workers = nullptr)
      : memory_(memory),
        numerics_(numerics),
        workers_(workers),
        folds_(&memory),
        sources_(&memory),
        kept_(&memory),
        shared_{SharedFolds(memory), SharedFolds(memory)} {}

  // Adds the fold to = sources[0] op sources[1] op ..., with the plan's numerics, divided by `divisor` for
  // MEAN. All tensors are row-major without gaps and must stay valid until run(). check_op() must accept `op`
  // and `dtype`.
  void add(dist_dtype dtype, dist_reduce_op op, double divisor, std::size_t count,
           std::span<const std::byte* const> sources, void* to);

  // Adds a fold of the replicas' tensors, which have equal shapes and dtypes and may be strided, into a new
  // tensor *out. run() sets its elements. All calls must pass the same `op`.
  Status add(dist_reduce_op op, std::span<const dist_tensor> sources, ValueRef* out);
  // The same for a tensor of which each worker has one.
  Status add_of_workers(dist_reduce_op op, const dist_tensor& source, ValueRef* out);

  // Keeps a value that contains a source until run() has ended.
  void keep(ValueRef value) { kept_.push_back(std::move(value)); }

  Status run(Arena& arena);

 private:
  struct Fold {
    ReduceKernel kernel;
    ExactKernel exact;  // if not NULL, used in place of the other kernel
    std::size_t count;
    std::size_t first_source;  // index in sources_
    std::size_t first_block;   // counted over all folds
    uint32_t num_sources;
    uint16_t element_bytes;
    uint16_t result_bytes;  // size of an element
    double divisor;
    std::byte* to;
  };

  // The folds over several workers, in the format of a collective. Some have a tensor for each replica,
  // others have one for each worker.
  struct SharedFolds {
    explicit SharedFolds(Memory& memory) : sources(&memory), results(&memory), contributions(0) {}
    std::pmr::vector<dist_tensor> sources;  // the sources of one fold after those of the other
    std::pmr::vector<dist_tensor> results;
    std::size_t contributions;  // per fold
  };

  // Adds a fold of the entries of sources_ from `first` on.
  void add_from(std::size_t first, dist_dtype dtype, dist_reduce_op op, double divisor, std::size_t count,
                void* to);
  void run_block(const Fold& fold, std::size_t block, bool stream) const noexcept;
  Status add_shared(SharedFolds& folds, dist_reduce_op op, std::span<const dist_tensor> sources,
                    ValueRef* out);
  Status run_shared();

  Memory& memory_;
  const dist_numerics numerics_;
  AcrossWorkers* const workers_;
  std::pmr::vector<Fold> folds_;
  std::pmr::vector<const std::byte*> sources_;
  std::pmr::vector<ValueRef> kept_;  // dense copies of strided sources, and values passed to keep()
  SharedFolds shared_[2];
  dist_reduce_op shared_op_{};
  std::size_t num_blocks_ = 0;
  std::size_t bytes_ = 0;         // size of all sources
  std::size_t result_bytes_ = 0;  // size of all results
};

}  // namespace dist
