// SPDX-License-Identifier: Apache-2.0
#include "core/value/variable_registry.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dist {

VariableRegistry::~VariableRegistry() {
  for (const Ref<Variable>& variable : variables_) variable->set_registry(nullptr);
}

Variable* VariableRegistry::find(const char* name) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto at = std::find_if(variables_.begin(), variables_.end(), [&](const Ref<Variable>& variable) {
    return std::strcmp(variable->name(), name) == 0;
  });
  return at == variables_.end() ? nullptr : at->get();
}

void VariableRegistry::add(Ref<Variable> variable) {
  const std::scoped_lock lock(mutex_);
  Variable* const added = variable.get();
  variables_.push_back(std::move(variable));
  added->set_registry(this);
}

void VariableRegistry::remove(Variable& variable) noexcept {
  Ref<Variable> last;  // destroyed outside the lock
  const std::scoped_lock lock(mutex_);
  const auto at = std::find_if(variables_.begin(), variables_.end(),
                               [&](const Ref<Variable>& kept) { return kept.get() == &variable; });
  if (at == variables_.end()) return;
  variable.set_registry(nullptr);
  last = std::move(*at);
  variables_.erase(at);
}

}  // namespace dist
