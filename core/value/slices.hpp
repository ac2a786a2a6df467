// SPDX-License-Identifier: Apache-2.0
// Slices: row updates of a variable by indexed slices. They are validated once and then applied to copies.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// OK where variables of this kind can be scattered to, as TensorFlow has it: not those synchronized on
// reading; a mirrored variable that reduces what replicas give adds and multiplies only.
Status check_scatter(const Variable& variable, int32_t how) noexcept;
// OK for a DIST_SCATTER_... that elements of this dtype can have.
Status check_scatter(const char* name, dist_dtype dtype, int32_t how) noexcept;

class Slices {
 public:
  // The rows of `value`: indexed slices; for DIST_SCATTER_BATCH_UPDATE also a list or tuple of values and
  // indices, which then may share leading dimensions with the variable. Checks dtype, shapes and every index.
  static Status of(const Variable& variable, int32_t how, Value& value, Slices* out) {
    return of(variable.name(), variable.first_copy(), how, value, out);
  }
  // The same for any tensor without gaps, which `name` is the name of in messages.
  static Status of(const char* name, const dist_tensor& target, int32_t how, Value& value, Slices* out);

  // The rows of a mean over `parts` contributions: each row is divided by `parts`. For floating-point dtypes.
  Status divide(int32_t parts);

  // Changes the variable's copy that `replica` has, row by row in the order given.
  void apply(int32_t how, Variable& variable, LocalReplica replica) const noexcept {
    apply(how, variable.component(replica));
  }
  void apply(int32_t how, const dist_tensor& target) const noexcept;

  const ValueRef& values() const noexcept { return values_; }
  const ValueRef& indices() const noexcept { return indices_; }
  // Rows of several, one after another.
  void become(ValueRef values, ValueRef indices) noexcept {
    values_ = std::move(values);
    indices_ = std::move(indices);
  }

 private:
  ValueRef values_;   // without gaps
  ValueRef indices_;  // without gaps
};

}  // namespace dist
