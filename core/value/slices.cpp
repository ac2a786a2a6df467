// SPDX-License-Identifier: Apache-2.0
#include "core/value/slices.hpp"

#include "core/kernel/divide.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/in_place.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

const char* scatter_name(int32_t how) noexcept {
  switch (how) {
    case DIST_SCATTER_ADD: return "ADD";
    case DIST_SCATTER_SUB: return "SUB";
    case DIST_SCATTER_UPDATE: return "UPDATE";
    case DIST_SCATTER_MUL: return "MUL";
    case DIST_SCATTER_DIV: return "DIV";
    case DIST_SCATTER_MIN: return "MIN";
    case DIST_SCATTER_MAX: return "MAX";
    default: return "BATCH_UPDATE";
  }
}

InPlace in_place_of(int32_t how) noexcept {
  switch (how) {
    case DIST_SCATTER_ADD: return InPlace::kAdd;
    case DIST_SCATTER_SUB: return InPlace::kSubtract;
    case DIST_SCATTER_MUL: return InPlace::kMultiply;
    case DIST_SCATTER_DIV: return InPlace::kDivide;
    case DIST_SCATTER_MIN: return InPlace::kMin;
    case DIST_SCATTER_MAX: return InPlace::kMax;
    default: return InPlace::kReplace;
  }
}

Status check_dtype(int32_t how, dist_dtype dtype) noexcept {
  switch (how) {
    case DIST_SCATTER_ADD:
    case DIST_SCATTER_SUB:
    case DIST_SCATTER_DIV: return check_op(DIST_REDUCE_SUM, dtype);
    case DIST_SCATTER_MUL: return check_op(DIST_REDUCE_PROD, dtype);
    case DIST_SCATTER_MIN: return check_op(DIST_REDUCE_MIN, dtype);
    case DIST_SCATTER_MAX: return check_op(DIST_REDUCE_MAX, dtype);
    default: return kOk;
  }
}

int64_t index_at(const dist_tensor& indices, int64_t i) noexcept {
  return indices.dtype == DIST_I32 ? static_cast<const int32_t*>(indices.data)[i]
                                   : static_cast<const int64_t*>(indices.data)[i];
}

// Number of elements in the dimensions from `first` to `end`, exclusive.
int64_t product(const dist_tensor& tensor, int32_t first, int32_t end) noexcept {
  int64_t elements = 1;
  for (int32_t i = first; i < end; ++i) elements *= tensor.shape[i];
  return elements;
}

Status dense(Value& part, const char* what, ValueRef* out) {
  if (!part.has_tensor()) {
    return invalid_argument("%s of the slices is %s, but must be a tensor", what,
                            Value::kind_name(part.kind()));
  }
  TensorSize size;
  DIST_TRY(check_tensor(part.tensor(), what, &size));
  if (!size.contiguous || part.variable() != nullptr)
    return Value::copy_tensor(part.memory(), part.tensor(), out);
  *out = ValueRef::share(&part);
  return kOk;
}

// Finds the two parts of `value`: the new rows and their indices.
Status find_parts(const char* name, int32_t how, Value& value, ValueRef* values, ValueRef* indices) {
  const bool batch = how == DIST_SCATTER_BATCH_UPDATE && value.is_sequence() && value.items().size() == 2;
  if (!batch && value.kind() != DIST_VALUE_INDEXED_SLICES) {
    char is[160];
    Value::describe(&value, is, sizeof is);
    return invalid_argument(
        "variable \"%s\": `slices` is %s. Pass indexed slices (`dist_value_create_composite()`).", name, is);
  }
  DIST_TRY(dense(*value.items()[0], "values", values));
  DIST_TRY(dense(*value.items()[1], "indices", indices));
  if ((*indices)->tensor().dtype == DIST_I32 || (*indices)->tensor().dtype == DIST_I64) return kOk;
  return invalid_argument("variable \"%s\": the indices of the slices are %s, but must be i32 or i64", name,
                          dtype_name((*indices)->tensor().dtype));
}

// The values must have the shape [b..., k, rest], the indices [b..., k], and the variable [b..., n, rest].
// b is empty except in a batch update.
Status check_shapes(const char* name, const dist_tensor& copy, const dist_tensor& values,
                    const dist_tensor& indices) noexcept {
  bool fit =
      values.dtype == copy.dtype && indices.ndim > 0 && values.ndim == copy.ndim && indices.ndim <= copy.ndim;
  for (int32_t i = 0; fit && i < copy.ndim; ++i) {
    const bool batch = i < indices.ndim - 1;
    if (i < indices.ndim) fit = values.shape[i] == indices.shape[i];
    if (i != indices.ndim - 1) fit = fit && values.shape[i] == copy.shape[i];
    if (batch) fit = fit && indices.shape[i] == copy.shape[i];
  }
  if (fit) return kOk;
  char wanted[160];
  char is[160];
  char at[160];
  describe(copy, wanted, sizeof wanted);
  describe(values, is, sizeof is);
  describe(indices, at, sizeof at);
  return invalid_argument(
      "variable \"%s\" is %s, but the slices have values %s and indices %s. The values must be rows of the "
      "variable, one for each index, with its dtype.",
      name, wanted, is, at);
}

