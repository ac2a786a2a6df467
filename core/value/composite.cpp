// SPDX-License-Identifier: Apache-2.0
#include "core/value/composite.hpp"

#include <algorithm>
#include <cstring>

namespace dist {
namespace {

bool is_index(const dist_tensor& tensor) noexcept {
  return tensor.dtype == DIST_I32 || tensor.dtype == DIST_I64;
}

int64_t index_at(const dist_tensor& tensor, int64_t i) noexcept {
  const int64_t at = tensor.strides != nullptr ? i * tensor.strides[0] : i;
  return tensor.dtype == DIST_I32 ? static_cast<const int32_t*>(tensor.data)[at]
                                  : static_cast<const int64_t*>(tensor.data)[at];
}

// Returns the part's tensor, which must have `ndim` dimensions and, if it contains indices, the dtype I32 or
// I64.
Status index_part(const Value& part, const char* whole, const char* name, int32_t ndim, dist_tensor* out) {
  char is[256];
  Value::describe(&part, is, sizeof is);
  if (part.kind() != DIST_VALUE_TENSOR || part.tensor().ndim != ndim || !is_index(part.tensor())) {
    return invalid_argument("%s of %s are %s, but must be a tensor of I32 or I64 with %d dimension%s", name,
                            whole, is, ndim, ndim == 1 ? "" : "s");
  }
  *out = part.tensor();
  return kOk;
}

Status values_part(const Value& part, const char* whole, dist_tensor* out) {
  char is[256];
  Value::describe(&part, is, sizeof is);
  if (part.kind() != DIST_VALUE_TENSOR || part.tensor().ndim == 0) {
    return invalid_argument("values of %s are %s, but must be a tensor with at least one dimension", whole,
                            is);
  }
  *out = part.tensor();
  return kOk;
}

Status check_count(std::span<Value* const> parts, std::size_t low, std::size_t high, const char* whole,
                   const char* are) {
  if (parts.size() >= low && parts.size() <= high) {
    const auto absent = std::find(parts.begin(), parts.end(), nullptr);
    if (absent == parts.end()) return kOk;
    return invalid_argument("parts[%td] of `%s` is `NULL`, but every part must be a value",
                            absent - parts.begin(), whole);
  }
  return invalid_argument("%s cannot be created from %zu parts. The parts must be %s.", whole, parts.size(),
                          are);
}

Status check_indexed_slices(std::span<Value* const> parts) {
  constexpr const char* kWhole = "indexed slices";
  DIST_TRY(check_count(parts, 3, 3, kWhole, "values, indices, dense shape (or a NONE value)"));
  dist_tensor values{};
  dist_tensor indices{};
  DIST_TRY(values_part(*parts[0], kWhole, &values));
  DIST_TRY(index_part(*parts[1], kWhole, "indices", 1, &indices));
  if (indices.shape[0] != values.shape[0]) {
    return invalid_argument("indexed slices have %lld rows but %lld indices. Every row needs one index.",
                            static_cast<long long>(values.shape[0]),
                            static_cast<long long>(indices.shape[0]));
  }
  if (parts[2]->is_none()) return kOk;
  dist_tensor dense{};
  DIST_TRY(index_part(*parts[2], kWhole, "dense shape", 1, &dense));
  if (dense.shape[0] != values.ndim) {
    return invalid_argument("indexed slices have values of %d dimensions, but a dense shape of %lld",
                            values.ndim, static_cast<long long>(dense.shape[0]));
  }
  for (int32_t d = 1; d < values.ndim; ++d) {
    if (index_at(dense, d) == values.shape[d]) continue;
    return invalid_argument(
        "indexed slices have rows of size %lld in dimension %d, but the dense shape has %lld",
        static_cast<long long>(values.shape[d]), d, static_cast<long long>(index_at(dense, d)));
  }
  return kOk;
}

// Checks the row splits from the outside in: each divides the rows of the next one, and the last one divides
// the rows of the values.
Status check_ragged(std::span<Value* const> parts) {
  constexpr const char* kWhole = "a ragged tensor";
  DIST_TRY(check_count(parts, 2, kMaxNesting, kWhole, "values and one to 63 row splits"));
  dist_tensor values{};
  DIST_TRY(values_part(*parts[0], kWhole, &values));
  int64_t rows = values.shape[0];
  for (std::size_t level = parts.size(); --level > 0;) {
    dist_tensor splits{};
    DIST_TRY(index_part(*parts[level], kWhole, "row splits", 1, &splits));
    const int64_t n = splits.shape[0];
    bool right = n > 0 && index_at(splits, 0) == 0 && index_at(splits, n - 1) == rows;
    for (int64_t i = 1; right && i < n; ++i) right = index_at(splits, i - 1) <= index_at(splits, i);
    if (!right) {
      return invalid_argument(
          "row splits %zu of a ragged tensor must begin with 0, never decrease, and end with %lld, the "
          "number of rows that they divide",
          level, static_cast<long long>(rows));
    }
    rows = n - 1;
  }
  return kOk;
}

Status check_sparse(std::span<Value* const> parts) {
  constexpr const char* kWhole = "a sparse tensor";
  DIST_TRY(check_count(parts, 3, 3, kWhole, "indices, values, dense shape"));
  dist_tensor indices{};
  dist_tensor values{};
  dist_tensor dense{};
  DIST_TRY(index_part(*parts[0], kWhole, "indices", 2, &indices));
  DIST_TRY(values_part(*parts[1], kWhole, &values));
  DIST_TRY(index_part(*parts[2], kWhole, "dense shape", 1, &dense));
  if (values.ndim != 1 || indices.shape[0] != values.shape[0] || indices.shape[1] != dense.shape[0]) {
    return invalid_argument(
        "a sparse tensor has %lld x %lld indices, a dense shape of %lld, and values of %lld in %d "
        "dimensions, but for n values in d dimensions they must be n x d, d and n",
        static_cast<long long>(indices.shape[0]), static_cast<long long>(indices.shape[1]),
        static_cast<long long>(dense.shape[0]), static_cast<long long>(values.shape[0]), values.ndim);
  }
  return kOk;
}

}  // namespace

Status create_composite(Memory& memory, dist_value_kind kind, std::span<Value* const> parts, ValueRef* out) {
  switch (kind) {
    case DIST_VALUE_INDEXED_SLICES: DIST_TRY(check_indexed_slices(parts)); break;
    case DIST_VALUE_RAGGED: DIST_TRY(check_ragged(parts)); break;
    case DIST_VALUE_SPARSE: DIST_TRY(check_sparse(parts)); break;
    default:
      return invalid_argument(
          "`kind` is `%d`; use `DIST_VALUE_INDEXED_SLICES`, `DIST_VALUE_RAGGED` or `DIST_VALUE_SPARSE`",
          kind);
  }
  return Value::create(memory, kind, parts, out);
}

}  // namespace dist
