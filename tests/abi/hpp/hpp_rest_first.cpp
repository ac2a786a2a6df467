// SPDX-License-Identifier: Apache-2.0
//
// A program that includes all of dist.hpp and later, for example in another header, only the baseline.
// clang-format off
#define DIST_EXPERIMENTAL
#include <dist/dist.hpp>
#undef DIST_EXPERIMENTAL
#include <dist/dist.hpp>

#include "hpp_program.hpp"
// clang-format on

parts::outcome parts::with_the_rest_first() {
  const dist::strategy strategy(2);
  const dist::scope_guard scope = strategy.scope();
  return strategy.kind() == DIST_STRATEGY_MIRRORED ? program(strategy) : outcome{};
}
