// SPDX-License-Identifier: Apache-2.0
#include "elements.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace golden {
namespace {

struct Type {
  std::string_view name;
  dist_dtype dtype;
  std::size_t size;
};
// @every dtype
constexpr Type kTypes[] = {
    {"float16", DIST_F16, 2},         {"bfloat16", DIST_BF16, 2}, {"float32", DIST_F32, 4},
    {"float64", DIST_F64, 8},         {"int8", DIST_I8, 1},       {"uint8", DIST_U8, 1},
    {"int16", DIST_I16, 2},           {"uint16", DIST_U16, 2},    {"int32", DIST_I32, 4},
    {"uint32", DIST_U32, 4},          {"int64", DIST_I64, 8},     {"uint64", DIST_U64, 8},
    {"complex64", DIST_COMPLEX64, 8}, {"bool", DIST_BOOL, 1},
};

bool is_float(dist_dtype dtype) noexcept { return dtype >= DIST_F16 && dtype <= DIST_F64; }

// A 16-bit float: `precision` bits of significand including the hidden one, and exponents from `lowest`.
struct Half {
  int precision;
  int lowest;
};
constexpr Half kF16{11, -14};
constexpr Half kBf16{8, -126};

const Half& half_of(dist_dtype dtype) noexcept { return dtype == DIST_F16 ? kF16 : kBf16; }

// Rounds to nearest, ties to even.
uint16_t half_from(const Half& half, double number) noexcept {
  const int fraction = half.precision - 1;
  const unsigned sign = std::signbit(number) ? 0x8000u : 0u;
  const unsigned infinity = (0x7fffu >> fraction) << fraction;
  const double size = std::fabs(number);
  if (std::isnan(number)) return static_cast<uint16_t>(sign | infinity | 1u << (fraction - 1));
  if (size == 0 || std::isinf(size)) return static_cast<uint16_t>(sign | (size == 0 ? 0u : infinity));
  const int exponent = std::max(std::ilogb(size), half.lowest);
  // Computes in units of the last place, so that a carry goes into the exponent's bits.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, fraction - exponent)));
  const unsigned bits = units + (static_cast<unsigned>(exponent - half.lowest) << fraction);
  return static_cast<uint16_t>(sign | (exponent > -half.lowest + 1 || bits > infinity ? infinity : bits));
}

double half_to(const Half& half, uint16_t bits) noexcept {
  const int fraction = half.precision - 1;
  const int exponent = (bits & 0x7fff) >> fraction;
  const unsigned rest = bits & ((1u << fraction) - 1);
  const int last = 0x7fff >> fraction;
  double size = exponent == 0 ? std::ldexp(rest, half.lowest - fraction)
                              : std::ldexp(rest | 1u << fraction, exponent - 1 + half.lowest - fraction);
  if (exponent == last) {
    size = rest == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

// Calls fn with a value of the C type of a dtype's elements. The caller handles complex and 16-bit floats.
template <class Fn>
void with_type(dist_dtype dtype, const Fn& fn) {
  switch (dtype) {
    case DIST_F32: return fn(float{});
    case DIST_F64: return fn(double{});
    case DIST_I8: return fn(int8_t{});
    case DIST_U8:
    case DIST_BOOL: return fn(uint8_t{});
    case DIST_I16: return fn(int16_t{});
    case DIST_U16: return fn(uint16_t{});
    case DIST_I32: return fn(int32_t{});
    case DIST_U32: return fn(uint32_t{});
    case DIST_I64: return fn(int64_t{});
    case DIST_U64: return fn(uint64_t{});
    default: throw Malformed{"dtype " + std::to_string(dtype)};
  }
}

template <class T>
T integer_of(const Json& json) {
  const std::string text = json.IsString() ? std::string(text_of(json)) : to_text(json);
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    throw Malformed{"\"" + text + "\" is no integer of its type"};
  }
  return value;
}

double load_number(dist_dtype dtype, const std::byte* at) {
  if (dtype == DIST_F16 || dtype == DIST_BF16) return half_to(half_of(dtype), load<uint16_t>(at));
  if (dtype == DIST_COMPLEX64) return load<float>(at);
  double number = 0;
  with_type(dtype, [&]<class T>(T) { number = static_cast<double>(load<T>(at)); });
  return number;
}

void store_number(dist_dtype dtype, double number, std::byte* at) {
  if (dtype == DIST_F16 || dtype == DIST_BF16) return store(at, half_from(half_of(dtype), number));
  if (dtype == DIST_BOOL) return store<uint8_t>(at, number != 0 ? 1 : 0);
  if (dtype == DIST_COMPLEX64) {
    store(at, static_cast<float>(number));
    return store(at + sizeof(float), 0.0F);
  }
  with_type(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      store(at, number < 0 ? static_cast<T>(static_cast<int64_t>(number))
                           : static_cast<T>(static_cast<uint64_t>(number)));
    } else {
      store(at, static_cast<T>(number));
    }
  });
}

