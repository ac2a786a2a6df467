// SPDX-License-Identifier: Apache-2.0
// Variables: tensors that exist longer than one run. A mirrored strategy keeps one copy for each replica; the
// other strategies keep one copy for all replicas. A Variable stores the copies and assigns to them.
//
// Invariant: at most one thread writes to a copy at a time. The callers ensure that; a Variable has no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/live_handles.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/value/replica_numbers.hpp"

namespace dist {

class VariableRegistry;

struct VariableOptions {
  dist_synchronization synchronization = DIST_SYNCHRONIZATION_AUTO;
  dist_aggregation aggregation = DIST_AGGREGATION_NONE;
  const char* name = nullptr;  // NULL: "Variable"
};

// The kind and size of the strategy that creates a variable.
struct VariableHome {
  dist_strategy_kind strategy_kind;
  Ref<ReplicaNumbers> replicas;
};

class Variable final : public Counted {
 public:
  // All copies are initialized with `initial`.
  static Status create(Memory& memory, const VariableHome& home, const VariableOptions& options,
                       const dist_tensor& initial, Ref<Variable>* out);

  const char* name() const noexcept { return names_.c_str(); }
  // "w", "w/replica_1" ...
  const char* copy_name(int32_t copy) const noexcept;
  dist_synchronization synchronization() const noexcept { return synchronization_; }
  dist_aggregation aggregation() const noexcept { return aggregation_; }
  // Whether `options` would create an equal variable, apart from the name.
  bool made_with(const VariableOptions& options) const noexcept;
  // The kind of the strategy that created the variable.
  int32_t strategy_kind() const noexcept { return home_.strategy_kind; }
  int32_t num_replicas() const noexcept { return home_.replicas->local(); }
  int32_t num_copies() const noexcept { return num_copies_; }

  // The name of TensorFlow's class: MirroredVariable, SyncOnReadVariable, AggregatingVariable (central
  // storage), or Variable (one-device and default strategies).
  const char* class_name() const noexcept;
  bool mirrored() const noexcept { return home_.strategy_kind == DIST_STRATEGY_MIRRORED; }
  // Under other strategies than mirrored ones, `synchronization` has no effect.
  bool sync_on_read() const noexcept {
    return mirrored() && synchronization_ == DIST_SYNCHRONIZATION_ON_READ;
  }
  bool central() const noexcept { return home_.strategy_kind == DIST_STRATEGY_CENTRAL_STORAGE; }
  // Whether its strategy has only one replica, in which case any other strategy may use the variable too.
  bool plain() const noexcept { return !mirrored() && !central(); }

  dist_dtype dtype() const noexcept { return dtype_; }
  int64_t elements() const noexcept { return size_.elements; }
  std::size_t bytes() const noexcept { return size_.bytes; }  // of one copy

  // A row-major view of the copy that `replica` uses: its own, or the one that all replicas share.
  dist_tensor component(LocalReplica replica) const noexcept;
  // For callers that can use any copy, or that need the first one.
  dist_tensor first_copy() const noexcept { return component(LocalReplica{0}); }
  // The same for a number from a program, which need not be valid. `call` is the function's name for
  // messages.
  Status component(GlobalReplica replica, const char* call, dist_tensor* out) const noexcept;

  // Returns OK if `value` can be assigned to a copy: it has the same dtype and shape, and `how` is valid.
  // `what` is the beginning of messages.
  Status check_assign(int32_t how, const dist_tensor& value, const char* what) const noexcept;

  // copy = value, copy + value or copy - value. Call check_assign() first. `value` may be the copy itself but
  // must not overlap it in any other way. Allocates no memory.
  void assign(int32_t how, LocalReplica replica, const dist_tensor& value) noexcept;

  // The handle that the host has. Variables that a strategy owns have none.
  LiveHandle& handle() noexcept { return handle_; }
  // Releases the caller's reference. If a strategy owns the variable, removes it from that strategy. Has no
  // effect in a forked child.
  static void close(Variable* variable) noexcept;

  // The release callback of values that show a copy. Value::copy_of() recognizes such values by this address.
  static void release_copy(void* variable) noexcept { static_cast<Variable*>(variable)->release(); }

  // The registry that owns the variable, if it was created inside replicas and later runs find it by name;
  // else NULL.
  VariableRegistry* registry() const noexcept { return registry_; }
  void set_registry(VariableRegistry* registry) noexcept { registry_ = registry; }

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  Variable(Memory& memory, const VariableHome& home, const VariableOptions& options,
           const dist_tensor& initial, const TensorSize& size);
  ~Variable() override;
  void name_copies(const char* name);

  const VariableHome home_;
  const dist_synchronization synchronization_;
  const dist_aggregation aggregation_;
  const dist_dtype dtype_;
  const int32_t ndim_;
  const int32_t num_copies_;
  TensorSize size_;
  std::array<int64_t, DIST_MAX_NDIM> shape_;
  std::pmr::string names_;  // of the copies; a NUL follows each
  // All copies are one allocation. Each begins at a multiple of 64 bytes, so replicas share no cache line.
  std::size_t step_;  // from one copy to the next
  std::byte* copies_ = nullptr;
  VariableRegistry* registry_ = nullptr;
  LiveHandle handle_;
};

}  // namespace dist
