// SPDX-License-Identifier: Apache-2.0
#include "core/input/batch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/input/composite_rows.hpp"
#include "core/input/element_path.hpp"

namespace dist {
namespace {

using Column = std::span<Value* const>;  // the corresponding parts of all elements

bool is_cuttable_composite(const Value& value) noexcept {
  return value.kind() == DIST_VALUE_RAGGED || value.kind() == DIST_VALUE_SPARSE;
}

// Copies a tensor to row-major memory.
void copy_tensor(const dist_tensor& from, std::byte* to, std::size_t bytes) noexcept {
  if (bytes == 0) return;  // an empty tensor may have no address
  if (from.strides == nullptr) {
    std::memcpy(to, from.data, bytes);
  } else {
    copy_elements(from, {to, from.dtype, from.ndim, from.shape, nullptr});
  }
}

class Builder {
 public:
  enum class How { kStack, kSplit };

  Builder(Memory& memory, How how, std::span<const Slice> slices, Parts parts) noexcept
      : memory_(memory), how_(how), slices_(slices), parts_(parts) {}

  Status build(Column column, ValueRef* out) {
    DIST_TRY(check_kinds(column));
    const Value& model = *column[0];
    if (model.is_nest()) {
      DIST_TRY(check_items(column));
      return build_items(column, out);
    }
    if (model.is_none()) {
      *out = ValueRef::share(column[0]);
      return kOk;
    }
    if (model.kind() == DIST_VALUE_TENSOR) {
      return how_ == How::kStack ? stack(column, out) : split(column, out);
    }
    return how_ == How::kStack ? stack_handles(column, out) : split_composite(column, out);
  }

 private:
  long long number(std::size_t at) const noexcept { return static_cast<long long>(slices_[at].index); }

  Status check_kinds(Column column) const noexcept {
    for (std::size_t i = 0; i < column.size(); ++i) {
      const Value& value = *column[i];
      const dist_value_kind kind = value.kind();
      if (value.distributed() || kind == DIST_VALUE_VARIABLE) {
        return invalid_argument(
            "element %lld%s is %s, but an element must be a tensor, or a list or dictionary of tensors",
            number(i), path_.text(), Value::kind_name(kind));
      }
      if (kind != column[0]->kind()) {
        return invalid_argument(
            "element %lld%s is %s, but in element %lld of the same batch it is %s. All elements of a batch "
            "must have the same structure.",
            number(i), path_.text(), Value::kind_name(kind), number(0), Value::kind_name(column[0]->kind()));
      }
    }
    return kOk;
  }

  // Nests must have the same number of items with the same keys.
  Status check_items(Column column) const noexcept {
    const Value& model = *column[0];
    for (std::size_t i = 1; i < column.size(); ++i) {
      if (column[i]->items().size() != model.items().size()) {
        return invalid_argument(
            "element %lld%s has %zu items, but in element %lld of the same batch it has %zu. All elements of "
            "a batch must have the same structure.",
            number(i), path_.text(), column[i]->items().size(), number(0), model.items().size());
      }
      for (std::size_t k = 0; model.kind() == DIST_VALUE_DICT && k < model.items().size(); ++k) {
        if (std::strcmp(column[i]->key(k), model.key(k)) != 0) {
          return invalid_argument(
              "element %lld%s has the key '%s', but element %lld of the same batch has '%s'. All elements of "
              "a batch must have the same structure.",
              number(i), path_.text(), column[i]->key(k), number(0), model.key(k));
        }
      }
    }
    return kOk;
  }

  Status build_items(Column column, ValueRef* out) {
    const Value& model = *column[0];
    const std::size_t n = model.items().size();
    std::pmr::vector<Value*> below(column.size(), &memory_);
    std::pmr::vector<ValueRef> built(n, &memory_);
    std::pmr::vector<Value*> items(n, &memory_);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < column.size(); ++i) below[i] = column[i]->items()[k].get();
      const std::size_t here = path_.length();
      path_.enter(model, k);
      DIST_TRY(build(below, &built[k]));
      path_.cut(here);
      items[k] = built[k].get();
    }
    return Value::create_like(memory_, model, items, out);
  }

  // The tensors must have the same dtype, and the same shape from dimension `from` on.
  Status check_shapes(Column column, int32_t from) const noexcept {
    const dist_tensor model = column[0]->tensor();
    for (std::size_t i = 1; i < column.size(); ++i) {
      const dist_tensor other = column[i]->tensor();
      const bool same = other.dtype == model.dtype && other.ndim == model.ndim &&
                        std::equal(other.shape + from, other.shape + other.ndim, model.shape + from);
      if (same) continue;
      char is[128];
      char model_is[128];
      describe(other, is, sizeof is);
      describe(model, model_is, sizeof model_is);
      return invalid_argument(
          "element %lld%s is %s, but in element %lld of the same batch it is %s. All elements of a batch "
          "must have the same dtypes and shapes.",
          number(i), path_.text(), is, number(0), model_is);
    }
    return kOk;
  }

