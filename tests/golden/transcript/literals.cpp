// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

#include <charconv>
#include <cstring>

#include "line.hpp"
#include "tests/golden/harness/json.hpp"

namespace golden::transcript {
namespace {

struct Type {
  std::string_view name;
  dist_dtype dtype;
};
// @every dtype
constexpr Type kTypes[] = {{"f16", DIST_F16},       {"bf16", DIST_BF16}, {"f32", DIST_F32}, {"f64", DIST_F64},
                           {"i8", DIST_I8},         {"u8", DIST_U8},     {"i16", DIST_I16}, {"u16", DIST_U16},
                           {"i32", DIST_I32},       {"u32", DIST_U32},   {"i64", DIST_I64}, {"u64", DIST_U64},
                           {"c64", DIST_COMPLEX64}, {"bool", DIST_BOOL}};

struct Kind {
  int32_t kind;
  std::string_view name;
};
constexpr Kind kKinds[] = {{DIST_VALUE_LIST, "list"},
                           {DIST_VALUE_TUPLE, "tuple"},
                           {DIST_VALUE_PER_REPLICA, "per_replica"},
                           {DIST_VALUE_MIRRORED, "mirrored"},
                           {DIST_VALUE_INDEXED_SLICES, "indexed_slices"},
                           {DIST_VALUE_RAGGED, "ragged"},
                           {DIST_VALUE_SPARSE, "sparse"},
                           {DIST_VALUE_DICT, "dict"}};

constexpr std::string_view kDigits = "0123456789abcdef";

// Settles one float with `Bits` bits. Without its sign, a NaN is larger than infinity.
template <class Bits>
void settle(std::byte* at, Bits infinity, Bits quiet) noexcept {
  Bits bits;
  std::memcpy(&bits, at, sizeof bits);
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  if (static_cast<Bits>(bits & static_cast<Bits>(~kSign)) > infinity) std::memcpy(at, &quiet, sizeof quiet);
}

void settle_nans(Elements& elements) noexcept {
  const std::size_t size = elements.dtype == DIST_COMPLEX64 ? sizeof(float) : size_of(elements.dtype);
  for (std::size_t i = 0; i + size <= elements.bytes.size(); i += size) {
    std::byte* const at = elements.bytes.data() + i;
    switch (elements.dtype) {
      case DIST_F16: settle<uint16_t>(at, 0x7c00, 0x7e00); break;
      case DIST_BF16: settle<uint16_t>(at, 0x7f80, 0x7fc0); break;
      case DIST_F32:
      case DIST_COMPLEX64: settle<uint32_t>(at, 0x7f800000, 0x7fc00000); break;
      case DIST_F64: settle<uint64_t>(at, 0x7ff0000000000000, 0x7ff8000000000000); break;
      default: return;
    }
  }
}

unsigned digit_of(char c) {
  const std::size_t digit = kDigits.find(c);
  if (digit == kDigits.npos) throw Malformed{std::string("\"") + c + "\" is no digit of a tensor"};
  return static_cast<unsigned>(digit);
}

}  // namespace

std::string shape_of(const dist_tensor& tensor) {
  std::string text;
  for (const Type& type : kTypes) {
    if (type.dtype == tensor.dtype) text = type.name;
  }
  if (text.empty()) text = "dtype" + std::to_string(tensor.dtype);
  text += ':';
  for (int32_t i = 0; i < tensor.ndim; ++i)
    text.append(i == 0 ? "" : ",").append(std::to_string(tensor.shape[i]));
  return text;
}

std::string literal_of(const dist_tensor& tensor) {
  Elements elements = elements_of(tensor);
  settle_nans(elements);
  std::string text = shape_of(tensor).append(":");
  for (const std::byte byte : elements.bytes) {
    const auto bits = std::to_integer<unsigned>(byte);
    text.append({kDigits[bits >> 4U], kDigits[bits & 15U]});
  }
  return text;
}

Elements tensor_of(std::string_view literal) {
  const std::size_t first = literal.find(':');
  const std::size_t second = literal.find(':', first + 1);
  Elements elements;
  elements.dtype = {};
  for (const Type& type : kTypes) {
    if (type.name == literal.substr(0, first)) elements.dtype = type.dtype;
  }
  if (first == literal.npos || elements.dtype == 0)
    throw Malformed{"\"" + std::string(literal) + "\" is no tensor"};
  const char* at = literal.data() + first + 1;
  const char* const end = literal.data() + std::min(second, literal.size());
  while (at < end) {
    int64_t size = 0;
    at = std::from_chars(at, end, size).ptr + 1;
    elements.shape.push_back(size);
  }
  elements.bytes.resize(count_of(elements.shape) * size_of(elements.dtype));
  if (second == literal.npos) return elements;
  const std::string_view digits = literal.substr(second + 1);
  if (digits.size() != 2 * elements.bytes.size())
    throw Malformed{"\"" + std::string(literal) + "\" is cut short"};
  for (std::size_t i = 0; i < elements.bytes.size(); ++i) {
    elements.bytes[i] = static_cast<std::byte>(digit_of(digits[2 * i]) << 4U | digit_of(digits[2 * i + 1]));
  }
  return elements;
}

namespace {

// A divided tensor: the whole, and the part of each logical device.
std::string sharded(const dist_value* value, const dist_tensor& whole) {
  dist_partition partition = DIST_PARTITION_INIT;
  if (dist_value_partition(value, &partition) != DIST_OK) return "(sharded)";
  std::string text = "(sharded " + literal_of(whole);
  for (int32_t device = 0; device < partition.num_logical_devices; ++device) {
    dist_tensor shard;
    const bool has_shard = dist_value_shard(value, device, nullptr, &shard) == DIST_OK;
    text.append(" ").append(has_shard ? literal_of(shard) : "none");
  }
  return text.append(")");
}

}  // namespace

std::string tree_of(const dist_value* value, Names& names) {
  const int32_t kind = dist_value_kind_of(value);
  if (kind == 0 || kind == DIST_VALUE_NONE) return "none";
  if (kind == DIST_VALUE_OBJECT) return "object";
  if (kind == DIST_VALUE_TEXT) return "t:" + encode_text(dist_value_text(value));
  if (kind == DIST_VALUE_VARIABLE) return names.known('x', dist_value_variable(value));
  if (kind == DIST_VALUE_TENSOR || kind == DIST_VALUE_SHARDED) {
    dist_tensor view;
    if (dist_value_tensor(value, &view) != DIST_OK) return "tensor";
    return kind == DIST_VALUE_TENSOR ? literal_of(view) : sharded(value, view);
  }
  std::string text = "(";
  for (const Kind& one : kKinds) {
    if (one.kind == kind) text += one.name;
  }
  for (std::size_t i = 0; i < dist_value_size(value); ++i) {
    if (kind == DIST_VALUE_DICT) text.append(" t:").append(encode_text(dist_value_key(value, i)));
    text.append(" ").append(tree_of(dist_value_item(value, i), names));
  }
  return text.append(")");
}

}  // namespace golden::transcript
