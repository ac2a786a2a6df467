// SPDX-License-Identifier: Apache-2.0
// Slices: row updates of a variable by indexed slices. They are validated once and then applied to copies.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Returns OK if variables of this kind support the operation. As in TensorFlow, sync-on-read variables
// support none, and a mirrored variable with an aggregation supports only adding and multiplying.
Status check_scatter(const Variable& variable, int32_t how) noexcept;
// Returns OK if elements of this dtype support the DIST_SCATTER_... operation.
Status check_scatter(const char* name, dist_dtype dtype, int32_t how) noexcept;

class Slices {
 public:
  // Returns the rows of `value`: indexed slices, or, for DIST_SCATTER_BATCH_UPDATE, also a list or tuple of
  // values and indices, which may share leading dimensions with the variable. Validates dtype, shapes and
  // every index.
  static Status of(const Variable& variable, int32_t how, Value& value, Slices* out) {
    return of(variable.name(), variable.first_copy(), how, value, out);
  }
  // The same for any dense tensor; `name` is its name for messages.
  static Status of(const char* name, const dist_tensor& target, int32_t how, Value& value, Slices* out);

  // Divides each row by `parts`, to obtain the mean of that many contributions. Only for floating-point
  // dtypes.
  Status divide(int32_t parts);

  // Changes the variable's copy that `replica` uses, row by row in the given order.
  void apply(int32_t how, Variable& variable, LocalReplica replica) const noexcept {
    apply(how, variable.component(replica));
  }
  void apply(int32_t how, const dist_tensor& target) const noexcept;

  const ValueRef& values() const noexcept { return values_; }
  const ValueRef& indices() const noexcept { return indices_; }
  // Replaces the rows by the concatenated rows of several slices.
  void become(ValueRef values, ValueRef indices) noexcept {
    values_ = std::move(values);
    indices_ = std::move(indices);
  }

 private:
  ValueRef values_;   // without gaps
  ValueRef indices_;  // without gaps
};

}  // namespace dist
