// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/value.hpp: value.h for C++: values and nests of them. A value is a counted reference, so copies are cheap
// and share the data. A value without a reference converts to false and stands for NULL in calls.
//
//     const dist::value x(strategy, numbers);                                         // copies the vector
//     const dist::value args = dist::value::list(strategy, {x, dist::value::text(strategy, "train")});
//     const float *first = args[0].tensor().data<float>();                            // borrowed from the value
#ifndef DIST_HPP_VALUE_HPP
#define DIST_HPP_VALUE_HPP

#include <memory>

#include "strategy.hpp"

namespace dist {

namespace detail {

// Keeps an object alive for a value that wraps host memory, until libdist no longer uses the memory.
template <class Kept>
void *box(Kept &&kept) {
  return new std::decay_t<Kept>(std::forward<Kept>(kept));
}
template <class Kept>
void unbox(void *boxed) {
  static_assert(std::is_nothrow_destructible_v<Kept>, "it ends inside the library, where nobody could catch");
  delete static_cast<Kept *>(boxed);
}

}  // namespace detail

// A counted reference to an immutable value.
class value {
 public:
  value() noexcept = default;
  // Takes a reference; release() transfers it to the caller.
  static value adopt(dist_value *handle) noexcept {
    value owned;
    owned.handle_ = handle;
    return owned;
  }
  dist_value *release() noexcept { return std::exchange(handle_, nullptr); }
  // Adds a reference to a value that another owner holds.
  static value share(dist_value *handle) noexcept { return adopt(dist_value_retain(handle)); }

  // Copies a tensor.
  value(const strategy_ref &owner, const const_tensor &data) {
    const dist_tensor view = data.get();
    check(dist_value_create_tensor(owner.get(), &view, &handle_));
  }
  // Wraps host memory, which must stay valid until the value and everything made from it have been released.
  static value wrap(const strategy_ref &owner, const const_tensor &data) {
    const dist_tensor view = data.get();
    return made(
        [&](dist_value **out) { return dist_value_wrap_tensor(owner.get(), &view, nullptr, nullptr, out); });
  }
  // The same; `kept` (such as the vector itself, or a shared_ptr to it) is destroyed then, on any thread.
  template <class Kept>
  static value wrap(const strategy_ref &owner, const const_tensor &data, Kept &&kept) {
    using held = std::decay_t<Kept>;
    const dist_tensor view = data.get();
    std::unique_ptr<held> boxed(static_cast<held *>(detail::box(std::forward<Kept>(kept))));
    value wrapped = made([&](dist_value **out) {
      return dist_value_wrap_tensor(owner.get(), &view, detail::unbox<held>, boxed.get(), out);
    });
    (void)boxed.release();  // now owned by the value
    return wrapped;
  }

  // One component for each replica; mirrored: all known to be equal.
  static value per_replica(const strategy_ref &owner, const std::vector<value> &items) {
    return compose(owner, items, dist_value_create_per_replica);
  }
  static value mirrored(const strategy_ref &owner, const std::vector<value> &items) {
    return compose(owner, items, dist_value_create_mirrored);
  }
  static value list(const strategy_ref &owner, const std::vector<value> &items) {
    return compose(owner, items, dist_value_create_list);
  }
  static value tuple(const strategy_ref &owner, const std::vector<value> &items) {
    return compose(owner, items, dist_value_create_tuple);
  }
  static value dict(const strategy_ref &owner, const std::vector<std::pair<const char *, value>> &items) {
    std::vector<const char *> keys;
    std::vector<dist_value *> handles;
    for (const auto &item : items) {
      keys.push_back(item.first);
      handles.push_back(item.second.get());
    }
    return made([&](dist_value **out) {
      return dist_value_create_dict(owner.get(), keys.data(), handles.data(), handles.size(), out);
    });
  }
  static value none(const strategy_ref &owner) {
    return made([&](dist_value **out) { return dist_value_create_none(owner.get(), out); });
  }
  static value text(const strategy_ref &owner, const char *words);
  // A host pointer: borrowed, or owned by the value.
  static value object(const strategy_ref &owner, void *thing);
  template <class T>
  static value object(const strategy_ref &owner, std::unique_ptr<T> thing);
  // DIST_VALUE_INDEXED_SLICES, DIST_VALUE_RAGGED, DIST_VALUE_SPARSE.
  static value composite(const strategy_ref &owner, dist_value_kind kind, const std::vector<value> &parts);
  // Takes a DLPack tensor without copying it.
  static value from_dlpack(const strategy_ref &owner, DLManagedTensor *managed);
  // Shares the memory, read-only (although DLPack's struct cannot express that). The caller must call the result's
  // deleter.
  DLManagedTensor *to_dlpack() const;

