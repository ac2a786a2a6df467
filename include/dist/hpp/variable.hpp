// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/variable.hpp: variable.h for C++. The methods that read and write a variable belong to their context:
// strategy.assign(variable, ...) outside replicas, replica.assign(variable, ...) inside them.
//
//     dist::variable w(strategy, initial, "w", DIST_AGGREGATION_MEAN);
//     strategy.run([&](dist::replica replica) {
//       const std::vector<float> gradient = gradient_of(replica.id());
//       replica.assign(w, gradient, DIST_ASSIGN_SUB);                   // every copy -= the mean of the gradients
//     });
//     const dist::value result = strategy.read(w);
#ifndef DIST_HPP_VARIABLE_HPP
#define DIST_HPP_VARIABLE_HPP

#include "replica.hpp"

namespace dist {

// A variable that another object owns.
class variable_ref {
 public:
  variable_ref() noexcept = default;
  explicit variable_ref(dist_variable *handle) noexcept : handle_(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] dist_variable *get() const noexcept { return handle_; }

  const char *name() const noexcept { return dist_variable_name(handle_); }
  const char *class_name() const noexcept;
  dist_synchronization synchronization() const noexcept;
  dist_aggregation aggregation() const noexcept;
  int32_t num_copies() const noexcept { return dist_variable_num_copies(handle_); }
  const char *copy_name(int32_t copy) const noexcept;
  // The copy that a replica uses, as a view: for reading, and for that replica to write.
  tensor component(int32_t replica_id) const {
    dist_tensor view;
    check(dist_variable_component(handle_, replica_id, &view));
    return tensor(view);
  }
  // As a value, to pass it to a run; the value keeps the variable's memory alive.
  value as_value() const {
    return value::made([&](dist_value **out) { return dist_value_create_variable(handle_, out); });
  }
  // One line, for people and logs.
  std::string describe() const;

 protected:
  dist_variable *handle_ = nullptr;
};

// A variable that this object owns; values that refer to it keep its memory alive.
class variable : public variable_ref {
 public:
  variable(const strategy_ref &owner, const const_tensor &initial, const char *name = nullptr,
           dist_aggregation aggregation = DIST_AGGREGATION_NONE) {
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.name = name;
    options.aggregation = aggregation;
    create(owner, initial, options);
  }
  variable(const strategy_ref &owner, const const_tensor &initial, const dist_variable_options &options) {
    create(owner, initial, options);
  }
  // initial() returns the initial value.
  template <class Fn, class = std::enable_if_t<std::is_invocable_r_v<value, Fn &>>>
  variable(const strategy_ref &owner, Fn &&initial, dist_variable_options options) {
    using call = detail::callback<std::remove_reference_t<Fn>>;
    call once(initial);
    options.initial_user_data = &once;
    options.initial_fn = [](dist_strategy *, dist_value **out, void *user_data) {
      auto &self = call::of(user_data);
      return detail::shielded(self.thrown, -1, [&] { detail::hand_over(out, *self.fn); });
    };
    once.thrown.check(dist_variable_create(owner.get(), nullptr, &options, &handle_));
  }
  // Takes ownership of a variable, for example from dist_replica_variable(), which otherwise is destroyed with its
  // strategy.
  static variable adopt(dist_variable *handle) noexcept { return variable(handle); }
  ~variable() { dist_variable_destroy(handle_); }
  variable(variable &&other) noexcept : variable_ref(std::exchange(other.handle_, nullptr)) {}
  variable &operator=(variable &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  variable(const variable &) = delete;
  variable &operator=(const variable &) = delete;

 private:
  explicit variable(dist_variable *handle) noexcept : variable_ref(handle) {}
  void create(const strategy_ref &owner, const const_tensor &initial, const dist_variable_options &options) {
    const dist_tensor view = initial.get();
    check(dist_variable_create(owner.get(), &view, &options, &handle_));
  }
};

inline variable_ref value::variable() const noexcept { return variable_ref(dist_value_variable(handle_)); }

// ---- From outside ----------------------------------------------------------------------------------------

inline value strategy_ref::read(const variable_ref &variable) const {
  return value::made([&](dist_value **out) { return dist_variable_read(handle_, variable.get(), out); });
}
inline void strategy_ref::assign(const variable_ref &variable, const value &given, dist_assign_op how) const {
  check(dist_variable_assign(handle_, variable.get(), how, given.get()));
}

// ---- Inside replicas -------------------------------------------------------------------------------------

inline value replica::read(const variable_ref &variable) const {
  return value::made([&](dist_value **out) { return dist_replica_read(handle_, variable.get(), out); });
}
inline void replica::assign(const variable_ref &variable, const const_tensor &given, dist_assign_op how,
                            const collective_options &options) const {
  const dist_tensor view = given.get();
  const auto c = options.get();
  dist::check(dist_replica_assign(handle_, variable.get(), how, &view, &c));
}

inline const char *variable_ref::class_name() const noexcept { return dist_variable_class(handle_); }

inline dist_synchronization variable_ref::synchronization() const noexcept {
  return dist_variable_synchronization(handle_);
}

inline dist_aggregation variable_ref::aggregation() const noexcept {
  return dist_variable_aggregation(handle_);
}

inline const char *variable_ref::copy_name(int32_t copy) const noexcept {
  return dist_variable_copy_name(handle_, copy);
}

// ---- From outside ----------------------------------------------------------------------------------------

inline void strategy_ref::scatter(const variable_ref &variable, dist_scatter_op how,
                                  const value &slices) const {
  check(dist_variable_scatter(handle_, variable.get(), how, slices.get()));
}
inline const char *strategy_ref::variable_device(const variable_ref &variable, int32_t copy) const {
  const char *name = nullptr;
  check(dist_variable_device(handle_, variable.get(), copy, &name));
  return name;
}
inline void strategy_ref::check_drift(const variable_ref &variable) const {
  check(dist_variable_check_drift(handle_, variable.get(), nullptr));
}
inline dist_drift strategy_ref::drift(const variable_ref &variable) const {
  dist_drift found = DIST_DRIFT_INIT;
  const dist_status status = dist_variable_check_drift(handle_, variable.get(), &found);
  if (status != DIST_DATA_LOSS) check(status);
  return found;
}

// ---- Inside replicas -------------------------------------------------------------------------------------

inline variable_ref replica::variable(const char *name, const const_tensor &initial,
                                      const dist_variable_options &options) const {
  const dist_tensor view = initial.get();
  dist_variable *found = nullptr;
  dist::check(dist_replica_variable(handle_, name, &view, &options, &found));
  return variable_ref(found);
}
inline variable_ref replica::variable(const char *name, const const_tensor &initial) const {
  const dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  return variable(name, initial, options);
}
inline void replica::assign_value(const variable_ref &variable, const value &given, dist_assign_op how,
                                  const collective_options &options) const {
  const auto c = options.get();
  dist::check(dist_replica_assign_value(handle_, variable.get(), how, given.get(), &c));
}
inline void replica::scatter(const variable_ref &variable, dist_scatter_op how, const value &slices,
                             const collective_options &options) const {
  const auto c = options.get();
  dist::check(dist_replica_scatter(handle_, variable.get(), how, slices.get(), &c));
}

}  // namespace dist

#endif  // DIST_HPP_VARIABLE_HPP
