// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/axis_reduce.hpp"

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <type_traits>
#include <vector>

#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/kernel/convert.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {
namespace {

// Defines how elements of a type are read and in which type they are summed. 16-bit floats are summed in f32
// and rounded once at the end; integers wrap.
template <class T>
struct Plain {
  using Sum = T;
  static constexpr int64_t kBytes = sizeof(T);
  static T read(const std::byte* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
};
template <float (*convert)(uint16_t) noexcept>
struct Half {
  using Sum = float;
  static constexpr int64_t kBytes = 2;
  static float read(const std::byte* at) noexcept { return convert(Plain<uint16_t>::read(at)); }
};

dist_dtype dtype_of_sum(dist_dtype dtype) noexcept {
  return dtype == DIST_F16 || dtype == DIST_BF16 ? DIST_F32 : dtype;
}

// A tensor's dimensions, divided into those that remain and those that are reduced, each in row-major order.
struct Layout {
  int64_t shape[2][DIST_MAX_NDIM];
  int64_t strides[2][DIST_MAX_NDIM];  // in bytes
  int32_t ndim[2] = {0, 0};
  int64_t count[2] = {1, 1};  // [0]: elements of the result; [1]: elements that are summed for each of them

  Layout(const dist_tensor& tensor, uint32_t mask) noexcept {
    const auto size = static_cast<int64_t>(dtype_size(tensor.dtype));
    int64_t dense = size;
    for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
      const int which = (mask >> i & 1u) != 0 ? 1 : 0;
      const int32_t at = ndim[which]++;
      shape[which][at] = tensor.shape[i];
      strides[which][at] = tensor.strides != nullptr ? tensor.strides[i] * size : dense;
      count[which] *= tensor.shape[i];
      dense *= tensor.shape[i];
    }
  }

