// SPDX-License-Identifier: Apache-2.0
// Metric: sums over the updates of all replicas. The state is a sync-on-read variable: each replica adds to
// its own copy, and reading combines all copies.
//
// Invariant: the sums are exact, so the result does not depend on which replica added which value, or when.
#pragma once

#include <cstdint>

#include "core/base/live_handles.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/exact_sum.hpp"
#include "core/value/variable.hpp"
#include "dist/types.h"

namespace dist {

class Metric final : public Counted {
 public:
  // If `name` is NULL, the kind's name is used. `memory` is the strategy's memory and identifies the strategy
  // that owns the metric.
  static Status create(Memory& memory, int32_t num_replicas, dist_metric_kind kind, const char* name,
                       Ref<Metric>* out);

  dist_metric_kind kind() const noexcept { return kind_; }
  const char* name() const noexcept { return state_->name(); }
  // The variable, for checkpoints. Its i64 sums can be redistributed exactly over another number of copies.
  Variable& state() const noexcept { return *state_; }

  // The handle that the host has.
  LiveHandle& handle() noexcept { return handle_; }

  // Checks that the metric belongs to the strategy with this memory.
  Status check_owner(const Memory& strategy_memory) const noexcept;

  // Adds a batch to a replica's copy. No other thread may use that copy during the call. On failure, adds
  // nothing. `labels` and `weights` may be NULL.
  Status update(LocalReplica replica, const dist_tensor& values, const dist_tensor* labels,
                const dist_tensor* weights) noexcept;
  // Read or reset all copies. No thread may change a copy during these calls.
  double result() const noexcept;
  // The result that follows from these sums, which are those of all copies, as returned by reading the state.
  double result_of(const dist_tensor& sums) const noexcept;
  void reset() noexcept;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  // The contents of a copy, as i64 elements.
  struct Sums {
    ExactSum total;   // of w * x
    ExactSum weight;  // of w
  };

  Metric(Memory& memory, dist_metric_kind kind, Ref<Variable> state) noexcept
      : Counted(memory), kind_(kind), state_(std::move(state)) {}
  ~Metric() override = default;

  double result_of(const Sums& all) const noexcept;
  Sums read(LocalReplica replica) const noexcept;
  void write(LocalReplica replica, const Sums& sums) noexcept;

  dist_metric_kind kind_;
  Ref<Variable> state_;
  LiveHandle handle_;
};

}  // namespace dist
