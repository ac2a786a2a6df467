// SPDX-License-Identifier: Apache-2.0
// Folds many tensors in this process's memory at once. All of them are cut into blocks, which the threads
// share.
//
// Invariant: each element is folded on its own, so the cut does not affect the bits.
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

// OK for what reduces values from outside: SUM and MEAN.
Status check_reduction(dist_reduce_op op) noexcept;
// OK for a dtype that can be added in these numerics.
Status check_numerics_of(int32_t numerics, dist_dtype dtype) noexcept;

class FoldPlan {
 public:
  // Up to this much a loop is not worth waking a thread for; a block's sources fit the nearer caches.
  static constexpr std::size_t kSerialBytes = std::size_t{256} << 10;
  static constexpr std::size_t kBlockBytes = std::size_t{64} << 10;

  // `workers`: what is added as the replicas' tensors is folded over theirs too; NULL: there are no others.
  explicit FoldPlan(Memory& memory, int32_t numerics = DIST_NUMERICS_ORDERED,
                    AcrossWorkers* workers = nullptr)
      : memory_(memory),
        numerics_(numerics),
        workers_(workers),
        folds_(&memory),
        sources_(&memory),
        kept_(&memory),
        shared_{SharedFolds(memory), SharedFolds(memory)} {}

  // to = sources[0] op sources[1] op ..., in the plan's numerics, / divisor for MEAN. All are row-major without
  // gaps and stay the caller's until run(). `op` and `dtype` are a pair that check_op() accepts.
  void add(dist_dtype dtype, dist_reduce_op op, double divisor, std::size_t count,
           std::span<const std::byte* const> sources, void* to);

  // As add(), of the replicas' tensors, of one shape and dtype, strided or not, into a tensor that it makes: *out,
  // which is set after run(). All that are added so have one `op`.
  Status add(dist_reduce_op op, std::span<const dist_tensor> sources, ValueRef* out);
  // The same, of one tensor that each worker has.
  Status add_of_workers(dist_reduce_op op, const dist_tensor& source, ValueRef* out);

  // Keeps the value that a source lies in until run() is over.
  void keep(ValueRef value) { kept_.push_back(std::move(value)); }

  Status run(Arena& arena);

 private:
  struct Fold {
    ReduceKernel kernel;
    ExactKernel exact;  // takes its place; NULL: none
    std::size_t count;
    std::size_t first_source;  // in sources_
    std::size_t first_block;   // counted over all folds
    uint32_t num_sources;
    uint16_t element_bytes;
    uint16_t result_bytes;  // of an element
    double divisor;
    std::byte* to;
  };

  // Over several workers: as a collective takes them. Those with a tensor of each replica, and those with one of each
  // worker.
  struct SharedFolds {
    explicit SharedFolds(Memory& memory) : sources(&memory), results(&memory), contributions(0) {}
    std::pmr::vector<dist_tensor> sources;  // one fold after the other
    std::pmr::vector<dist_tensor> results;
    std::size_t contributions;  // of each
  };

  // Of what lies in sources_ from `first` on.
  void add_from(std::size_t first, dist_dtype dtype, dist_reduce_op op, double divisor, std::size_t count,
                void* to);
  void run_block(const Fold& fold, std::size_t block, bool stream) const noexcept;
  Status add_shared(SharedFolds& folds, dist_reduce_op op, std::span<const dist_tensor> sources,
                    ValueRef* out);
  Status run_shared();

  Memory& memory_;
  const int32_t numerics_;
  AcrossWorkers* const workers_;
  std::pmr::vector<Fold> folds_;
  std::pmr::vector<const std::byte*> sources_;
  std::pmr::vector<ValueRef> kept_;  // copies of sources that have gaps, and what keep() was given
  SharedFolds shared_[2];
  dist_reduce_op shared_op_ = 0;
  std::size_t num_blocks_ = 0;
  std::size_t bytes_ = 0;         // of all sources
  std::size_t result_bytes_ = 0;  // of all results
};

}  // namespace dist
