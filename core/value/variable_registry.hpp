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

  // NULL: there is none.
  Variable* find(const char* name) noexcept;
  // Keeps a variable whose name is new.
  void add(Ref<Variable> variable);
  // Lets a variable go, which then ends unless a value still refers to it.
  void remove(Variable& variable) noexcept;

 private:
  std::mutex mutex_;
  std::pmr::vector<Ref<Variable>> variables_;
};

}  // namespace dist
