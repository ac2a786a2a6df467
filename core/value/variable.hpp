// SPDX-License-Identifier: Apache-2.0
// Variables: tensors that outlive runs. A mirrored strategy keeps one copy for each replica, the other
// strategies one copy for all replicas. A Variable stores the copies and assigns to them.
//
// Invariant: at most one thread writes to a copy at a time. The caller ensures that; a Variable has no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/value/replica_numbers.hpp"

namespace dist {

class VariableRegistry;

struct VariableOptions {
  int32_t synchronization = DIST_SYNCHRONIZATION_AUTO;
  int32_t aggregation = DIST_AGGREGATION_NONE;
  int32_t trainable = 0;       // 1: yes; -1: no; 0: unless it is synchronized on reading
  const char* name = nullptr;  // "Variable"
};

// OK where a variable is kept in one piece: 0 or 1.
Status check_partitions(int32_t partitions) noexcept;

// The kind and size of the strategy that makes a variable.
struct VariableHome {
  int32_t strategy_kind;
  Ref<ReplicaNumbers> replicas;
};

class Variable final : public Counted {
 public:
  // All copies are `initial`.
  static Status create(Memory& memory, const VariableHome& home, const VariableOptions& options,
                       const dist_tensor& initial, Ref<Variable>* out);

  const char* name() const noexcept { return names_[0].c_str(); }
  // "w", "w/replica_1" ...
  const char* copy_name(int32_t copy) const noexcept {
    return names_[static_cast<std::size_t>(copy)].c_str();
  }
  int32_t synchronization() const noexcept { return synchronization_; }
  int32_t aggregation() const noexcept { return aggregation_; }
  bool trainable() const noexcept { return trainable_; }
  // Whether `options` would make a variable like this one; names aside.
  bool made_with(const VariableOptions& options) const noexcept;
  // Of the strategy that it was made by.
  int32_t strategy_kind() const noexcept { return home_.strategy_kind; }
  int32_t num_replicas() const noexcept { return home_.replicas->local(); }
  int32_t num_copies() const noexcept { return static_cast<int32_t>(copies_.size()); }

  // TensorFlow's four classes of variables: MirroredVariable, SyncOnReadVariable, AggregatingVariable
  // (central storage), Variable (one-device and default strategies).
  const char* class_name() const noexcept;
  bool mirrored() const noexcept { return home_.strategy_kind == DIST_STRATEGY_MIRRORED; }
  // In the other strategies, synchronization has no effect.
  bool sync_on_read() const noexcept {
    return mirrored() && synchronization_ == DIST_SYNCHRONIZATION_ON_READ;
  }
  bool central() const noexcept { return home_.strategy_kind == DIST_STRATEGY_CENTRAL_STORAGE; }
  // Whether its strategy has only one replica: then any other strategy may use it too.
  bool plain() const noexcept { return !mirrored() && !central(); }

  dist_dtype dtype() const noexcept { return dtype_; }
  int64_t elements() const noexcept { return size_.elements; }
  std::size_t bytes() const noexcept { return size_.bytes; }  // of one copy

  // A view of what `replica` has, row-major: its own copy, or the one that all share.
  dist_tensor component(LocalReplica replica) const noexcept;
  // Where any copy will do, or the first is what counts.
  dist_tensor first_copy() const noexcept { return component(LocalReplica{0}); }
  // The same for any number that a program gives. `call` is the function's name in messages.
  Status component(GlobalReplica replica, const char* call, dist_tensor* out) const noexcept;

  // OK where `value` can be assigned to a copy: the same dtype and shape, a known `how`. `what` begins
  // messages.
  Status check_assign(int32_t how, const dist_tensor& value, const char* what) const noexcept;

  // copy = value, copy + value or copy - value, after check_assign(). `value` may be the copy itself and
  // overlaps it in no other way. Allocates nothing.
  void assign(int32_t how, LocalReplica replica, const dist_tensor& value) noexcept;

  // Its holder gives it up: a strategy that owns it lets it go. In a forked child nothing is done.
  static void close(Variable* variable) noexcept;

  // What release callbacks of values that show a copy do: Value::copy_of() knows such values by it.
  static void release_copy(void* variable) noexcept { static_cast<Variable*>(variable)->release(); }

  // Where the strategy owns it: made inside replicas, found again by its name.
  VariableRegistry* registry() const noexcept { return registry_; }
  void set_registry(VariableRegistry* registry) noexcept { registry_ = registry; }

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  Variable(Memory& memory, const VariableHome& home, const VariableOptions& options,
           const dist_tensor& initial, const TensorSize& size);
  ~Variable() override;
  void make_copies(const dist_tensor& initial, int32_t count);

  const VariableHome home_;
  const int32_t synchronization_;
  const int32_t aggregation_;
  const bool trainable_;
  dist_dtype dtype_;
  TensorSize size_;
  std::pmr::vector<int64_t> shape_;
  std::pmr::vector<std::pmr::string> names_;  // of the copies
  std::pmr::vector<std::byte*> copies_;  // one allocation each, 64-byte aligned: replicas share no cache line
  VariableRegistry* registry_ = nullptr;
};

}  // namespace dist