void store_json(dist_dtype dtype, const Json& json, const Json* bits, std::byte* at) {
  if (dtype == DIST_COMPLEX64) {
    if (json.Size() != 2) throw Malformed{"a complex number is [real, imaginary]"};
    store_number(DIST_F32, number_of(json[0]), at);
    store_number(DIST_F32, number_of(json[1]), at + sizeof(float));
  } else if (dtype == DIST_BOOL) {
    store<uint8_t>(at, json.GetBool() ? 1 : 0);
  } else if (!is_float(dtype)) {
    with_type(dtype, [&]<class T>(T) {
      if constexpr (std::is_integral_v<T>) store(at, integer_of<T>(json));
    });
  } else if (bits == nullptr) {
    store_number(dtype, number_of(json), at);
  } else if (size_of(dtype) == 2) {
    store(at, integer_of<uint16_t>(*bits));
  } else if (size_of(dtype) == 4) {
    store(at, integer_of<uint32_t>(*bits));
  } else {
    store(at, integer_of<uint64_t>(*bits));
  }
}

}  // namespace

std::size_t Elements::count() const noexcept {
  std::size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

dist_tensor Elements::view() noexcept {
  return {bytes.data(), dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
}

std::optional<dist_dtype> dtype_of(std::string_view name) noexcept {
  for (const Type& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return std::nullopt;
}

const char* name_of(dist_dtype dtype) noexcept {
  for (const Type& type : kTypes) {
    if (type.dtype == dtype) return type.name.data();
  }
  return "?";
}

std::size_t size_of(dist_dtype dtype) noexcept {
  for (const Type& type : kTypes) {
    if (type.dtype == dtype) return type.size;
  }
  return 0;
}

std::size_t count_of(const std::vector<int64_t>& shape) {
  std::size_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, static_cast<std::size_t>(size), &count)) {
      throw Malformed{"a shape of " + std::to_string(size)};
    }
  }
  return count;
}

Elements elements_of(const Json& tensor) {
  const std::string_view name = text_of(member(tensor, "dtype"));
  const std::optional<dist_dtype> dtype = dtype_of(name);
  if (!dtype) throw Malformed{"dtype \"" + std::string(name) + "\""};
  Elements elements{*dtype, {}, {}};
  for (const Json& size : member(tensor, "shape").GetArray()) elements.shape.push_back(size.GetInt64());
  const Json& data = member(tensor, "data");
  const Json* const bits = find(tensor, "bits");
  const std::size_t count = count_of(elements.shape);
  if (data.Size() != count || (bits != nullptr && bits->Size() != count)) {
    throw Malformed{"a tensor of " + std::to_string(count) + " elements has data of another length"};
  }
  elements.bytes.resize(count * size_of(*dtype));
  for (rapidjson::SizeType i = 0; i < data.Size(); ++i) {
    store_json(*dtype, data[i], bits != nullptr ? &(*bits)[i] : nullptr,
               elements.bytes.data() + i * size_of(*dtype));
  }
  return elements;
}

