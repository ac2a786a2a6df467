// SPDX-License-Identifier: Apache-2.0
#include "core/value/describe.hpp"

#include <cstdint>
#include <cstring>

#include "core/base/text.hpp"
#include "core/value/number.hpp"

namespace dist {
namespace {

// A value with more elements or items is shortened to kEdge at each end of a dimension.
constexpr int64_t kMostShown = 1000;
constexpr int64_t kEdge = 3;
constexpr std::size_t kMostTextBytes = 1000;

// Calls item(i) for 0 .. n-1, with commas in between. If n is too large, "..." replaces the middle.
template <class Item>
void put_items(TextOut& out, int64_t n, bool shorten, const Item& item) {
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out.put(", ");
    if (shorten && n > 2 * kEdge && i == kEdge) {
      out.put("..., ");
      i = n - kEdge;
    }
    item(i);
  }
}

// Writes the text quoted and escaped, so that its end is visible and it stays on one line.
void put_text(TextOut& out, const char* text) {
  const char* const begin = text;
  out.Put('"');
  while (*text != '\0') {
    char shown[kShownRoom];
    const std::size_t taken = show_character(text, Keep::kNothing, shown);
    if (static_cast<std::size_t>(text - begin) + taken > kMostTextBytes) break;
    if (*text == '"' || *text == '\\') out.Put('\\');
    out.put(shown);
    text += taken;
  }
  out.put(*text != '\0' ? "\"..." : "\"");
}

// Writes dimension `dim` of a tensor and the inner ones, with the elements in brackets.
void put_elements(TextOut& out, const dist_tensor& tensor, int32_t dim, const std::byte* at, int64_t dense,
                  bool shorten) {
  if (dim == tensor.ndim) {
    char number[kNumberRoom];
    write_number(tensor.dtype, at, number);
    return out.put(number);
  }
  const int64_t n = tensor.shape[dim];
  const int64_t inner = dense / n;  // elements per index, contiguous
  const int64_t step = (tensor.strides != nullptr ? tensor.strides[dim] : inner) *
                       static_cast<int64_t>(dtype_size(tensor.dtype));
  out.Put('[');
  put_items(out, n, shorten,
            [&](int64_t i) { put_elements(out, tensor, dim + 1, at + i * step, inner, shorten); });
  out.Put(']');
}

void put_tensor(TextOut& out, const dist_tensor& tensor) {
  out.put(dtype_name(tensor.dtype));
  bool empty = false;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    empty = empty || tensor.shape[d] == 0;
    out.add(d == 0 ? "[%lld" : ", %lld", static_cast<long long>(tensor.shape[d]));
  }
  out.put(tensor.ndim > 0 ? "] " : " ");
  if (empty) return out.put("[]");  // the other sizes do not matter, and may be huge
  int64_t elements = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) elements *= tensor.shape[d];
  put_elements(out, tensor, 0, static_cast<const std::byte*>(tensor.data), elements, elements > kMostShown);
}

void put_value(TextOut& out, const Value& value, bool inside);

// Writes the items of a list or composite, each after its name if it has one.
template <class Name>
void put_named(TextOut& out, const Value& value, const Name& name) {
  const auto n = static_cast<int64_t>(value.items().size());
  put_items(out, n, n > kMostShown, [&](int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    name(index);
    put_value(out, *value.items()[index], true);
  });
}

void put_composite(TextOut& out, const Value& value) {
  static constexpr const char* kSlices[] = {"values: ", "indices: ", "dense_shape: "};
  static constexpr const char* kSparse[] = {"indices: ", "values: ", "dense_shape: "};
  switch (value.kind()) {
    case DIST_VALUE_INDEXED_SLICES:
      out.put("IndexedSlices(");
      put_named(out, value, [&](std::size_t i) { out.put(kSlices[i]); });
      break;
    case DIST_VALUE_SPARSE:
      out.put("Sparse(");
      put_named(out, value, [&](std::size_t i) { out.put(kSparse[i]); });
      break;
    default:
      out.put("Ragged(");
      put_named(out, value, [&](std::size_t i) { out.put(i == 0 ? "values: " : "row_splits: "); });
  }
  out.Put(')');
}

void put_nest(TextOut& out, const Value& value) {
  const auto nameless = [](std::size_t) {};
  switch (value.kind()) {
    case DIST_VALUE_TUPLE:
      out.Put('(');
      put_named(out, value, nameless);
      out.put(value.items().size() == 1 ? ",)" : ")");
      break;
    case DIST_VALUE_DICT:
      out.Put('{');
      put_named(out, value, [&](std::size_t i) {
        put_text(out, value.key(i));
        out.put(": ");
      });
      out.Put('}');
      break;
    default:
      out.Put('[');
      put_named(out, value, nameless);
      out.Put(']');
  }
}

void put_distributed(TextOut& out, const Value& value) {
  out.put(value.kind() == DIST_VALUE_MIRRORED ? "Mirrored: " : "PerReplica: ");
  for (std::size_t r = 0; r < value.items().size(); ++r) {
    out.add(r == 0 ? "%zu: " : ", %zu: ", r);
    put_value(out, *value.items()[r], true);
  }
}

void put_variable(TextOut& out, const Variable& variable) {
  out.put(variable.class_name());
  for (int32_t copy = 0; copy < variable.num_copies(); ++copy) {
    out.add(copy == 0 ? ": %d: " : ", %d: ", copy);
    put_text(out, variable.copy_name(copy));
    out.Put(' ');
    put_tensor(out, variable.component(LocalReplica{copy}));
  }
}

// `inside`: this value is part of another one. Distributed values are then put in braces.
void put_value(TextOut& out, const Value& value, bool inside) {
  const bool braces = inside && (value.distributed() || value.kind() == DIST_VALUE_VARIABLE);
  if (braces) out.Put('{');
  switch (value.kind()) {
    case DIST_VALUE_TENSOR:
    case DIST_VALUE_SHARDED: put_tensor(out, value.tensor()); break;
    case DIST_VALUE_VARIABLE: put_variable(out, *value.variable()); break;
    case DIST_VALUE_NONE: out.put("None"); break;
    case DIST_VALUE_TEXT: put_text(out, value.text()); break;
    case DIST_VALUE_OBJECT: out.put("Object"); break;
    default:
      if (value.distributed()) {
        put_distributed(out, value);
      } else if (value.is_composite()) {
        put_composite(out, value);
      } else {
        put_nest(out, value);
      }
  }
  if (braces) out.Put('}');
}

}  // namespace

void describe(const Value& value, TextOut& out) { put_value(out, value, false); }
void describe(const Variable& variable, TextOut& out) { put_variable(out, variable); }

}  // namespace dist
