// SPDX-License-Identifier: Apache-2.0
// AcrossWorkers: how an operation of the cross-replica context obtains the components of other workers'
// replicas. Every worker makes the same calls in the same order, each from one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/replicas.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/value/value.hpp"

namespace dist {

class AcrossWorkers {
 public:
  virtual int num_workers() const noexcept = 0;
  virtual int me() const noexcept = 0;
  // Returns -1 if no worker has the replica.
  virtual int worker_of(GlobalReplica replica) const noexcept = 0;
  // outs[t] = the fold of in[k * n + t] over all contributions k, first those of worker 0, then those of
  // worker 1, and so on; n is the number of outs. Every worker must pass at least one contribution. MEAN
  // divides by the total number of contributions. `numerics` is one of DIST_NUMERICS_....
  virtual Status reduce(dist_reduce_op op, dist_numerics numerics, std::span<const dist_tensor> in,
                        std::span<dist_tensor> outs) = 0;
  // Concatenates the workers' tensors along the axis, in which their sizes may differ.
  virtual Status join(const dist_tensor& mine, int32_t axis, ValueRef* out) = 0;
  // Every worker receives worker 0's tensor. All must pass the same tag, which reports show, and the same
  // detail.
  virtual Status broadcast(dist_tensor& tensor, const char* tag, uint64_t detail) = 0;
  // Replaces each word by its maximum over all workers. The same rules apply to tag and detail.
  virtual Status largest(std::span<int64_t> words, const char* tag, uint64_t detail) = 0;

 protected:
  ~AcrossWorkers() = default;
};

}  // namespace dist
