// SPDX-License-Identifier: Apache-2.0
#include "core/inspect/drift.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/cross_replica/fold.hpp"
#include "core/inspect/number.hpp"
#include "core/kernel/convert.hpp"

namespace dist {
namespace {

constexpr int64_t kBlockBytes = 64 << 10;  // of one copy: compared in one go

template <class T>
T load(const std::byte* element) noexcept {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

bool is_nan(dist_dtype dtype, const std::byte* element) noexcept {
  switch (dtype) {
    case DIST_F16: return std::isnan(f32_from_f16(load<uint16_t>(element)));
    case DIST_BF16: return std::isnan(f32_from_bf16(load<uint16_t>(element)));
    case DIST_F32: return std::isnan(load<float>(element));
    case DIST_F64: return std::isnan(load<double>(element));
    default: return false;
  }
}

bool same_element(dist_dtype dtype, const std::byte* a, const std::byte* b) noexcept {
  if (dtype == DIST_COMPLEX64) {
    return same_element(DIST_F32, a, b) && same_element(DIST_F32, a + sizeof(float), b + sizeof(float));
  }
  if (std::memcmp(a, b, dtype_size(dtype)) == 0) return true;
  if (dtype == DIST_BOOL) return *a != std::byte{0} && *b != std::byte{0};
  return is_nan(dtype, a) && is_nan(dtype, b);
}

// The copies of a variable, element by element.
class Copies {
 public:
  explicit Copies(const Variable& variable) noexcept
      : variable_(variable), size_(static_cast<int64_t>(dtype_size(variable.dtype()))) {}

  int32_t count() const noexcept { return variable_.num_copies(); }
  int64_t elements() const noexcept { return variable_.elements(); }
  int64_t element_bytes() const noexcept { return size_; }
  const std::byte* at(int32_t copy, int64_t element) const noexcept {
    return static_cast<const std::byte*>(variable_.component(LocalReplica{copy}).data) + element * size_;
  }
  bool same(int32_t a, int32_t b, int64_t element) const noexcept {
    return same_element(variable_.dtype(), at(a, element), at(b, element));
  }

  // The first of [first, last) in which any copy differs from copy 0, or `last`.
  int64_t first_difference(int64_t first, int64_t last) const noexcept {
    for (int32_t r = 1; r < count(); ++r) {
      const auto bytes = static_cast<std::size_t>((last - first) * size_);
      if (std::memcmp(at(0, first), at(r, first), bytes) == 0) continue;
      int64_t i = first;
      while (i < last && same(0, r, i)) ++i;
      last = i;
    }
    return last;
  }

 private:
  const Variable& variable_;
  const int64_t size_;
};

Status first_difference(Arena& arena, const Copies& copies, int64_t* out) {
  const int64_t block = kBlockBytes / copies.element_bytes();
  const int64_t blocks = (copies.elements() + block - 1) / block;
  const int64_t grain = int64_t{FoldPlan::kSerialBytes} / (kBlockBytes * copies.count());
  std::atomic<int64_t> first{copies.elements()};
  DIST_TRY(arena.parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      // Blocks behind a difference that is known already do not matter.
      int64_t known = first.load(std::memory_order_relaxed);
      if (b * block >= known) return;
      const int64_t last = std::min((b + 1) * block, known);
      const int64_t found = copies.first_difference(b * block, last);
      while (found < last && found < known &&
             !first.compare_exchange_weak(known, found, std::memory_order_relaxed)) {
      }
    }
  }));
  *out = first.load(std::memory_order_relaxed);
  return kOk;
}

// The replica whose element most copies have; of equally many the lowest.
int32_t most_common(const Copies& copies, int64_t element) noexcept {
  int32_t most = 0;
  int32_t best = 0;
  for (int32_t r = 0; r < copies.count(); ++r) {
    int32_t equal = 0;
    for (int32_t other = r; other < copies.count(); ++other) equal += copies.same(r, other, element) ? 1 : 0;
    if (equal > most) {
      most = equal;
      best = r;
    }
  }
  return best;
}

// "[1, 2]": where element `element` of a row-major tensor is.
void write_index(const dist_tensor& tensor, int64_t element, char* text, std::size_t size) noexcept {
  int64_t index[DIST_MAX_NDIM];
  for (int32_t d = tensor.ndim - 1; d >= 0; --d) {
    index[d] = element % tensor.shape[d];
    element /= tensor.shape[d];
  }
  std::size_t used = 0;
  for (int32_t d = 0; d < tensor.ndim && used < size; ++d) {
    used += static_cast<std::size_t>(std::snprintf(text + used, size - used, d == 0 ? "[%lld" : ", %lld",
                                                   static_cast<long long>(index[d])));
  }
  if (used < size) std::snprintf(text + used, size - used, tensor.ndim == 0 ? "[]" : "]");
}

Status report(const Variable& variable, const Copies& copies, const Drift& drift,
              const ReplicaCount& replicas) noexcept {
  const int32_t expected_replica = number(replicas.global_of(LocalReplica{drift.expected_copy}));
  char index[96];
  char expected[kNumberRoom];
  char received[kNumberRoom];
  write_index(variable.first_copy(), drift.element, index, sizeof index);
  write_number(variable.dtype(), copies.at(drift.expected_copy, drift.element), expected);
  write_number(variable.dtype(), copies.at(drift.copy, drift.element), received);
  ErrorRecord error;
  error.code = DIST_DATA_LOSS;
  error.culprit = {replicas.global_of(LocalReplica{drift.copy})};
  copy_text(error.tag, variable.name());
  std::snprintf(error.expected, sizeof error.expected, "%s, as on replica %d", expected, expected_replica);
  copy_text(error.received, received);
  copy_text(
      error.hint,
      "make the copies equal by dist_variable_assign(); replicas that write to their copies must all write "
      "what a collective gave them");
  std::snprintf(error.message, sizeof error.message,
                "variable \"%s\": the copies have drifted apart: element %lld (%s) is %s on replica %d but "
                "%s on replica %d; %s",
                variable.name(), static_cast<long long>(drift.element), index, received,
                error.culprit.number(), expected, expected_replica, error.hint);
  return fail(error);
}

}  // namespace

Status check_drift(const CrossReplica& context, const Variable& variable, Drift* out) {
  // A variable lives in the memory of the strategy that made it.
  if (!variable.plain() && &variable.memory() != context.memory) {
    return invalid_argument("variable \"%s\" is another strategy's: ask the one that made it",
                            variable.name());
  }
  *out = Drift{};
  if (variable.sync_on_read()) return kOk;
  const Copies copies(variable);
  out->num_copies = copies.count();
  int64_t element = 0;
  DIST_TRY(first_difference(*context.arena, copies, &element));
  if (element == copies.elements()) return kOk;
  out->element = element;
  out->expected_copy = most_common(copies, element);
  out->copy = 0;
  while (copies.same(out->copy, out->expected_copy, element)) ++out->copy;
  return report(variable, copies, *out, context.replicas);
}

}  // namespace dist