  // The offset in bytes of element `index` of either half from the tensor's data. Dimension 0 of a half is
  // the innermost.
  int64_t offset(int which, int64_t index) const noexcept {
    int64_t bytes = 0;
    for (int32_t i = 0; i < ndim[which]; ++i) {
      bytes += index % shape[which][i] * strides[which][i];
      index /= shape[which][i];
    }
    return bytes;
  }
};

template <class Sum>
Sum plus(Sum a, Sum b) noexcept {
  if constexpr (std::is_integral_v<Sum>) {
    return static_cast<Sum>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

constexpr int64_t kRun = 512;  // number of results that are summed together, few enough for the nearest cache

// sums[k] += the element at row + k * step, for k < run. `begin`: this is the first addition, so sums[k] =
// the element.
template <class Element, int64_t parts>
void add_row(typename Element::Sum* sums, const std::byte* row, int64_t run, int64_t step,
             bool begin) noexcept {
  const auto add = [&](int64_t stride) {
    for (int64_t k = 0; k < run; ++k) {
      for (int64_t part = 0; part < parts; ++part) {
        const auto value = Element::read(row + k * stride + part * Element::kBytes);
        auto& sum = sums[k * parts + part];
        sum = begin ? value : plus(sum, value);
      }
    }
  };
  constexpr int64_t kDense = parts * Element::kBytes;
  if (step == kDense) {
    add(kDense);  // a constant, so that the compiler vectorizes the loop
  } else {
    add(step);
  }
}

// Computes sums[first .. last-1] of one tensor, each in row-major order. `parts` is 2 for complex numbers,
// whose parts are summed separately.
template <class Element, int64_t parts>
void sum_part(const std::byte* data, const Layout& layout, int64_t first, int64_t last,
              std::byte* to) noexcept {
  auto* const sums = reinterpret_cast<typename Element::Sum*>(to);
  const int64_t inner = layout.ndim[0] != 0 ? layout.shape[0][0] : 1;
  const int64_t step = layout.ndim[0] != 0 ? layout.strides[0][0] : 0;
  const int64_t inner_rows = layout.ndim[1] != 0 ? layout.shape[1][0] : 1;
  const int64_t row_step = layout.ndim[1] != 0 ? layout.strides[1][0] : 0;
  while (first < last) {
    // The results of a run have elements with a constant stride.
    const int64_t run = std::min({kRun, last - first, inner - first % inner});
    const std::byte* const base = data + layout.offset(0, first);
    for (int64_t j = 0; j < layout.count[1]; j += inner_rows) {
      const std::byte* const row = base + layout.offset(1, j);
      for (int64_t i = 0; i < inner_rows; ++i) {
        add_row<Element, parts>(sums + first * parts, row + i * row_step, run, step, j + i == 0);
      }
    }
    first += run;
  }
}

using SumPart = void (*)(const std::byte*, const Layout&, int64_t, int64_t, std::byte*) noexcept;

SumPart sum_part_of(dist_dtype dtype) noexcept {
  switch (dtype) {
    case DIST_F16: return sum_part<Half<f32_from_f16>, 1>;
    case DIST_BF16: return sum_part<Half<f32_from_bf16>, 1>;
    case DIST_F32: return sum_part<Plain<float>, 1>;
    case DIST_F64: return sum_part<Plain<double>, 1>;
    case DIST_COMPLEX64: return sum_part<Plain<float>, 2>;
    default: break;
  }
  switch (dtype_size(dtype)) {  // integers wrap, so signed and unsigned sums have the same bits
    case 1: return sum_part<Plain<uint8_t>, 1>;
    case 2: return sum_part<Plain<uint16_t>, 1>;
    case 4: return sum_part<Plain<uint32_t>, 1>;
    default: return sum_part<Plain<uint64_t>, 1>;
  }
}

// Computes the replicas' sums, one row for each tensor that has elements.
Status sum_each(const CrossReplica& context, std::span<const dist_tensor> sources,
                std::span<const Layout> layouts, std::byte* sums, std::size_t row_bytes) {
  const SumPart sum = sum_part_of(sources[0].dtype);
  const int64_t count = layouts[0].count[0];
  const int64_t runs = (count + kRun - 1) / kRun;
  int64_t elements = 0;
  for (const Layout& layout : layouts) elements += layout.count[0] * layout.count[1];
  const auto body = [&](int64_t first, int64_t last) {
    const FpEnvironment environment;
    for (int64_t task = first; task < last; ++task) {
      const auto r = static_cast<std::size_t>(task / runs);
      const int64_t begin = task % runs * kRun;
      if (layouts[r].count[1] == 0) continue;
      sum(static_cast<const std::byte*>(sources[r].data), layouts[r], begin, std::min(begin + kRun, count),
          sums + r * row_bytes);
    }
  };
  const int64_t tasks = runs * static_cast<int64_t>(sources.size());
  const std::size_t bytes = static_cast<std::size_t>(elements) * dtype_size(sources[0].dtype);
  if (bytes > FoldPlan::kSerialBytes) return context.arena->parallel_for(0, tasks, 1, body);
  body(0, tasks);
  return kOk;
}

// Collects the sums of the replicas of all workers, and the number of elements in each.
Status join_sums(AcrossWorkers& workers, ValueRef* sums, std::pmr::vector<int64_t>* counts) {
  ValueRef joined;
  DIST_TRY(workers.join((*sums)->tensor(), 0, &joined));
  *sums = std::move(joined);
  const auto n = static_cast<int64_t>(counts->size());
  DIST_TRY(workers.join({counts->data(), DIST_I64, 1, &n, nullptr}, 0, &joined));
  const dist_tensor all = joined->tensor();
  const auto* const first = static_cast<const int64_t*>(all.data);
  counts->assign(first, first + all.shape[0]);
  return kOk;
}

void round_to_half(dist_dtype dtype, const float* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const uint16_t bits = dtype == DIST_F16 ? f16_from_f32(from[i]) : bf16_from_f32(from[i]);
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

Status check_axes(std::span<const int32_t> axes, int32_t ndim, const char* where,
                  uint32_t* out_mask) noexcept {
  uint32_t mask = 0;
  for (const int32_t axis : axes) {
    if (ndim == 0) return invalid_argument("%s is a scalar, which has no axis %d to reduce", where, axis);
    if (axis < -ndim || axis >= ndim) {
      return invalid_argument("%s: axis %d is out of range. With %d dimensions, it must be %d to %d.", where,
                              axis, ndim, -ndim, ndim - 1);
    }
    const uint32_t bit = 1u << (axis < 0 ? axis + ndim : axis);
    if ((mask & bit) != 0) return invalid_argument("%s: axis %d is given twice", where, axis);
    mask |= bit;
  }
  *out_mask = mask;
  return kOk;
}

Status reduce_axes(const CrossReplica& context, dist_reduce_op op, std::span<const dist_tensor> sources,
                   uint32_t mask, ValueRef* out) {
  Memory& memory = *context.memory;
  const dist_dtype dtype = sources[0].dtype;
  const dist_dtype sum_dtype = dtype_of_sum(dtype);
  std::pmr::vector<Layout> layouts(&memory);
  layouts.reserve(sources.size());
  for (const dist_tensor& source : sources) layouts.emplace_back(source, mask);
  const auto count = static_cast<std::size_t>(layouts[0].count[0]);
  const std::size_t row_bytes = count * dtype_size(sum_dtype);
  const int64_t scratch_shape[] = {static_cast<int64_t>(sources.size()), layouts[0].count[0]};
  ValueRef scratch;
  DIST_TRY(Value::copy_tensor(memory, {nullptr, sum_dtype, 2, scratch_shape, nullptr}, &scratch));
  DIST_TRY(sum_each(context, sources, layouts, static_cast<std::byte*>(scratch->tensor().data), row_bytes));
  std::pmr::vector<int64_t> counts(&memory);
  for (const Layout& layout : layouts) counts.push_back(layout.count[1]);
  if (context.workers != nullptr) DIST_TRY(join_sums(*context.workers, &scratch, &counts));

  auto* const sums = static_cast<std::byte*>(scratch->tensor().data);
  std::pmr::vector<const std::byte*> rows(&memory);
  double elements = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    elements += static_cast<double>(counts[r]);
    if (counts[r] != 0) rows.push_back(sums + r * row_bytes);
  }
  if (rows.empty() && count != 0) {  // there are no elements at all: 0 for SUM, 0/0 for MEAN
    std::memset(sums, 0, row_bytes);
    rows.push_back(sums);
  }

  int64_t shape[DIST_MAX_NDIM];
  int32_t ndim = 0;
  for (int32_t i = 0; i < sources[0].ndim; ++i) {
    if ((mask >> i & 1u) == 0) shape[ndim++] = sources[0].shape[i];
  }
  ValueRef result;
  const dist_dtype result_dtype = op == DIST_REDUCE_MEAN ? dtype_of_mean(dtype) : dtype;
  DIST_TRY(Value::copy_tensor(memory, {nullptr, result_dtype, ndim, shape, nullptr}, &result));
  auto* const data = static_cast<std::byte*>(result->tensor().data);
  const bool half = sum_dtype != dtype;
  std::pmr::vector<float> wide(half ? count : 0, &memory);
  FoldPlan plan(memory, context.numerics);
  plan.add(sum_dtype, op, elements, count, rows, half ? static_cast<void*>(wide.data()) : data);
  DIST_TRY(plan.run(*context.arena));
  if (half) round_to_half(dtype, wide.data(), data, count);
  *out = std::move(result);
  return kOk;
}

}  // namespace dist
