// SPDX-License-Identifier: Apache-2.0
// Parts that the two files of area "variables" share.
#pragma once

#include "tests/golden/harness/replay.hpp"

namespace golden {

// with strategy.scope():
class InScope {
 public:
  explicit InScope(dist_strategy* strategy) : strategy_(strategy) { check(dist_scope_enter(strategy)); }
  ~InScope() { [[maybe_unused]] const dist_status left = dist_scope_exit(strategy_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  dist_strategy* strategy_;
};

inline Value value_of(const Variable& variable) {
  Value value;
  check(dist_value_create_variable(variable.get(), value.out()));
  return value;
}

inline dist_tensor view_of(const Value& tensor) {
  dist_tensor view;
  check(dist_value_tensor(tensor.get(), &view));
  return view;
}

inline Variable create(dist_strategy* strategy, const Value& initial,
                       const dist_variable_options* options = nullptr) {
  const dist_tensor view = view_of(initial);
  Variable variable;
  check(dist_variable_create(strategy, &view, options, variable.out()));
  return variable;
}

// Owners of variables: variable_created_in_scope, colocate_vars_with, use in another strategy's run. In
// replay_variable_owners.cpp. Returns false if the case is none of these.
bool replay_variable_owners(Replay& replay);

}  // namespace golden
