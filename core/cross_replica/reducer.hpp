// SPDX-License-Identifier: Apache-2.0
// Reducer: walks over nests of values, adds a fold for each leaf, and runs all folds at the end. The rules
// describe how the four kinds of reductions differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/cross_replica/destination.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace dist {

// TensorFlow's rules. The host's operator is the accumulate function of cross_device.
enum class ReduceRules {
  kReduce,    // to one tensor, optionally over axes of each component; ignores the host's operator
  kReduceTo,  // a value that is not distributed has a mean but no sum; ignores the host's operator
  kBatch,  // uses the host's operator; on central storage a value that is not distributed is one contribution
  kAlone   // uses the host's operator; a value that is not distributed is one contribution
};

class Reducer {
 public:
  Reducer(const CrossReplica& context, ReduceRules rules, dist_reduce_op op);

  // For kReduce: the axes that are reduced as well.
  void set_axes(std::span<const int32_t> axes) noexcept { axes_ = axes; }
  // For the other rules: the destination of the values that are added next.
  Status set_destination(const Destination& destination) noexcept;

  // *out is complete after run() has returned.
  Status add(Value& value, const Path& path, ValueRef* out);
  Status run();

 private:
  int32_t num_local() const noexcept { return context_.replicas.local(); }
  bool to_one_tensor() const noexcept { return rules_ == ReduceRules::kReduce; }

  Status add_items(Value& value, const Path& path, ValueRef* out);
  Status no_axes_of(const Value& nest, const Path& path) const noexcept;
  Status check_components(const Value& value, const Path& path) const noexcept;
  Status check_copies(const Variable& variable, const Path& path) const noexcept;
  Status add_components(Value& value, const Path& path, ValueRef* out);
  // For components that check_alike() accepts.
  Status add_column(std::span<Value* const> components, const Path& path, ValueRef* out);
  Status add_slices(std::span<Value* const> components, const Path& path, ValueRef* out);
  Status add_copies(Value& value, const Path& path, ValueRef* out);
  Status add_of_workers(Value& value, const Path& path, ValueRef* out);
  Status not_reducible(const Value& value, const Path& path, std::size_t replica) const noexcept;
  Status add_equal(Value& value, const Path& path, ValueRef* out);
  Status add_tensors(std::span<Value* const> values, const Path& path, ValueRef* out);
  Status add_fold(std::span<const dist_tensor> tensors, const Path& path, ValueRef* out);
  Status check_leaf(std::span<const dist_tensor> tensors, const Path& path,
                    uint32_t* out_axes) const noexcept;
  Status accumulate(const CrossDevice& own, std::span<const dist_tensor> tensors, ValueRef* out);
  // Places the result at the destination.
  Status put_there(ValueRef result, ValueRef* out);

  const CrossReplica& context_;
  const ReduceRules rules_;
  const dist_reduce_op op_;
  FoldPlan plan_;
  std::span<const int32_t> axes_;
  Place place_;
  // Components of the leaf that is being added.
  std::pmr::vector<Value*> components_;
  std::pmr::vector<dist_tensor> tensors_;
};

}  // namespace dist
