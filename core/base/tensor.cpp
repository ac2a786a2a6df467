// SPDX-License-Identifier: Apache-2.0
#include "core/base/tensor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace dist {
namespace {

struct DtypeTraits {
  const char* name;
  bool floating;
  bool integer;
};

// Indexed by the dtype's number. @every dtype
constexpr DtypeTraits kDtypes[] = {
    {"no dtype", false, false}, {"f16", true, false},       {"bf16", true, false},  {"f32", true, false},
    {"f64", true, false},       {"i8", false, true},        {"u8", false, true},    {"i16", false, true},
    {"u16", false, true},       {"i32", false, true},       {"u32", false, true},   {"i64", false, true},
    {"u64", false, true},       {"complex64", true, false}, {"bool", false, false},
};
constexpr int32_t kNumDtypes = sizeof kDtypes / sizeof kDtypes[0];
static_assert(kNumDtypes == kLastDtype + 1, "kDtypes has a row for each dtype, by its number");

const DtypeTraits& traits(dist_dtype dtype) noexcept {
  return kDtypes[dtype > 0 && dtype < kNumDtypes ? dtype : 0];
}

// Copies dimension `dim` and the dimensions inside it. If the innermost run is dense on both sides, it is
// copied by one memcpy().
void copy_dimension(const std::byte* from, const int64_t* from_strides, std::byte* to,
                    const int64_t* to_strides, const int64_t* shape, int32_t ndim,
                    std::size_t size) noexcept {
  if (ndim == 0) {
    std::memcpy(to, from, size);
    return;
  }
  if (ndim == 1 && from_strides[0] == 1 && to_strides[0] == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(shape[0]) * size);
    return;
  }
  const auto step = static_cast<int64_t>(size);
  for (int64_t i = 0; i < shape[0]; ++i) {
    copy_dimension(from + i * from_strides[0] * step, from_strides + 1, to + i * to_strides[0] * step,
                   to_strides + 1, shape + 1, ndim - 1, size);
  }
}

// Checks that all elements of a nonempty tensor have valid addresses. Sums up, in bytes, how far they extend
// below and above the first one.
Status check_reach(const dist_tensor& tensor, const char* what, std::size_t bytes) noexcept {
  const auto size = static_cast<int64_t>(dtype_size(tensor.dtype));
  const auto at = reinterpret_cast<uintptr_t>(tensor.data);
  int64_t below = 0;
  int64_t above = static_cast<int64_t>(bytes);
  if (tensor.strides != nullptr) {
    above = size;
    for (int32_t i = 0; i < tensor.ndim; ++i) {
      int64_t reach = 0;
      int64_t* const side = tensor.strides[i] < 0 ? &below : &above;
      if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
          __builtin_mul_overflow(reach, size, &reach) || __builtin_add_overflow(*side, reach, side)) {
        return invalid_argument("%s: `strides[%d]` is %lld, which places elements more than 2^63 bytes apart",
                                what, i, static_cast<long long>(tensor.strides[i]));
      }
    }
  }
  uintptr_t end = 0;
  if (!__builtin_add_overflow(at, static_cast<uintptr_t>(above), &end) &&
      at >= uintptr_t{0} - static_cast<uintptr_t>(below)) {
    return kOk;
  }
  return invalid_argument("%s: its elements reach beyond the address space. Check data, shape and strides.",
                          what);
}

// The address range of a view, and the greatest common divisor of the distances between its elements.
struct Span {
  uintptr_t low;
  uintptr_t high;  // one past the last byte
  uint64_t step;   // 0: there is only one element
};

Span span_of(const dist_tensor& tensor) noexcept {
  const std::size_t size = dtype_size(tensor.dtype);
  int64_t made[DIST_MAX_NDIM];
  const int64_t* const strides = strides_of(tensor, made);
  const auto at = reinterpret_cast<uintptr_t>(tensor.data);
  Span span{at, at + size, 0};
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] <= 1) continue;
    const auto stride = static_cast<uint64_t>(strides[i]) * size;
    const uint64_t reach = stride * static_cast<uint64_t>(tensor.shape[i] - 1);
    (strides[i] < 0 ? span.low : span.high) += reach;  // modulo 2^64, as the stride is
    span.step = std::gcd(span.step, strides[i] < 0 ? uint64_t{0} - stride : stride);
  }
  return span;
}

