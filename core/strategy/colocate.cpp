// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/colocate.hpp"

#include "core/strategy/scope.hpp"

namespace dist {
namespace {

thread_local constinit int32_t entered = 0;

Status check_here(const Strategy& strategy, const char* call) {
  if (strategy.kind() == DIST_STRATEGY_DEFAULT) return kOk;
  Strategy* here = nullptr;
  DIST_TRY(current_strategy(&here));
  if (here == &strategy) return kOk;
  return failed_precondition(
      "`%s()`: this `thread` is outside the strategy's scope. Call it between `dist_scope_enter()` and "
      "`dist_scope_exit()`, or inside the strategy's run.",
      call);
}

Status check_with(Strategy& strategy, const Value& with) {
  if (strategy.kind() == DIST_STRATEGY_DEFAULT) return kOk;
  const Variable* const variable = with.container();
  const bool own = variable != nullptr && &variable->memory() == &strategy.memory();
  if (own && (with.variable() != nullptr || !variable->mirrored())) return kOk;
  char is[160];
  Value::describe(&with, is, sizeof is);
  return invalid_argument(
      "`dist_colocate_enter()`: %s is not a variable of this strategy%s. Pass a variable that this strategy "
      "created.",
      is, own ? ", but a copy of one" : "");
}

}  // namespace

Status enter_colocation(Strategy& strategy, const Value& with) {
  DIST_TRY(check_here(strategy, "dist_colocate_enter"));
  DIST_TRY(check_with(strategy, with));
  ++entered;
  return kOk;
}

Status exit_colocation(Strategy& strategy) {
  DIST_TRY(check_here(strategy, "dist_colocate_exit"));
  if (entered == 0)
    return failed_precondition("`dist_colocate_exit()`: this `thread` is not inside `dist_colocate_enter()`");
  --entered;
  return kOk;
}

Status created_by(const Strategy& strategy, const Value& variable, bool* out) noexcept {
  const Variable* const made = variable.container();
  if (made == nullptr) {
    return invalid_argument("`dist_variable_created_in_scope()`: %s is neither a variable nor a copy of one",
                            Value::kind_name(variable.kind()));
  }
  *out = &made->memory() == &strategy.memory();
  return kOk;
}

Status device_of(const Strategy& strategy, const Variable& variable, int32_t copy,
                 const char** out) noexcept {
  if (&variable.memory() != &strategy.memory()) {
    return failed_precondition(
        "variable \"%s\" belongs to another strategy. Use it with the strategy that created it.",
        variable.name());
  }
  if (copy < 0 || copy >= variable.num_copies()) {
    return invalid_argument("`copy` is %d, but variable \"%s\" has copies 0 to %d", copy, variable.name(),
                            variable.num_copies() - 1);
  }
  static const DeviceName only;  // the default strategy has no device names
  const auto devices = strategy.devices().parameters();
  *out = devices.empty() ? only.c_str() : devices[static_cast<std::size_t>(copy)].c_str();
  return kOk;
}

}  // namespace dist