  ~value() { dist_value_release(handle_); }
  value(const value &other) noexcept : handle_(dist_value_retain(other.handle_)) {}
  value(value &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  value &operator=(value other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Whether both are the same object; merging compares values in this way.
  bool operator==(const value &other) const noexcept { return handle_ == other.handle_; }
  bool operator!=(const value &other) const noexcept { return handle_ != other.handle_; }
  dist_value_kind kind() const noexcept { return dist_value_kind_of(handle_); }
  std::size_t size() const noexcept { return dist_value_size(handle_); }
  // An item by its index, of any integer type, or by its key.
  template <class Index, class = std::enable_if_t<is_element<Index> && std::is_integral_v<Index>>>
  value operator[](Index index) const {
    dist_value *item = nullptr;
    if (index >= Index{0}) item = dist_value_item(handle_, static_cast<std::size_t>(index));
    if (item == nullptr) throw error(DIST_OUT_OF_RANGE, "the value has no item " + std::to_string(index));
    return share(item);
  }
  value operator[](const char *key) const {
    dist_value *item = dist_value_get(handle_, key);
    if (item == nullptr)
      throw error(DIST_NOT_FOUND, std::string("the value has no item ") + (key == nullptr ? "NULL" : key));
    return share(item);
  }
  value operator[](std::string_view key) const {
    const std::string text(key);  // NUL-terminated
    return (*this)[detail::for_c(text)];
  }
  const char *key(std::size_t index) const noexcept { return dist_value_key(handle_, index); }
  // Read-only: everything made from a value shares its memory. To write a variable, use the variable's own functions.
  const_tensor tensor() const {
    dist_tensor view;
    check(dist_value_tensor(handle_, &view));
    return const_tensor(view);
  }
  // The text or object, or NULL if the value is of another kind. Borrowed from it.
  const char *text() const noexcept;
  void *object() const noexcept;
  template <class T>
  T *object() const noexcept;
  variable_ref variable() const noexcept;
  // For a DIST_VALUE_SHARDED.
  dist::partition partition() const;
  dist::value_shard shard(int32_t logical_device) const;
  // One line, for people and logs.
  std::string describe() const;
  [[nodiscard]] dist_value *get() const noexcept { return handle_; }

  // The value that make(dist_value **) creates.
  template <class Make>
  static value made(Make &&make) {
    dist_value *handle = nullptr;
    check(make(&handle));
    return adopt(handle);
  }

 private:
  template <class Create>
  static value compose(const strategy_ref &owner, const std::vector<value> &items, Create create) {
    const std::vector<dist_value *> handles = handles_of(items);
    return made([&](dist_value **out) { return create(owner.get(), handles.data(), handles.size(), out); });
  }
  static std::vector<dist_value *> handles_of(const std::vector<value> &items) {
    std::vector<dist_value *> handles;
    handles.reserve(items.size());
    for (const value &item : items) handles.push_back(item.get());
    return handles;
  }

  dist_value *handle_ = nullptr;
};

namespace detail {

// A value that libdist passes to a host function, which may keep a copy.
class borrowed {
 public:
  explicit borrowed(dist_value *handle) noexcept : held_(value::adopt(handle)) {}
  ~borrowed() { held_.release(); }
  borrowed(const borrowed &) = delete;
  borrowed &operator=(const borrowed &) = delete;
  const value &operator*() const noexcept { return held_; }

 private:
  value held_;
};

// Calls a host function that may return a value, and transfers that value to libdist.
template <class Call>
void hand_over(dist_value **out, Call &&call) {
  if constexpr (std::is_void_v<std::invoke_result_t<Call &>>)
    call();
  else
    *out = value(call()).release();
}

// Calls fn(first, args, kwargs), or fn(first, args) if it takes no named arguments.
template <class Fn, class First>
auto call_with(Fn &fn, const First &first, const value &args, const value &kwargs) {
  if constexpr (std::is_invocable_v<Fn &, const First &, const value &, const value &>)
    return fn(first, args, kwargs);
  else
    return fn(first, args);
}

}  // namespace detail

// Creates a distributed value: fn(const dist_value_context &) returns the component of one replica.
template <class Fn>
value strategy_ref::values_from_function(Fn &&fn) const {
  using plain = std::remove_reference_t<Fn>;
  detail::callback<plain> call(fn);
  dist_value *made = nullptr;
  call.thrown.check(dist_values_from_function(
      handle_,
      [](dist_strategy *, const dist_value_context *context, dist_value **out, void *user_data) {
        auto &self = detail::callback<plain>::of(user_data);
        return detail::shielded(self.thrown, -1,
                                [&] { detail::hand_over(out, [&] { return (*self.fn)(*context); }); });
      },
      &call, &made));
  return value::adopt(made);
}

inline value value::text(const strategy_ref &owner, const char *words) {
  return made([&](dist_value **out) { return dist_value_create_text(owner.get(), words, out); });
}

inline value value::object(const strategy_ref &owner, void *thing) {
  return made([&](dist_value **out) { return dist_value_wrap_object(owner.get(), thing, nullptr, out); });
}

template <class T>
value value::object(const strategy_ref &owner, std::unique_ptr<T> thing) {
  value wrapped = made([&](dist_value **out) {
    return dist_value_wrap_object(owner.get(), thing.get(), detail::unbox<T>, out);
  });
  (void)thing.release();  // now owned by the value
  return wrapped;
}

inline value value::composite(const strategy_ref &owner, dist_value_kind kind,
                              const std::vector<value> &parts) {
  return compose(
      owner, parts,
      [kind](dist_strategy *strategy, dist_value *const *handles, std::size_t n, dist_value **out) {
        return dist_value_create_composite(strategy, kind, handles, n, out);
      });
}

inline value value::from_dlpack(const strategy_ref &owner, DLManagedTensor *managed) {
  return made([&](dist_value **out) { return dist_value_from_dlpack(owner.get(), managed, out); });
}

inline DLManagedTensor *value::to_dlpack() const {
  DLManagedTensor *managed = nullptr;
  check(dist_value_to_dlpack(handle_, &managed));
  return managed;
}

inline const char *value::text() const noexcept { return dist_value_text(handle_); }

inline void *value::object() const noexcept { return dist_value_object(handle_); }

template <class T>
T *value::object() const noexcept {
  return static_cast<T *>(dist_value_object(handle_));
}

}  // namespace dist

#endif  // DIST_HPP_VALUE_HPP
