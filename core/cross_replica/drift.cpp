// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/drift.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "core/base/on_stack.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/drift_across.hpp"
#include "core/cross_replica/drift_copies.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/value/elements.hpp"
#include "core/value/number.hpp"

namespace dist {
namespace {

constexpr int64_t kBlockBytes = 64 << 10;  // bytes of one copy that are compared at once

Status first_difference(Arena& arena, const VariableCopies& copies, int64_t* out) {
  const int64_t block = kBlockBytes / copies.element_bytes();
  const int64_t blocks = (copies.elements() + block - 1) / block;
  const int64_t grain = int64_t{FoldPlan::kSerialBytes} / (kBlockBytes * copies.count());
  std::atomic<int64_t> first{copies.elements()};
  DIST_TRY(arena.parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      // If a difference is known, later blocks need not be compared.
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

// The values of one element in all copies of all workers, by copy number.
struct Elements {
  explicit Elements(dist_dtype of) noexcept : dtype(of) {}
  const std::byte* at(int32_t copy) const noexcept {
    return bytes + static_cast<std::size_t>(copy) * dtype_size(dtype);
  }
  bool same(int32_t a, int32_t b) const noexcept { return same_element(dtype, at(a), at(b)); }

  const dist_dtype dtype;
  int32_t count = 0;
  const std::byte* bytes = nullptr;
  ValueRef joined;  // which owns the bytes if there are several workers
};

// `own` must have room for one element of each local copy. Allocates no memory after join(): if that failed
// on one worker, it would return another status than its peers.
Status gather_elements(const CrossReplica& context, const VariableCopies& copies, int64_t element,
                       std::byte* own, Elements* out) {
  const auto size = static_cast<std::size_t>(copies.element_bytes());
  out->count = copies.count();
  out->bytes = own;
  for (int32_t r = 0; r < out->count; ++r)
    std::memcpy(own + static_cast<std::size_t>(r) * size, copies.at(r, element), size);
  if (context.workers == nullptr) return kOk;
  const int64_t count = out->count;
  DIST_TRY(context.workers->join({own, out->dtype, 1, &count, nullptr}, 0, &out->joined));
  const dist_tensor all = out->joined->tensor();
  out->count = static_cast<int32_t>(all.shape[0]);
  out->bytes = static_cast<const std::byte*>(all.data);
  return kOk;
}

// The copy with the most common value. If several values are equally common, the lowest copy.
int32_t most_common(const Elements& elements) noexcept {
  int32_t most = 0;
  int32_t best = 0;
  for (int32_t r = 0; r < elements.count; ++r) {
    int32_t equal = 0;
    for (int32_t other = r; other < elements.count; ++other) equal += elements.same(r, other) ? 1 : 0;
    if (equal > most) {
      most = equal;
      best = r;
    }
  }
  return best;
}

// Writes the index of an element in a row-major tensor, for example "[1, 2]".
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

Status report(const CrossReplica& context, const Variable& variable, const Elements& elements,
              const Drift& drift) noexcept {
  char index[96];
  char expected[kNumberRoom];
  char received[kNumberRoom];
  write_index(variable.first_copy(), drift.element, index, sizeof index);
  write_number(elements.dtype, elements.at(number(drift.expected)), expected);
  write_number(elements.dtype, elements.at(number(drift.replica)), received);
  ErrorRecord error;
  error.code = DIST_DATA_LOSS;
  error.culprit = {drift.replica};
  if (context.workers != nullptr) error.culprit.home = context.workers->worker_of(drift.replica);
  copy_text(error.tag, variable.name());
  std::snprintf(error.expected, sizeof error.expected, "%s, as on replica %d", expected,
                number(drift.expected));
  copy_text(error.received, received);
  copy_text(
      error.hint,
      "use `dist_variable_assign()` to make the copies equal; replicas that write to their copies must all write the result of a collective"_m);
  std::snprintf(error.message, sizeof error.message,
                "variable \"%s\": the copies have drifted apart: element %lld (%s) is %s on replica %d but "
                "%s on replica %d; %s",
                variable.name(), static_cast<long long>(drift.element), index, received,
                number(drift.replica), expected, number(drift.expected), error.hint);
  return fail(error);
}

}  // namespace

Status check_drift(const CrossReplica& context, const Variable& variable, Drift* out) {
  // A variable lives in the memory of the strategy that created it.
  if (!variable.plain() && &variable.memory() != context.memory) {
    return invalid_argument(
        "variable \"%s\" belongs to another strategy. Use it with the strategy that created it.",
        variable.name());
  }
  *out = Drift{};
  const VariableCopies copies(variable);
  // Workers that have nothing to compare must agree on that as well.
  const bool across = context.workers != nullptr;
  const bool compared = !variable.sync_on_read() && (variable.mirrored() || !across);
  int64_t element = copies.elements();
  if (compared) DIST_TRY(first_difference(*context.arena, copies, &element));
  if (across) {
    DIST_TRY(compared ? first_difference_across(context, variable, element, &element)
                      : agree_on_none(context, variable));
  }
  if (variable.sync_on_read()) return kOk;
  out->num_copies = across && compared ? context.replicas.global() : copies.count();
  if (element == copies.elements()) return kOk;
  auto* const own = DIST_ON_STACK(std::byte, copies.count() * copies.element_bytes());
  Elements elements(copies.dtype());
  DIST_TRY(gather_elements(context, copies, element, own, &elements));
  const int32_t expected = most_common(elements);
  int32_t differs = 0;
  while (differs < elements.count && elements.same(differs, expected)) ++differs;
  // The copies were written during the comparison.
  if (differs == elements.count) return kOk;
  out->element = element;
  out->expected = GlobalReplica{expected};
  out->replica = GlobalReplica{differs};
  return report(context, variable, elements, *out);
}

}  // namespace dist
