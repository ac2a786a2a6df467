// SPDX-License-Identifier: Apache-2.0
// The checks and loops that are common to all changes of a variable in the cross-replica context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Returns OK for a variable that this strategy owns, which is one in its memory. A variable of a strategy
// with a single replica is not shared, so any strategy may change it.
inline Status check_owner(const CrossReplica& context, const Variable& variable) noexcept {
  if (&variable.memory() == context.memory || variable.plain()) return kOk;
  return failed_precondition(
      "variable \"%s\" belongs to another strategy. Use it with the strategy that created it.",
      variable.name());
}

// Calls body(r) for every copy, concurrently if the variable is large.
template <class Body>
Status for_each_copy(const CrossReplica& context, const Variable& variable, const Body& body) {
  const auto n = static_cast<std::size_t>(variable.num_copies());
  const auto range = [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) body(LocalReplica(r));
  };
  if (variable.bytes() * n > FoldPlan::kSerialBytes && n > 1) {
    return context.arena->parallel_for(0, static_cast<int64_t>(n), 1, range);
  }
  range(0, static_cast<int64_t>(n));
  return kOk;
}

}  // namespace dist
