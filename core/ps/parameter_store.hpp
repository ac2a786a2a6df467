// SPDX-License-Identifier: Apache-2.0
// ParameterStore: the variables of one parameter server, and the closures that have changed them. Must be
// used by one thread at a time.
//
// Invariant: a value that was handed out never changes. A commit to a variable whose value is still in use
// creates a new value. So reads copy nothing, however long it takes to send them, and a snapshot of all
// variables costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/ps/applied_ids.hpp"
#include "core/value/slices.hpp"
#include "core/value/value.hpp"

namespace dist {

// A host function that updates `variables` with `arguments`. The variables are tensors of this server with
// equal layout.
struct UpdateFunction {
  dist_status (*function)(dist_tensor* variables, std::size_t n, Value* arguments, void* host) = nullptr;
  void* host = nullptr;
  void (*end)(void* host) = nullptr;  // called when the function is removed; may be NULL
};

// A change to one variable, or with a function to several.
struct Operation {
  enum class What : int32_t { kAssign, kScatter, kUpdate };

  What what = What::kAssign;
  int32_t how = DIST_ASSIGN;           // DIST_ASSIGN_... or DIST_SCATTER_...
  std::span<const int64_t> variables;  // one, except for kUpdate
  const char* function = nullptr;      // for kUpdate
  Value* value = nullptr;              // a tensor, indexed slices, or the function's arguments
};

// The changes of a closure or of the coordinator on this server: applied completely or not at all.
struct Commit {
  static constexpr int64_t kNoClosure = -1;  // by the coordinator itself; always applied

  int64_t id = kNoClosure;
  int64_t watermark = 0;  // closures below have ended
  std::span<const Operation> operations;
  // Size of the message that contains the values; 0: they have memory of their own.
  std::size_t message_bytes = 0;
};

class ParameterStore {
 public:
  static constexpr std::size_t kMostVariables = std::size_t{1} << 20;

  explicit ParameterStore(Memory& memory);
  ~ParameterStore();

  // Must be called before the first commit. On ALREADY_EXISTS and INVALID_ARGUMENT the function's `end` is
  // not called.
  Status add_function(const char* name, const UpdateFunction& function);
  bool has_functions(std::span<const Operation> operations) const noexcept;
  // Whether the calling thread is in an update function.
  bool inside_function() const noexcept;

  std::size_t num_variables() const noexcept { return variables_.size(); }
  // The total size of all elements.
  std::size_t bytes() const noexcept { return bytes_; }
  // Forgets all variables and closures.
  void clear() noexcept;
  // Creates the next variable; or accepts an existing number again, if its creation failed on another server.
  Status create(int64_t number, Value& initial, std::size_t message_bytes);
  // The current value. INVALID_ARGUMENT if there is no such variable.
  Status read(int64_t number, ValueRef* out) const noexcept;
  // *applied is false if the closure was applied before; then nothing happens. On an error nothing happens
  // either.
  Status commit(const Commit& commit, bool* applied);

  // For work on variables that is too large for the network threads.
  Arena& arena() noexcept { return arena_; }
  const AppliedIds& applied() const noexcept { return applied_; }
  Status restore(std::span<const int64_t> applied) { return applied_.read(applied); }

 private:
  struct Stored {
    ValueRef now;
    ValueRef next;   // the value after the current commit
    ValueRef spare;  // the previous value; its memory is reused once nobody holds it
    TensorSize size;
    bool copied = false;  // `next` is memory owned by this store
  };
  using Functions = std::pmr::map<std::pmr::string, UpdateFunction, std::less<>>;

  Status find(int64_t number, Stored** out) noexcept;
  Status check(const Operation& operation, Slices* slices);
  Status keep(Value& value, std::size_t message_bytes, ValueRef* out);
  Status apply(const Operation& operation, const Slices& slices, const Commit& commit);
  Status assign(const Operation& operation, Stored& variable, const Commit& commit);
  Status update(const Operation& operation);
  // Provides memory that may be written: the value itself, or else a copy, which becomes `next`. `copy`:
  // whether the copy needs the elements.
  Status writable(Stored& variable, bool copy, dist_tensor* out);

  Memory& memory_;
  Arena arena_;
  Functions functions_;
  std::pmr::vector<Stored> variables_;
  std::size_t bytes_ = 0;
  AppliedIds applied_;
  // Used by the current commit.
  std::pmr::vector<Stored*> changed_;
  bool in_place_ = false;
};

}  // namespace dist
