// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/scope.hpp: scope.h for C++: the current strategy and replica of the calling thread.
//
//     const dist::scope_guard scope = strategy.scope();
//     train();                                         // in it, dist::get_strategy() returns the strategy

#ifndef DIST_HPP_SCOPE_HPP
#define DIST_HPP_SCOPE_HPP

#include "variable.hpp"

namespace dist {

// Keeps this thread in the strategy's scope until the guard is destroyed: const auto scope = strategy.scope();
class [[nodiscard]] scope_guard {
 public:
  explicit scope_guard(const strategy_ref &strategy) : strategy_(strategy) {
    check(dist_scope_enter(strategy_.get()));
  }
  ~scope_guard() { (void)!dist_scope_exit(strategy_.get()); }
  scope_guard(const scope_guard &) = delete;
  scope_guard &operator=(const scope_guard &) = delete;

 private:
  strategy_ref strategy_;
};

inline scope_guard strategy_ref::scope() const { return scope_guard(*this); }

// The strategy of this thread's scope or function, or the one that was set, or the thread's default strategy.
inline strategy_ref get_strategy() {
  const strategy_ref found(dist_get_strategy());
  if (found) return found;
  dist_error_info info = DIST_ERROR_INFO_INIT;
  check(dist_last_error_info(&info));
  throw error(info.code);
}
// Whether get_strategy() is not a default strategy, and whether this thread is in cross-replica context.
inline bool has_strategy() noexcept { return dist_has_strategy() != 0; }
inline bool in_cross_replica_context() noexcept { return dist_in_cross_replica_context() != 0; }
// The replica whose function this thread is in; empty in cross-replica context.
inline replica get_replica() noexcept { return replica(dist_get_replica()); }

}  // namespace dist

#endif  // DIST_HPP_SCOPE_HPP
