// SPDX-License-Identifier: Apache-2.0
#include "core/input/spec.hpp"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.hpp"

namespace dist {
namespace {

using Cut = Division::Cut;

constexpr int64_t kAny = -1;  // an unknown size

// For example "f32[?, 4]".
class SpecText {
 public:
  SpecText(Memory& memory, const char* before) : text_(before, &memory) {}
  void name(const char* name) { text_ += name; }
  void begin() { text_ += '['; }
  void add(int64_t size) {
    if (text_.back() != '[') text_ += ", ";
    char digits[24] = "?";
    if (size != kAny) std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(size));
    text_ += digits;
  }
  const char* end() {
    text_ += ']';
    return text_.c_str();
  }

 private:
  std::pmr::string text_;
};

class Specifier {
 public:
  Specifier(Dataset& dataset, bool fixed) noexcept
      : dataset_(dataset),
        division_(dataset.division()),
        fixed_(fixed || dataset.options().static_shapes > 0) {}

  Status specify(const Value& value, ValueRef* out) const {
    if (!value.is_nest()) return for_all_replicas(leaf(value), out);
    const std::size_t n = value.items().size();
    std::pmr::vector<ValueRef> specs(n, &memory());
    std::pmr::vector<Value*> items(n, &memory());
    for (std::size_t i = 0; i < n; ++i) {
      DIST_TRY(specify(*value.items()[i], &specs[i]));
      items[i] = specs[i].get();
    }
    return Value::create_like(memory(), value, items, out);
  }

 private:
  Memory& memory() const noexcept { return dataset_.memory(); }
  bool whole() const noexcept { return division_.cut == Cut::kWhole || dataset_.is_of_function(); }
  bool stacked() const noexcept { return division_.batch != 0 && !whole(); }

  // The number of examples that a replica gets of a batch of `examples` (kAny: unknown).
  int64_t share(int64_t examples) const noexcept {
    const bool even = examples != kAny && division_.cut == Cut::kEven && examples % division_.pieces == 0;
    return even ? examples / division_.pieces : kAny;
  }

  // The first dimension of a tensor that has `rows` rows itself.
  int64_t first_dimension(int64_t rows) const noexcept {
    if (stacked()) return share(division_.drop_remainder ? division_.batch : kAny);
    if (!fixed_) return kAny;
    return whole() ? rows : share(rows);
  }

  ValueRef leaf(const Value& value) const {
    SpecText text(memory(), "");
    switch (value.kind()) {
      case DIST_VALUE_TENSOR: return tensor(value.tensor(), "");
      case DIST_VALUE_RAGGED: return composite(value, "ragged ");
      case DIST_VALUE_SPARSE: return composite(value, "sparse ");
      case DIST_VALUE_NONE: return Value::create_none(memory());
      case DIST_VALUE_TEXT:
      case DIST_VALUE_OBJECT: text.name(value.kind() == DIST_VALUE_TEXT ? "text" : "object"); break;
      default: return Value::create_text(memory(), Value::kind_name(value.kind()));
    }
    text.begin();
    if (stacked()) text.add(first_dimension(0));
    return Value::create_text(memory(), text.end());
  }

  ValueRef tensor(const dist_tensor& tensor, const char* before) const {
    SpecText text(memory(), before);
    text.name(dtype_name(tensor.dtype));
    text.begin();
    if (stacked()) text.add(first_dimension(0));
    for (int32_t d = 0; d < tensor.ndim; ++d) {
      text.add(d == 0 && !stacked() ? first_dimension(tensor.shape[0]) : tensor.shape[d]);
    }
    return Value::create_text(memory(), text.end());
  }

  // The sizes of a composite are those of the rows, then those that differ between rows, then those of the
  // values.
  ValueRef composite(const Value& value, const char* before) const {
    const bool ragged = value.kind() == DIST_VALUE_RAGGED;
    const dist_tensor values = value.items()[ragged ? 0 : 1]->tensor();
    SpecText text(memory(), before);
    text.name(dtype_name(values.dtype));
    text.begin();
    const std::size_t open =
        ragged ? value.items().size() : static_cast<std::size_t>(value.items()[2]->tensor().shape[0]);
    for (std::size_t d = 0; d < open; ++d) text.add(kAny);
    for (int32_t d = 1; d < values.ndim; ++d) text.add(values.shape[d]);
    return Value::create_text(memory(), text.end());
  }

  Status for_all_replicas(ValueRef one, ValueRef* out) const {
    if (dataset_.num_replicas() == 1) {
      *out = std::move(one);
      return kOk;
    }
    const std::pmr::vector<Value*> all(static_cast<std::size_t>(dataset_.num_replicas()), one.get(),
                                       &memory());
    return Value::create(memory(), DIST_VALUE_PER_REPLICA, all, out);
  }

  Dataset& dataset_;
  const Division& division_;
  const bool fixed_;
};

}  // namespace

Status element_spec(Dataset& dataset, ValueRef* out) {
  DIST_TRY(dataset.check_process());
  ValueRef model;
  bool fixed = false;
  DIST_TRY(dataset.source().model(&model, &fixed));
  return Specifier(dataset, fixed).specify(*model, out);
}

}  // namespace dist
