// SPDX-License-Identifier: Apache-2.0
#include "core/input/batch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/input/leaf.hpp"

namespace dist {
namespace {

using Elements = std::span<Value* const>;

// Where in the elements' structure one is, as text: "[1]['x']". For messages; cut where it is too long.
class Path {
 public:
  const char* text() const noexcept { return text_; }
  std::size_t length() const noexcept { return length_; }
  void cut(std::size_t length) noexcept { text_[length_ = length] = '\0'; }
  void enter(std::size_t index) noexcept { append("[%zu]", index); }
  void enter(const char* key) noexcept { append("['%s']", key); }

 private:
  template <class T>
  void append(const char* format, T step) noexcept {
    const int wanted = std::snprintf(text_ + length_, sizeof text_ - length_, format, step);
    if (wanted > 0) length_ = std::min(length_ + static_cast<std::size_t>(wanted), sizeof text_ - 1);
  }

  char text_[128] = "";
  std::size_t length_ = 0;
};

class Builder {
 public:
  enum class How { kStack, kSplit };

  Builder(Memory& memory, int32_t num_replicas, How how, int64_t first_index) noexcept
      : memory_(memory), num_replicas_(num_replicas), how_(how), first_index_(first_index) {}

  // `elements` are the parts at path_ of all elements of the batch.
  Status build(Elements elements, ValueRef* out) {
    DIST_TRY(check_kinds(elements));
    if (elements[0]->kind() == DIST_VALUE_TENSOR) {
      return how_ == How::kStack ? stack(elements, out) : split(elements[0]->tensor(), out);
    }
    DIST_TRY(check_items(elements));
    return build_items(elements, out);
  }

 private:
  long long number(std::size_t element) const noexcept {
    return static_cast<long long>(first_index_) + static_cast<long long>(element);
  }

  Status check_kinds(Elements elements) const noexcept {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const int32_t kind = elements[i]->kind();
      if (kind != DIST_VALUE_TENSOR && kind != DIST_VALUE_LIST && kind != DIST_VALUE_DICT) {
        return invalid_argument(
            "element %lld%s is %s; an element is a tensor, or a list or dictionary of tensors", number(i),
            path_.text(), Value::kind_name(kind));
      }
      if (kind != elements[0]->kind()) {
        return invalid_argument(
            "element %lld%s is %s, but in element %lld of the same batch it is %s; the elements "
            "of a batch have one structure",
            number(i), path_.text(), Value::kind_name(kind), number(0),
            Value::kind_name(elements[0]->kind()));
      }
    }
    return kOk;
  }

  // Lists and dictionaries: as many items, under the same keys.
  Status check_items(Elements elements) const noexcept {
    const Value& model = *elements[0];
    for (std::size_t i = 1; i < elements.size(); ++i) {
      if (elements[i]->items().size() != model.items().size()) {
        return invalid_argument(
            "element %lld%s has %zu items, but in element %lld of the same batch it has %zu; the "
            "elements of a batch have one structure",
            number(i), path_.text(), elements[i]->items().size(), number(0), model.items().size());
      }
      for (std::size_t k = 0; model.kind() == DIST_VALUE_DICT && k < model.items().size(); ++k) {
        if (std::strcmp(elements[i]->key(k), model.key(k)) != 0) {
          return invalid_argument(
              "element %lld%s has the key '%s' where element %lld of the same batch has '%s'; the "
              "elements of a batch have one structure",
              number(i), path_.text(), elements[i]->key(k), number(0), model.key(k));
        }
      }
    }
    return kOk;
  }

