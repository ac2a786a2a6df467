// SPDX-License-Identifier: Apache-2.0
#include "core/input/composite_rows.hpp"

#include <algorithm>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/value/composite.hpp"

namespace dist {
namespace {

int64_t index_at(const dist_tensor& tensor, int64_t i, int64_t column = 0) noexcept {
  int64_t at = i;
  if (tensor.ndim == 2) at = tensor.strides != nullptr ? i * tensor.strides[0] : i * tensor.shape[1];
  if (tensor.ndim == 1 && tensor.strides != nullptr) at = i * tensor.strides[0];
  at += tensor.ndim == 2 && tensor.strides != nullptr ? column * tensor.strides[1] : column;
  return tensor.dtype == DIST_I32 ? static_cast<const int32_t*>(tensor.data)[at]
                                  : static_cast<const int64_t*>(tensor.data)[at];
}

void set_index(const dist_tensor& tensor, int64_t at, int64_t value) noexcept {
  if (tensor.dtype == DIST_I32) {
    static_cast<int32_t*>(tensor.data)[at] = static_cast<int32_t>(value);
  } else {
    static_cast<int64_t*>(tensor.data)[at] = value;
  }
}

// Creates an uninitialized tensor with `rows` rows, otherwise with the dtype and shape of `model`.
Status rows_like(Memory& memory, const dist_tensor& model, int64_t rows, ValueRef* out) {
  int64_t shape[DIST_MAX_NDIM];
  std::copy_n(model.shape, model.ndim, shape);
  shape[0] = rows;
  return Value::copy_tensor(memory, {nullptr, model.dtype, model.ndim, shape, nullptr}, out);
}

Status copy_rows(Memory& memory, const dist_tensor& tensor, int64_t first, int64_t count, ValueRef* out) {
  DIST_TRY(rows_like(memory, tensor, count, out));
  TensorSize all;
  DIST_TRY(check_tensor(tensor, "values", &all));
  if (count == 0 || all.bytes == 0) return kOk;
  const int64_t step = tensor.strides != nullptr ? tensor.strides[0] : all.elements / tensor.shape[0];
  dist_tensor rows = tensor;
  const auto bytes = static_cast<int64_t>(dtype_size(tensor.dtype));
  rows.data = static_cast<std::byte*>(tensor.data) + first * step * bytes;
  rows.shape = (*out)->tensor().shape;
  copy_elements(rows, (*out)->tensor());
  return kOk;
}

Status together(Memory& memory, dist_value_kind kind, std::span<const ValueRef> parts, ValueRef* out) {
  std::pmr::vector<Value*> items(&memory);
  items.reserve(parts.size());
  for (const ValueRef& part : parts) items.push_back(part.get());
  return create_composite(memory, kind, items, out);
}

// Each level of row splits indexes the next one. So the range of rows is converted from the outside in to a
// range of values.
Status cut_ragged(Memory& memory, const Value& ragged, int64_t first, int64_t count, ValueRef* out) {
  std::pmr::vector<ValueRef> parts(ragged.items().size(), &memory);
  for (std::size_t level = 1; level < parts.size(); ++level) {
    const dist_tensor splits = ragged.items()[level]->tensor();
    const int64_t begin = index_at(splits, first);
    DIST_TRY(rows_like(memory, splits, count + 1, &parts[level]));
    for (int64_t i = 0; i <= count; ++i) {
      set_index(parts[level]->tensor(), i, index_at(splits, first + i) - begin);
    }
    count = index_at(splits, first + count) - begin;
    first = begin;
  }
  DIST_TRY(copy_rows(memory, ragged.items()[0]->tensor(), first, count, &parts[0]));
  return together(memory, DIST_VALUE_RAGGED, parts, out);
}

Status cut_sparse(Memory& memory, const Value& sparse, int64_t first, int64_t count, ValueRef* out) {
  const dist_tensor indices = sparse.items()[0]->tensor();
  const dist_tensor values = sparse.items()[1]->tensor();
  const dist_tensor dense = sparse.items()[2]->tensor();
  std::pmr::vector<int64_t> kept(&memory);
  for (int64_t k = 0; k < indices.shape[0]; ++k) {
    const int64_t row = index_at(indices, k);
    if (row >= first && row - first < count) kept.push_back(k);
  }
  ValueRef parts[3];
  const auto n = static_cast<int64_t>(kept.size());
  DIST_TRY(rows_like(memory, indices, n, &parts[0]));
  DIST_TRY(rows_like(memory, values, n, &parts[1]));
  DIST_TRY(copy_rows(memory, dense, 0, dense.shape[0], &parts[2]));
  const int64_t columns = indices.shape[1];
  const int64_t step = values.strides != nullptr ? values.strides[0] : 1;
  const auto bytes = static_cast<int64_t>(dtype_size(values.dtype));
  for (int64_t k = 0; k < n; ++k) {
    const int64_t from = kept[static_cast<std::size_t>(k)];
    for (int64_t c = 0; c < columns; ++c) {
      set_index(parts[0]->tensor(), k * columns + c, index_at(indices, from, c) - (c == 0 ? first : 0));
    }
    std::copy_n(static_cast<const std::byte*>(values.data) + from * step * bytes, bytes,
                static_cast<std::byte*>(parts[1]->tensor().data) + k * bytes);
  }
  set_index(parts[2]->tensor(), 0, count);
  return together(memory, DIST_VALUE_SPARSE, parts, out);
}

}  // namespace

int64_t composite_rows(const Value& composite) noexcept {
  if (composite.kind() == DIST_VALUE_RAGGED) return composite.items()[1]->tensor().shape[0] - 1;
  const dist_tensor dense = composite.items()[2]->tensor();
  return dense.shape[0] > 0 ? std::max<int64_t>(index_at(dense, 0), 0) : 0;
}

Status cut_composite(Memory& memory, const Value& composite, int64_t first, int64_t count, ValueRef* out) {
  return composite.kind() == DIST_VALUE_RAGGED ? cut_ragged(memory, composite, first, count, out)
                                               : cut_sparse(memory, composite, first, count, out);
}

}  // namespace dist