  // Adds a first dimension: element i becomes row i.
  Status stack(Column column, ValueRef* out) {
    DIST_TRY(check_shapes(column, 0));
    const dist_tensor row = column[0]->tensor();
    TensorSize size;
    DIST_TRY(check_tensor(row, "element", &size));
    const auto write = [&](std::byte* to, Part part) {
      for (int64_t i = part.first; i < part.first + part.count; ++i, to += size.bytes) {
        copy_tensor(column[static_cast<std::size_t>(i)]->tensor(), to, size.bytes);
      }
    };
    return make_leaf(memory_, parts_, row, write, out);
  }

  // Texts and objects cannot be stored in a tensor, so each replica gets a list.
  Status stack_handles(Column column, ValueRef* out) {
    if (column[0]->is_composite()) {
      return fail(DIST_UNIMPLEMENTED,
                  "element %lld%s is %s, which libdist cannot stack. Return batches of it from the source, "
                  "and set `global_batch_size` to 0.",
                  number(0), path_.text(), Value::kind_name(column[0]->kind()));
    }
    std::pmr::vector<ValueRef> components(parts_.size(), &memory_);
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      const auto first = static_cast<std::size_t>(parts_[r].first);
      const auto count = static_cast<std::size_t>(parts_[r].count);
      const Column own = count != 0 ? column.subspan(first, count) : Column();
      DIST_TRY(Value::create(memory_, DIST_VALUE_LIST, own, &components[r]));
    }
    return join_parts(memory_, components, out);
  }

  // Concatenates the examples of all slices.
  Status split(Column column, ValueRef* out) {
    DIST_TRY(check_shapes(column, 1));
    const dist_tensor model = column[0]->tensor();
    TensorSize row_size;
    const dist_tensor row{nullptr, model.dtype, model.ndim - 1, model.shape + 1, nullptr};
    std::byte unset;  // its address represents the data of a row, which are not read
    dist_tensor checked = row;
    checked.data = &unset;
    DIST_TRY(check_tensor(checked, "element", &row_size));
    const auto write = [&](std::byte* to, Part part) {
      int64_t skip = part.first;
      int64_t left = part.count;
      for (std::size_t i = 0; left > 0 && row_size.bytes != 0; ++i) {
        if (skip >= slices_[i].count) {
          skip -= slices_[i].count;
          continue;
        }
        const int64_t count = std::min(left, slices_[i].count - skip);
        const std::size_t bytes = row_size.bytes * static_cast<std::size_t>(count);
        copy_rows(column[i]->tensor(), slices_[i].first + skip, count, row_size.elements, to, bytes);
        to += bytes;
        left -= count;
        skip = 0;
      }
    };
    return make_leaf(memory_, parts_, row, write, out);
  }

  static void copy_rows(const dist_tensor& tensor, int64_t first, int64_t count, int64_t row_elements,
                        std::byte* to, std::size_t bytes) noexcept {
    int64_t shape[DIST_MAX_NDIM];
    std::copy_n(tensor.shape, tensor.ndim, shape);
    shape[0] = count;
    const int64_t step = tensor.strides != nullptr ? tensor.strides[0] : row_elements;
    auto* const from = static_cast<std::byte*>(tensor.data);
    const auto element_bytes = static_cast<int64_t>(dtype_size(tensor.dtype));
    copy_tensor({from + first * step * element_bytes, tensor.dtype, tensor.ndim, shape, tensor.strides}, to,
                bytes);
  }

  Status split_composite(Column column, ValueRef* out) {
    if (column.size() != 1 && is_cuttable_composite(*column[0])) {
      return fail(DIST_UNIMPLEMENTED,
                  "element %lld%s is %s, and `batch_sizes` would combine rows of several such elements, "
                  "which libdist does not support",
                  number(0), path_.text(), Value::kind_name(column[0]->kind()));
    }
    std::pmr::vector<ValueRef> components(parts_.size(), &memory_);
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      const int64_t first = parts_[r].count != 0 ? slices_[0].first + parts_[r].first : 0;
      DIST_TRY(cut_composite(memory_, *column[0], first, parts_[r].count, &components[r]));
    }
    return join_parts(memory_, components, out);
  }

  Memory& memory_;
  const How how_;
  const std::span<const Slice> slices_;
  const Parts parts_;
  ElementPath path_;
};

Status build(Memory& memory, Builder::How how, std::span<const Slice> slices, Parts parts, ValueRef* out) {
  std::pmr::vector<Value*> all(&memory);
  all.reserve(slices.size());
  for (const Slice& slice : slices) all.push_back(slice.element.get());
  return Builder(memory, how, slices, parts).build(all, out);
}

}  // namespace

Status stack_elements(Memory& memory, std::span<const Slice> slices, Parts parts, ValueRef* out) {
  return build(memory, Builder::How::kStack, slices, parts, out);
}

Status split_elements(Memory& memory, std::span<const Slice> slices, Parts parts, ValueRef* out) {
  return build(memory, Builder::How::kSplit, slices, parts, out);
}

}  // namespace dist
