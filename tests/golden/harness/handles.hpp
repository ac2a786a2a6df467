// SPDX-License-Identifier: Apache-2.0
// RAII wrappers for the C API's objects. Errors are thrown, as in the recorded Python program. Exceptions
// never cross the C ABI: run() and similar functions carry them around it.
#pragma once

#include <dist/dist.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace golden {

// Thrown if a call of libdist failed, or if the user's function "raises". It corresponds to a Python
// exception.
struct Failed {
  dist_status status;
  std::string message;
};

// Throws Failed with libdist's message, unless `status` is DIST_OK.
inline void check(dist_status status) {
  if (status != DIST_OK) throw Failed{status, dist_last_error()};
}

// Stores the constant with this name.
template <class Enum>
void read_enum(dist_enum_domain domain, const char* name, Enum* out) {
  int32_t number = 0;
  check(dist_enum_from_name(domain, name, &number));
  *out = static_cast<Enum>(number);
}

// The user's program raises an exception. ValueError is DIST_INVALID_ARGUMENT, and RuntimeError is
// DIST_FAILED_PRECONDITION.
[[noreturn]] inline void raise(dist_status status, std::string message) {
  throw Failed{status, std::move(message)};
}

// A reference to a dist_value, or none, like a missing result in Python.
class Value {
 public:
  Value() = default;
  // Takes over a reference, which may be NULL.
  static Value adopt(dist_value* value) noexcept { return Value(value); }
  // Retains another reference.
  static Value share(dist_value* value) noexcept { return Value(dist_value_retain(value)); }
  Value(const Value& other) noexcept : value_(dist_value_retain(other.value_)) {}
  Value(Value&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() { dist_value_release(value_); }

  dist_value* get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ != nullptr; }
  // For an out parameter: `check(dist_reduce(..., result.out()))`.
  dist_value** out() noexcept {
    dist_value_release(std::exchange(value_, nullptr));
    return &value_;
  }
  // Passes the reference to the caller.
  dist_value* release() noexcept { return std::exchange(value_, nullptr); }

  dist_value_kind kind() const noexcept { return dist_value_kind_of(value_); }
  std::size_t size() const noexcept { return dist_value_size(value_); }
  Value item(std::size_t index) const noexcept { return share(dist_value_item(value_, index)); }
  Value at(const char* key) const noexcept { return share(dist_value_get(value_, key)); }

 private:
  explicit Value(dist_value* value) noexcept : value_(value) {}
  dist_value* value_ = nullptr;
};

// Owns any other object: Strategy strategy; check(dist_strategy_create(&options, strategy.out())).
template <class T, auto end>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* object) noexcept : object_(object) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() { reset(); }

  T* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T** out() noexcept {
    reset();
    return &object_;
  }
  T* release() noexcept { return std::exchange(object_, nullptr); }
  void reset() noexcept {
    if (object_ == nullptr) return;
    if constexpr (std::is_void_v<decltype(end(object_))>) {
      end(std::exchange(object_, nullptr));
    } else if (end(std::exchange(object_, nullptr)) != DIST_OK) {
      std::fprintf(stderr, "%s\n", dist_last_error());
    }
  }

 private:
  T* object_ = nullptr;
};

using Strategy = Handle<dist_strategy, dist_strategy_destroy>;
using Variable = Handle<dist_variable, dist_variable_destroy>;
using Dataset = Handle<dist_dataset, dist_dataset_destroy>;
using Iterator = Handle<dist_iterator, dist_iterator_destroy>;

// While an object of this class exists, calls of this thread belong to the harness and not to the program.
// Transcripts do not contain them.
class Looking {
 public:
  Looking() noexcept;
  ~Looking();
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;
  static bool now() noexcept;

 private:
  bool before_;
};

// ---- Functions of the user's program. They may throw Failed, which ends them like an exception in Python.
// The status and
// ---- the text are passed through libdist by dist_fail() and thrown again on the other side.

using ReplicaFn = std::function<Value(dist_replica* replica, dist_value* args, dist_value* kwargs)>;
using MergeFn = std::function<Value(dist_strategy* strategy, dist_value* args)>;
using UpdateFn = std::function<void(dist_tensor* copy, dist_value* args)>;

// strategy.run(fn, args, kwargs): args is a list or empty, kwargs a dictionary or empty. fn is called on
// several threads at the same time.
Value run(dist_strategy* strategy, const ReplicaFn& fn, const Value& args = {}, const Value& kwargs = {},
          const dist_run_options* options = nullptr);

// replica_context.merge_call(fn, args): args is a list or empty. Only replica 0's fn is called.
Value merge_call(dist_replica* replica, const MergeFn& fn, const Value& args = {},
                 const dist_collective_options* options = nullptr);

// strategy.extended.update(variable, fn, args)
void update(dist_strategy* strategy, dist_variable* variable, const UpdateFn& fn, const Value& args = {});

// Runs `body` and returns the status of its failure, for other kinds of callbacks (`return guarded([&] { ...
// });`). Exceptions other than Failed (Unknown, Malformed) are kept and thrown by the next rethrow_kept(),
// which run(), merge_call() and update() call.
dist_status guarded(const std::function<void()>& body) noexcept;
void rethrow_kept();

}  // namespace golden
