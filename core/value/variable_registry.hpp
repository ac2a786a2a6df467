// SPDX-License-Identifier: Apache-2.0
// The variables that a strategy owns: those created inside replicas, which later runs find by name.
#pragma once

#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/base/memory.hpp"
#include "core/value/variable.hpp"

namespace dist {

class VariableRegistry {
 public:
  explicit VariableRegistry(Memory& memory) : variables_(&memory) {}
  ~VariableRegistry();
  VariableRegistry(const VariableRegistry&) = delete;
  VariableRegistry& operator=(const VariableRegistry&) = delete;

  // Returns NULL if there is no such variable.
  Variable* find(const char* name) noexcept;
  // Adds a variable with a new name.
  void add(Ref<Variable> variable);
  // Removes a variable. It is then destroyed, unless a value still refers to it.
  void remove(Variable& variable) noexcept;

 private:
  std::mutex mutex_;
  std::pmr::vector<Ref<Variable>> variables_;
};

}  // namespace dist