// The absolute stride of a dimension.
uint64_t step_of(const dist_tensor& tensor, int32_t dimension) noexcept {
  const auto stride = static_cast<uint64_t>(tensor.strides[dimension]);
  return tensor.strides[dimension] < 0 ? uint64_t{0} - stride : stride;
}

}  // namespace

const int64_t* strides_of(const dist_tensor& tensor, int64_t (&made)[DIST_MAX_NDIM]) noexcept {
  if (tensor.strides != nullptr) return tensor.strides;
  int64_t step = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    made[i] = step;
    step *= tensor.shape[i];
  }
  return made;
}

bool may_share_memory(const dist_tensor& a, const dist_tensor& b) noexcept {
  const Span first = span_of(a);
  const Span second = span_of(b);
  if (first.high <= second.low || second.high <= first.low) return false;
  const uint64_t step = std::gcd(first.step, second.step);
  if (step == 0) return true;
  // The offset of an element modulo `step` is the same for all elements of a view.
  const auto from = reinterpret_cast<uintptr_t>(a.data);
  const auto to = reinterpret_cast<uintptr_t>(b.data);
  const uint64_t behind = to >= from ? (to - from) % step : (step - (from - to) % step) % step;
  return behind < dtype_size(a.dtype) || step - behind < dtype_size(b.dtype);
}

const char* dtype_name(dist_dtype dtype) noexcept { return traits(dtype).name; }
bool dtype_is_floating(dist_dtype dtype) noexcept { return traits(dtype).floating; }
bool dtype_is_integer(dist_dtype dtype) noexcept { return traits(dtype).integer; }

dist_dtype dtype_of_mean(dist_dtype dtype) noexcept {
  if (!dtype_is_integer(dtype)) return dtype;
  return dtype_size(dtype) >= 4 ? DIST_F64 : DIST_F32;
}

// @every operator
const char* op_name(dist_reduce_op op) noexcept {
  switch (op) {
    case DIST_REDUCE_SUM: return "SUM";
    case DIST_REDUCE_MEAN: return "MEAN";
    case DIST_REDUCE_MIN: return "MIN";
    case DIST_REDUCE_MAX: return "MAX";
    case DIST_REDUCE_PROD: return "PROD";
    case DIST_REDUCE_USER: return "USER";
    default: return "no op";
  }
}

Status check_numerics(dist_numerics numerics) noexcept {
  if (numerics >= DIST_NUMERICS_ORDERED && numerics <= DIST_NUMERICS_TREE) return kOk;
  return invalid_argument(
      "`numerics` is `%d`: use `DIST_NUMERICS_ORDERED`, `DIST_NUMERICS_REPRODUCIBLE` or `DIST_NUMERICS_TREE`",
      numerics);
}

Status check_op(dist_reduce_op op, dist_dtype dtype) noexcept {
  if (op < DIST_REDUCE_SUM || op > DIST_REDUCE_PROD) {
    return invalid_argument("`op` is `%d`: use `DIST_REDUCE_SUM` or another `DIST_REDUCE_...`", op);
  }
  const bool order = op == DIST_REDUCE_MIN || op == DIST_REDUCE_MAX;
  if (dtype == DIST_COMPLEX64 && order) {
    return invalid_argument("%s of complex64: complex numbers have no order; use SUM, MEAN or PROD",
                            op_name(op));
  }
  if (dtype == DIST_BOOL && !order) {
    return invalid_argument("%s of bool: use MIN (and), MAX (or), or convert to a number", op_name(op));
  }
  return kOk;
}

