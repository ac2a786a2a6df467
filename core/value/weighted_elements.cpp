// SPDX-License-Identifier: Apache-2.0
#include "core/value/weighted_elements.hpp"

#include <cstring>
#include <type_traits>

#include "core/kernel/convert.hpp"

namespace dist {
namespace {

template <class T>
T load(const std::byte* element) noexcept {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <class T>
double read(const std::byte* element) noexcept {
  return static_cast<double>(load<T>(element));
}

template <class T>
uint64_t widen(const std::byte* element) noexcept {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return static_cast<uint64_t>(static_cast<Wide>(load<T>(element)));
}

}  // namespace

// @every dtype but COMPLEX64: a metric has no complex numbers
ReadElement read_element(dist_dtype dtype) noexcept {
  switch (dtype) {
    case DIST_F16:
      return [](const std::byte* at) noexcept -> double { return f32_from_f16(load<uint16_t>(at)); };
    case DIST_BF16:
      return [](const std::byte* at) noexcept -> double { return f32_from_bf16(load<uint16_t>(at)); };
    case DIST_F32: return read<float>;
    case DIST_F64: return read<double>;
    case DIST_I8: return read<int8_t>;
    case DIST_U8: return read<uint8_t>;
    case DIST_I16: return read<int16_t>;
    case DIST_U16: return read<uint16_t>;
    case DIST_I32: return read<int32_t>;
    case DIST_U32: return read<uint32_t>;
    case DIST_I64: return read<int64_t>;
    case DIST_U64: return read<uint64_t>;
    case DIST_BOOL: return [](const std::byte* at) noexcept -> double { return *at != std::byte{0} ? 1 : 0; };
    default: return nullptr;
  }
}

uint64_t read_integer(dist_dtype dtype, const std::byte* element) noexcept {
  switch (dtype) {
    case DIST_I8: return widen<int8_t>(element);
    case DIST_U8: return widen<uint8_t>(element);
    case DIST_I16: return widen<int16_t>(element);
    case DIST_U16: return widen<uint16_t>(element);
    case DIST_I32: return widen<int32_t>(element);
    case DIST_U32: return widen<uint32_t>(element);
    case DIST_I64: return widen<int64_t>(element);
    default: return widen<uint64_t>(element);
  }
}

Walked walked(const dist_tensor& tensor) noexcept {
  Walked out;
  out.data = static_cast<const std::byte*>(tensor.data);
  auto dense = static_cast<int64_t>(dtype_size(tensor.dtype));
  const int64_t size = dense;
  for (int32_t d = tensor.ndim - 1; d >= 0; --d) {
    out.strides[static_cast<std::size_t>(d)] = tensor.strides != nullptr ? tensor.strides[d] * size : dense;
    dense *= tensor.shape[d] > 0 ? tensor.shape[d] : 1;
  }
  return out;
}

Status stretch_weights(const dist_tensor& weights, int32_t ndim, const int64_t* shape, const char* what,
                       Walked* out) noexcept {
  *out = walked(weights);
  bool fits = weights.ndim == 0 || (weights.ndim >= ndim - 1 && weights.ndim <= ndim + 1);
  if (fits && weights.ndim == ndim + 1) fits = weights.shape[ndim] == 1;
  for (int32_t d = 0; d < ndim && fits; ++d) {
    const bool given = d < weights.ndim;
    fits = weights.ndim == 0 || !given || weights.shape[d] == shape[d] || weights.shape[d] == 1;
    if (!given || weights.shape[d] == 1) out->strides[static_cast<std::size_t>(d)] = 0;
  }
  if (fits) return kOk;
  const dist_tensor weighted{nullptr, DIST_F32, ndim, shape, nullptr};
  char given[160];
  char wanted[160];
  describe(weights, given, sizeof given);
  describe(weighted, wanted, sizeof wanted);
  return invalid_argument(
      "`weights` are %s, but must be a scalar or fit %s of shape %s. Dimensions may be 1, and the last one "
      "may be missing.",
      given, what, wanted + 3 /* "f32" */);
}

}  // namespace dist