Elements elements_of(const dist_tensor& tensor) {
  Elements elements{tensor.dtype, {tensor.shape, tensor.shape + tensor.ndim}, {}};
  const std::size_t size = size_of(tensor.dtype);
  const std::size_t count = elements.count();
  elements.bytes.resize(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    auto from = static_cast<int64_t>(i);
    if (tensor.strides != nullptr) {
      auto rest = from;
      from = 0;
      for (int32_t d = tensor.ndim - 1; d >= 0; --d) {
        from += rest % tensor.shape[d] * tensor.strides[d];
        rest /= tensor.shape[d];
      }
    }
    std::memcpy(elements.bytes.data() + i * size,
                static_cast<const std::byte*>(tensor.data) + from * static_cast<int64_t>(size), size);
  }
  return elements;
}

Elements elements_of(dist_dtype dtype, const std::vector<int64_t>& shape,
                     const std::vector<double>& numbers) {
  Elements elements{dtype, shape, {}};
  if (count_of(shape) != numbers.size()) throw Malformed{"as many numbers as elements"};
  elements.bytes.resize(numbers.size() * size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store_number(dtype, numbers[i], elements.bytes.data() + i * size_of(dtype));
  }
  return elements;
}

std::vector<double> numbers_of(const Elements& elements) {
  std::vector<double> numbers(elements.count());
  const std::size_t size = size_of(elements.dtype);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = load_number(elements.dtype, elements.bytes.data() + i * size);
  }
  return numbers;
}

Json to_json(const Elements& elements, JsonMemory& memory) {
  const dist_dtype dtype = elements.dtype;
  const std::size_t size = size_of(dtype);
  Json shape(rapidjson::kArrayType);
  for (const int64_t length : elements.shape) shape.PushBack(length, memory);
  Json data(rapidjson::kArrayType);
  Json bits(rapidjson::kArrayType);
  for (const std::byte *at = elements.bytes.data(), *end = at + elements.bytes.size(); at != end;
       at += size) {
    if (dtype == DIST_COMPLEX64) {
      Json pair(rapidjson::kArrayType);
      pair.PushBack(number_to_json(load<float>(at)), memory);
      pair.PushBack(number_to_json(load<float>(at + sizeof(float))), memory);
      data.PushBack(pair, memory);
    } else if (dtype == DIST_BOOL) {
      data.PushBack(load<uint8_t>(at) != 0, memory);
    } else if (is_float(dtype)) {
      data.PushBack(number_to_json(load_number(dtype, at)), memory);
      uint64_t pattern = 0;
      std::memcpy(&pattern, at, size);
      bits.PushBack(Json(std::to_string(pattern), memory), memory);
    } else {
      with_type(dtype, [&]<class T>(T) {
        if constexpr (std::is_integral_v<T>) data.PushBack(Json(std::to_string(load<T>(at)), memory), memory);
      });
    }
  }
  Json json(rapidjson::kObjectType);
  json.AddMember("kind", "tensor", memory);
  json.AddMember("dtype", rapidjson::StringRef(name_of(dtype)), memory);
  json.AddMember("shape", shape, memory);
  json.AddMember("data", data, memory);
  if (is_float(dtype)) json.AddMember("bits", bits, memory);
  return json;
}

bool equal(const Elements& a, const Elements& b) noexcept {
  if (a.dtype != b.dtype || a.shape != b.shape || a.bytes.size() != b.bytes.size()) return false;
  // The parts of a complex number are compared like floats.
  const dist_dtype dtype = a.dtype == DIST_COMPLEX64 ? DIST_F32 : a.dtype;
  const std::size_t size = size_of(dtype);
  for (std::size_t at = 0; at < a.bytes.size(); at += size) {
    if (std::memcmp(&a.bytes[at], &b.bytes[at], size) == 0) continue;
    if (!is_float(dtype) || !std::isnan(load_number(dtype, &a.bytes[at])) ||
        !std::isnan(load_number(dtype, &b.bytes[at]))) {
      return false;
    }
  }
  return true;
}

double number_of(const Json& json) {
  if (!json.IsString()) return json.GetDouble();
  const std::string_view text = text_of(json);
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw Malformed{"\"" + std::string(text) + "\" is no number"};
}

Json number_to_json(double number) {
  if (std::isnan(number)) return Json("nan");
  if (std::isinf(number)) return number < 0 ? Json("-inf") : Json("inf");
  return Json(number);
}

}  // namespace golden