Status check_tensor(const dist_tensor& tensor, const char* what, TensorSize* out) noexcept {
  const std::size_t size = dtype_size(tensor.dtype);
  if (size == 0)
    return invalid_argument("%s: %d is not a dtype. Use `DIST_F32` or another `DIST_...` type.", what,
                            tensor.dtype);
  if (tensor.ndim < 0 || tensor.ndim > DIST_MAX_NDIM) {
    return invalid_argument("%s: `ndim` is %d, but must be 0 to %d", what, tensor.ndim, DIST_MAX_NDIM);
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return invalid_argument("%s: `ndim` is %d, but `shape` is `NULL`", what, tensor.ndim);
  }
  TensorSize measured{1, 0, true};
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] < 0) {
      return invalid_argument("%s: `shape[%d]` is %lld, but must be 0 or more", what, i,
                              static_cast<long long>(tensor.shape[i]));
    }
    if (tensor.shape[i] == 0) measured.elements = 0;
  }
  // Sizes are multiplied only if none is 0: [2^62, 4, 0] is an empty tensor, not an overflow.
  int64_t bytes = static_cast<int64_t>(size);
  for (int32_t i = 0; i < tensor.ndim && measured.elements != 0; ++i) {
    if (__builtin_mul_overflow(bytes, tensor.shape[i], &bytes)) {
      return invalid_argument("%s: the tensor has more than 2^63 bytes", what);
    }
    measured.elements *= tensor.shape[i];
  }
  measured.bytes = measured.elements == 0 ? 0 : static_cast<std::size_t>(bytes);
  if (measured.elements != 0 && tensor.data == nullptr) {
    return invalid_argument("%s: `data` is `NULL`, but the tensor has %lld elements", what,
                            static_cast<long long>(measured.elements));
  }
  if (measured.elements != 0) DIST_TRY(check_reach(tensor, what, measured.bytes));
  if (tensor.strides != nullptr && measured.elements != 0) {
    int64_t dense = 1;
    for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
      if (tensor.shape[i] != 1 && tensor.strides[i] != dense) measured.contiguous = false;
      dense *= tensor.shape[i];
    }
  }
  *out = measured;
  return kOk;
}

Status check_output(const dist_tensor& tensor, const char* what, TensorSize* out) noexcept {
  DIST_TRY(check_tensor(tensor, what, out));
  if (out->contiguous) return kOk;
  // Dimensions with more than one element, ordered by absolute stride.
  int32_t order[DIST_MAX_NDIM];
  int32_t n = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] > 1) order[n++] = i;
  }
  std::sort(order, order + n, [&](int32_t a, int32_t b) { return step_of(tensor, a) < step_of(tensor, b); });
  uint64_t span = 0;  // from the first to the last element of the dimensions so far; was checked
  for (int32_t k = 0; k < n; ++k) {
    const uint64_t step = step_of(tensor, order[k]);
    if (step <= span || step == 0) {
      return invalid_argument(
          "%s: `strides[%d]` is %lld, with which several elements can have the same address. Each element of "
          "an output needs an address of its own.",
          what, order[k], static_cast<long long>(tensor.strides[order[k]]));
    }
    span += (static_cast<uint64_t>(tensor.shape[order[k]]) - 1) * step;
  }
  return kOk;
}

bool same_shape(const dist_tensor& a, const dist_tensor& b) noexcept {
  if (a.ndim != b.ndim) return false;
  for (int32_t i = 0; i < a.ndim; ++i) {
    if (a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

void describe(const dist_tensor& tensor, char* text, std::size_t size) noexcept {
  int used = std::snprintf(text, size, "%s[", dtype_name(tensor.dtype));
  for (int32_t i = 0; i < tensor.ndim && used > 0 && static_cast<std::size_t>(used) < size; ++i) {
    const auto at = static_cast<std::size_t>(used);
    used += std::snprintf(text + at, size - at, i == 0 ? "%lld" : ", %lld",
                          static_cast<long long>(tensor.shape[i]));
  }
  if (used > 0 && static_cast<std::size_t>(used) < size) {
    std::snprintf(text + used, size - static_cast<std::size_t>(used), "]");
  }
}

void copy_elements(const dist_tensor& from, const dist_tensor& to) noexcept {
  for (int32_t i = 0; i < from.ndim; ++i) {
    if (from.shape[i] == 0) return;
  }
  int64_t made_from[DIST_MAX_NDIM];
  int64_t made_to[DIST_MAX_NDIM];
  copy_dimension(static_cast<const std::byte*>(from.data), strides_of(from, made_from),
                 static_cast<std::byte*>(to.data), strides_of(to, made_to), from.shape, from.ndim,
                 dtype_size(from.dtype));
}

}  // namespace dist