  Status build_items(Elements elements, ValueRef* out) {
    const Value& model = *elements[0];
    const std::size_t n = model.items().size();
    const bool keyed = model.kind() == DIST_VALUE_DICT;
    std::pmr::vector<Value*> column(elements.size(), &memory_);
    std::pmr::vector<ValueRef> built(n, &memory_);
    std::pmr::vector<Value*> items(n, &memory_);
    std::pmr::vector<const char*> keys(keyed ? n : 0, &memory_);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < elements.size(); ++i) column[i] = elements[i]->items()[k].get();
      const std::size_t here = path_.length();
      if (keyed) {
        path_.enter(keys[k] = model.key(k));
      } else {
        path_.enter(k);
      }
      DIST_TRY(build(column, &built[k]));
      path_.cut(here);
      items[k] = built[k].get();
    }
    return keyed ? Value::create_dict(memory_, keys, items, out)
                 : Value::create(memory_, DIST_VALUE_LIST, items, out);
  }

  // A new first dimension: element i is row i.
  Status stack(Elements elements, ValueRef* out) {
    const dist_tensor row = elements[0]->tensor();
    for (std::size_t i = 1; i < elements.size(); ++i) {
      const dist_tensor other = elements[i]->tensor();
      if (other.dtype != row.dtype || !same_shape(other, row)) {
        char is[128];
        char model[128];
        describe(other, is, sizeof is);
        describe(row, model, sizeof model);
        return invalid_argument(
            "element %lld%s is %s, but in element %lld of the same batch it is %s; the elements "
            "of a batch have equal dtypes and shapes",
            number(i), path_.text(), is, number(0), model);
      }
    }
    TensorSize size;
    DIST_TRY(check_tensor(row, "element", &size));
    const auto write = [&](std::byte* to, int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i, to += size.bytes) {
        copy(elements[static_cast<std::size_t>(i)]->tensor(), to, size.bytes);
      }
    };
    return make_leaf(memory_, num_replicas_, static_cast<int64_t>(elements.size()), row, write, out);
  }

  // The tensor's first dimension counts examples.
  Status split(const dist_tensor& tensor, ValueRef* out) {
    if (tensor.ndim == 0) {
      return invalid_argument(
          "element %lld%s is a scalar: an element that is a batch is split along its first "
          "dimension, and a scalar has none; set global_batch_size to stack elements",
          number(0), path_.text());
    }
    const int64_t rows = tensor.shape[0];
    if (examples_ >= 0 && rows != examples_) {
      return invalid_argument(
          "element %lld%s has %lld rows where the tensors before it have %lld; the tensors of a "
          "batch have equal first dimensions",
          number(0), path_.text(), static_cast<long long>(rows), static_cast<long long>(examples_));
    }
    examples_ = rows;
    TensorSize size;
    DIST_TRY(check_tensor(tensor, "element", &size));
    const auto write = [&](std::byte* to, int64_t first, int64_t count) {
      if (size.bytes == 0) return;
      int64_t shape[DIST_MAX_NDIM];
      std::copy_n(tensor.shape, tensor.ndim, shape);
      shape[0] = count;
      const int64_t step = tensor.strides != nullptr ? tensor.strides[0] : size.elements / rows;
      auto* const from = static_cast<std::byte*>(tensor.data);
      const auto bytes = static_cast<int64_t>(dtype_size(tensor.dtype));
      copy({from + first * step * bytes, tensor.dtype, tensor.ndim, shape, tensor.strides}, to,
           size.bytes / static_cast<std::size_t>(rows) * static_cast<std::size_t>(count));
    };
    const dist_tensor row{nullptr, tensor.dtype, tensor.ndim - 1, tensor.shape + 1, nullptr};
    return make_leaf(memory_, num_replicas_, rows, row, write, out);
  }

  // To row-major memory.
  static void copy(const dist_tensor& from, std::byte* to, std::size_t bytes) noexcept {
    if (bytes == 0) return;  // nothing has no address
    if (from.strides == nullptr) {
      std::memcpy(to, from.data, bytes);
    } else {
      copy_elements(from, {to, from.dtype, from.ndim, from.shape, nullptr});
    }
  }

  Memory& memory_;
  int32_t num_replicas_;
  How how_;
  int64_t first_index_;
  int64_t examples_ = -1;  // of an element that is split; -1: not known yet
  Path path_;
};

}  // namespace

Status stack_elements(Memory& memory, int32_t num_replicas, std::span<const ValueRef> elements,
                      int64_t first_index, ValueRef* out) {
  std::pmr::vector<Value*> all(&memory);
  all.reserve(elements.size());
  for (const ValueRef& element : elements) all.push_back(element.get());
  return Builder(memory, num_replicas, Builder::How::kStack, first_index).build(all, out);
}

Status split_element(Memory& memory, int32_t num_replicas, const ValueRef& element, int64_t index,
                     ValueRef* out) {
  Value* const only[] = {element.get()};
  return Builder(memory, num_replicas, Builder::How::kSplit, index).build(only, out);
}

}  // namespace dist
