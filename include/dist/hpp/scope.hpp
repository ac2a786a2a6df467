// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/scope.hpp: scope.h for C++: which strategy and replica the calling thread is with.

#include "variable.hpp"

// ---- Experimental: what follows may change or go in any version, as types.h says

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_HPP_SCOPE_EXPERIMENTAL_HPP)
#define DIST_HPP_SCOPE_EXPERIMENTAL_HPP

namespace dist {

// This thread is in the strategy's scope until this ends: const auto scope = strategy.scope();
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

// Variables that this thread makes are placed with another until this ends.
class [[nodiscard]] colocation_guard {
 public:
  colocation_guard(const strategy_ref &strategy, const value &variable) : strategy_(strategy) {
    check(dist_colocate_enter(strategy_.get(), variable.get()));
  }
  ~colocation_guard() { (void)!dist_colocate_exit(strategy_.get()); }
  colocation_guard(const colocation_guard &) = delete;
  colocation_guard &operator=(const colocation_guard &) = delete;

 private:
  strategy_ref strategy_;
};

inline scope_guard strategy_ref::scope() const { return scope_guard(*this); }
inline colocation_guard strategy_ref::colocate(const value &variable) const {
  return colocation_guard(*this, variable);
}

// Makes a strategy this thread's own outside scopes; a strategy_ref of none: none any more.
inline void set_strategy(const strategy_ref &strategy) { check(dist_set_strategy(strategy.get())); }
// Of this thread's scope or function, or set, or else its default one.
inline strategy_ref get_strategy() {
  const strategy_ref found(dist_get_strategy());
  if (found) return found;
  dist_error_info info = DIST_ERROR_INFO_INIT;
  check(dist_last_error_info(&info));
  throw error(info.code);
}
inline bool has_strategy() noexcept { return dist_has_strategy() != 0; }
inline bool in_cross_replica_context() noexcept { return dist_in_cross_replica_context() != 0; }
// None in the cross-replica context.
inline replica get_replica() noexcept { return replica(dist_get_replica()); }

}  // namespace dist
#endif  // DIST_HPP_SCOPE_EXPERIMENTAL_HPP
