// SPDX-License-Identifier: Apache-2.0
// ParameterStore: the variables of one parameter server, and which closures have changed them. One thread at a time.
//
// A value that somebody has been given stays as it is: what changes a variable meanwhile makes a new one. So a read copies
// nothing, however long its answer takes to go out, and a snapshot of all variables costs nothing either.
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

// What a host registers: changes `variables`, tensors of this server that lie alike, by `arguments`.
struct UpdateFunction {
  dist_status (*function)(dist_tensor* variables, std::size_t n, Value* arguments, void* host) = nullptr;
  void* host = nullptr;
  void (*end)(void* host) = nullptr;  // when the function is no more; may be NULL
};

// One change to one variable, or by a function to several.
struct Operation {
  enum class What : int32_t { kAssign, kScatter, kUpdate };

  What what = What::kAssign;
  int32_t how = DIST_ASSIGN;           // a DIST_ASSIGN_..., or DIST_SCATTER_...
  std::span<const int64_t> variables;  // one, but for kUpdate
  const char* function = nullptr;      // of kUpdate
  Value* value = nullptr;              // a tensor, indexed slices, or the function's arguments
};

// What a closure, or the coordinator, changes on this server: all of it or nothing.
struct Commit {
  static constexpr int64_t kNoClosure = -1;  // of the coordinator's own: always applied

  int64_t id = kNoClosure;
  int64_t mark = 0;  // closures below are over
  std::span<const Operation> operations;
  std::size_t message_bytes = 0;  // of the message that values lie in; 0: they are of their own
};

class ParameterStore {
 public:
  static constexpr std::size_t kMostVariables = std::size_t{1} << 20;

  explicit ParameterStore(Memory& memory);
  ~ParameterStore();

  // Before the first commit. ALREADY_EXISTS, INVALID_ARGUMENT: the function's `end` is not called.
  Status add_function(const char* name, const UpdateFunction& function);
  bool has_functions(std::span<const Operation> operations) const noexcept;
  // Whether this thread is in one of them.
  bool inside_function() const noexcept;

  std::size_t num_variables() const noexcept { return variables_.size(); }
  // Elements of all, in bytes.
  std::size_t bytes() const noexcept { return bytes_; }
  // Forgets all variables and closures.
  void clear() noexcept;
  // The next variable's number and its value; or one that is there, whose creation has failed on another server.
  Status create(int64_t number, Value& initial, std::size_t message_bytes);
  // What it is now. INVALID_ARGUMENT: there is no such variable.
  Status read(int64_t number, ValueRef* out) const noexcept;
  // *applied: false where the closure has been here before, and nothing happened. Nothing has happened on an error either.
  Status commit(const Commit& commit, bool* applied);

  // For work on variables, and what is large enough to be done beside the threads of the network.
  Arena& arena() noexcept { return arena_; }
  const AppliedIds& applied() const noexcept { return applied_; }
  Status restore(std::span<const int64_t> applied) { return applied_.read(applied); }

 private:
  struct Stored {
    ValueRef now;
    ValueRef next;   // what a commit makes of it
    ValueRef spare;  // the one before: its memory is used again, where nobody has it any more
    TensorSize size;
    bool copied = false;  // next: it is memory of this store's own
  };
  using Functions = std::pmr::map<std::pmr::string, UpdateFunction, std::less<>>;

  Status find(int64_t number, Stored** out) noexcept;
  Status check(const Operation& operation, Slices* slices);
  Status keep(Value& value, std::size_t message_bytes, ValueRef* out);
  Status apply(const Operation& operation, const Slices& slices, const Commit& commit);
  Status assign(const Operation& operation, Stored& variable, const Commit& commit);
  Status update(const Operation& operation);
  // Where it may be written: itself, or a copy, which next is then. `copy`: whether its elements are to be there.
  Status writable(Stored& variable, bool copy, dist_tensor* out);

  Memory& memory_;
  Arena arena_;
  Functions functions_;
  std::pmr::vector<Stored> variables_;
  std::size_t bytes_ = 0;
  AppliedIds applied_;
  // Of the commit that is under way.
  std::pmr::vector<Stored*> changed_;
  bool in_place_ = false;
};

}  // namespace dist