Status check_indices(const char* name, const dist_tensor& copy, const dist_tensor& indices) noexcept {
  const int64_t rows = copy.shape[indices.ndim - 1];
  const int64_t count = product(indices, 0, indices.ndim);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = index_at(indices, i);
    if (index >= 0 && index < rows) continue;
    return invalid_argument(
        "variable \"%s\": index %lld, at position %lld of the slices, is out of range. It must be 0 to %lld.",
        name, static_cast<long long>(index), static_cast<long long>(i), static_cast<long long>(rows - 1));
  }
  return kOk;
}

}  // namespace

Status check_scatter(const char* name, dist_dtype dtype, int32_t how) noexcept {
  if (how < DIST_SCATTER_ADD || how > DIST_SCATTER_BATCH_UPDATE) {
    return invalid_argument("variable \"%s\": `how` is `%d`; use one of `DIST_SCATTER_...`", name, how);
  }
  if (check_dtype(how, dtype).ok()) return kOk;
  return invalid_argument("variable \"%s\": %s", name, last_error().message);
}

Status check_scatter(const Variable& variable, int32_t how) noexcept {
  if (how < DIST_SCATTER_ADD || how > DIST_SCATTER_BATCH_UPDATE) {
    return check_scatter(variable.name(), variable.dtype(), how);
  }
  if (variable.sync_on_read()) {
    return fail(DIST_UNIMPLEMENTED,
                "variable \"%s\" is synchronized on reading, and such variables do not support scatter. "
                "Assign to it, or create it with ON_WRITE.",
                variable.name());
  }
  if (variable.mirrored() && how == DIST_SCATTER_BATCH_UPDATE) {
    return fail(DIST_UNIMPLEMENTED,
                "variable \"%s\" is mirrored, but BATCH_UPDATE is only for variables with one copy. Use "
                "UPDATE or `dist_update()`.",
                variable.name());
  }
  const bool reduces =
      variable.aggregation() == DIST_AGGREGATION_SUM || variable.aggregation() == DIST_AGGREGATION_MEAN;
  const bool picks = how == DIST_SCATTER_UPDATE || how == DIST_SCATTER_MIN || how == DIST_SCATTER_MAX;
  if (variable.mirrored() && reduces && picks) {
    return fail(DIST_UNIMPLEMENTED,
                "variable \"%s\" has aggregation %s, but %s of rows needs NONE or ONLY_FIRST_REPLICA, "
                "because rows of several replicas cannot be combined",
                variable.name(), variable.aggregation() == DIST_AGGREGATION_SUM ? "SUM" : "MEAN",
                scatter_name(how));
  }
  return check_scatter(variable.name(), variable.dtype(), how);
}

Status Slices::of(const char* name, const dist_tensor& target, int32_t how, Value& value, Slices* out) {
  DIST_TRY(find_parts(name, how, value, &out->values_, &out->indices_));
  const dist_tensor values = out->values_->tensor();
  const dist_tensor indices = out->indices_->tensor();
  DIST_TRY(check_shapes(name, target, values, indices));
  if (how == DIST_SCATTER_DIV &&
      holds_zero_integer(values.dtype, static_cast<const std::byte*>(values.data),
                         static_cast<std::size_t>(product(values, 0, values.ndim)))) {
    return invalid_argument("variable \"%s\": the slices divide integers by 0", name);
  }
  return check_indices(name, target, indices);
}

Status Slices::divide(int32_t parts) {
  const dist_tensor from = values_->tensor();
  dist_tensor shape = from;
  shape.data = nullptr;
  ValueRef quotients;
  DIST_TRY(Value::copy_tensor(values_->memory(), shape, &quotients));
  const std::byte* const sources[] = {static_cast<const std::byte*>(from.data)};
  std::byte* const to[] = {static_cast<std::byte*>(quotients->tensor().data)};
  const FpEnvironment environment;
  reduce_kernel(from.dtype,
                DIST_REDUCE_MEAN)({sources, to, 1, 1, static_cast<std::size_t>(product(from, 0, from.ndim)),
                                   static_cast<double>(parts), false});
  values_ = std::move(quotients);
  return kOk;
}

void Slices::apply(int32_t how, const dist_tensor& target) const noexcept {
  const dist_tensor values = values_->tensor();
  const dist_tensor indices = indices_->tensor();
  const int32_t axis = indices.ndim - 1;
  const int64_t batches = product(indices, 0, axis);
  const int64_t given = indices.shape[axis];
  const auto row = static_cast<std::size_t>(product(target, axis + 1, target.ndim));
  const std::size_t bytes = row * dtype_size(target.dtype);
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t k = 0; k < given; ++k) {
      const int64_t from = batch * given + k;
      const int64_t to = batch * target.shape[axis] + index_at(indices, from);
      in_place(in_place_of(how), target.dtype,
               static_cast<std::byte*>(target.data) + static_cast<std::size_t>(to) * bytes,
               static_cast<const std::byte*>(values.data) + static_cast<std::size_t>(from) * bytes, row);
    }
  }
}

}  // namespace dist
