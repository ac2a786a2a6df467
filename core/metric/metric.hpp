// SPDX-License-Identifier: Apache-2.0
// Metric: sums over the updates of all replicas. The state is a variable that is synchronized on reading:
// each replica adds to its own copy, and the result is computed from all copies. The sums are exact, so that
// the result does not depend on which replica added what, or when.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/metric/exact_sum.hpp"
#include "core/value/variable.hpp"
#include "dist/types.h"

namespace dist {

class Metric final : public Counted {
 public:
  // A NULL name is the kind's. `memory` is the strategy's, and tells which strategy the metric belongs to.
  static Status create(Memory& memory, int32_t num_replicas, int32_t kind, const char* name,
                       Ref<Metric>* out);

  int32_t kind() const noexcept { return kind_; }
  const char* name() const noexcept { return state_->name(); }
  // The variable that a checkpoint saves. It has i64 sums, which can be divided exactly over another number
  // of copies.
  Variable& state() const noexcept { return *state_; }

  // OK for the strategy whose memory this is.
  Status check_owner(const Memory& strategy_memory) const noexcept;

  // Adds a batch to one replica's copy, which nobody else uses meanwhile; on a failure it adds nothing.
  // `labels` and `weights` may be NULL.
  Status update(LocalReplica replica, const dist_tensor& values, const dist_tensor* labels,
                const dist_tensor* weights) noexcept;
  // Reads or resets all copies, which nobody changes meanwhile.
  double result() const noexcept;
  // Of the sum of all copies there are, as reading the state gives it.
  double result_of(const dist_tensor& sums) const noexcept;
  void reset() noexcept;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  // What a copy holds, as i64 elements.
  struct Sums {
    ExactSum total;   // of w * x
    ExactSum weight;  // of w
  };

  Metric(Memory& memory, int32_t kind, Ref<Variable> state) noexcept
      : Counted(memory), kind_(kind), state_(std::move(state)) {}
  ~Metric() override = default;

  double result_of(const Sums& all) const noexcept;
  Sums read(LocalReplica replica) const noexcept;
  void write(LocalReplica replica, const Sums& sums) noexcept;

  int32_t kind_;
  Ref<Variable> state_;
};

}  // namespace dist
