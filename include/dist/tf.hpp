// SPDX-License-Identifier: Apache-2.0
//
// dist/tf.hpp: tf.h for C++, for programs that are ported from tf.distribute: the thread's default strategy,
// colocation, and cross-device operations as objects.
//
//     dist::set_strategy(strategy);                             // tf.distribute.experimental_set_strategy(strategy)
//     const dist::strategy_ref same = dist::get_strategy();     // also outside its scope
#ifndef DIST_TF_HPP
#define DIST_TF_HPP

#include <memory>
#include <utility>
#include <vector>

#include "hpp/cross_replica.hpp"
#include "hpp/scope.hpp"
#include "tf.h"

namespace dist {

// Sets the strategy that is current on this thread outside scopes; an empty strategy_ref removes it.
inline void set_strategy(const strategy_ref &strategy) { check(dist_set_strategy(strategy.get())); }

// Colocates the variables that this thread creates with another one until the guard is destroyed.
class [[nodiscard]] colocation_guard {
 public:
  colocation_guard(const strategy_ref &strategy, const value &variable) : strategy_(strategy) {
    check(dist_colocate_enter(strategy_.get(), variable.get()));
  }
  ~colocation_guard() { (void)!dist_colocate_exit(strategy_.get()); }
  colocation_guard(const colocation_guard &) = delete;
  colocation_guard &operator=(const colocation_guard &) = delete;

 private:
  strategy_ref strategy_;
};
// The same as a colocation_guard: const auto guard = dist::colocate(strategy, variable);
inline colocation_guard colocate(const strategy_ref &strategy, const value &variable) {
  return colocation_guard(strategy, variable);
}

// Whether the strategy created the variable.
inline bool created_in_scope(const strategy_ref &strategy, const value &variable) {
  int32_t created = 0;
  check(dist_variable_created_in_scope(strategy.get(), variable.get(), &created));
  return created != 0;
}

// The variable that a value is or of which it is a copy, as local_results() returns them; empty for any other value.
inline variable_ref container_of(const value &given) noexcept {
  return variable_ref(dist_value_container(given.get()));
}

// Reduces, broadcasts and gathers values, for dist_strategy_options.cross_device or without a strategy. If it has your
// own functions, it must outlive the strategies that use it.
class cross_device {
 public:
  explicit cross_device(const dist_cross_device_options &options) {
    check(dist_cross_device_create(&options, &handle_));
  }
  explicit cross_device(dist_cross_device_kind kind = DIST_CROSS_DEVICE_DEFAULT) {
    dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
    options.kind = kind;
    check(dist_cross_device_create(&options, &handle_));
  }
  // DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE; `accumulate`, from reduce_with(), replaces +.
  static cross_device reduction_to_one_device(const char *device = nullptr) {
    return to_one_device(device, reduction(nullptr));
  }
  static cross_device reduction_to_one_device(const char *device, const reduction &accumulate) {
    if (accumulate.fn() == nullptr || accumulate.dtype() != 0)
      throw error(DIST_INVALID_ARGUMENT, "cross-device operations take an operator for elements of any type");
    return to_one_device(device, accumulate);
  }
  // DIST_CROSS_DEVICE_HOST
  explicit cross_device(cross_device_functions functions)
      : host_(new detail::host<cross_device_functions>{std::move(functions), {}}) {
    dist_cross_device_functions table = DIST_CROSS_DEVICE_FUNCTIONS_INIT;
    host_->fill(table);
    dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
    options.kind = DIST_CROSS_DEVICE_HOST;
    options.functions = &table;
    options.functions_user_data = host_.get();
    check(dist_cross_device_create(&options, &handle_));
  }
  ~cross_device() { dist_cross_device_destroy(handle_); }
  cross_device(cross_device &&other) noexcept { swap(other); }
  cross_device &operator=(cross_device &&other) noexcept {
    swap(other);
    return *this;
  }
  cross_device(const cross_device &) = delete;
  cross_device &operator=(const cross_device &) = delete;

  dist_cross_device_kind kind() const noexcept { return dist_cross_device_kind_of(handle_); }
  const char *device() const noexcept { return dist_cross_device_device(handle_); }  // NULL = none
  [[nodiscard]] dist_cross_device *get() const noexcept { return handle_; }

  value reduce(reduce_op op, const value &given, const destination &where) const {
    dist_value *reduced = nullptr;
    check_call(dist_cross_device_reduce(handle_, static_cast<dist_reduce_op>(op), given.get(), where.get(),
                                        &reduced));
    return value::adopt(reduced);
  }
  std::vector<value> batch_reduce(reduce_op op,
                                  const std::vector<std::pair<value, destination>> &pairs) const {
    detail::reduction_batch batch(pairs);
    check_call(dist_cross_device_batch_reduce(handle_, static_cast<dist_reduce_op>(op), batch.values.data(),
                                              batch.where(), pairs.size(), batch.results.data()));
    return batch.take();
  }
  value broadcast(const value &given, const destination &where) const {
    dist_value *copies = nullptr;
    check_call(dist_cross_device_broadcast(handle_, given.get(), where.get(), &copies));
    return value::adopt(copies);
  }
  value gather(const value &given, int32_t axis) const {
    dist_value *joined = nullptr;
    check_call(dist_cross_device_gather(handle_, given.get(), axis, &joined));
    return value::adopt(joined);
  }

 private:
  static cross_device to_one_device(const char *device, const reduction &accumulate) {
    dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
    options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
    options.reduce_to_device = device;
    options.accumulate = accumulate.fn();
    options.accumulate_user_data = accumulate.user_data();
    options.accumulate_element_bytes = accumulate.element_bytes();
    return cross_device(options);
  }
  void check_call(dist_status status) const {
    if (host_)
      host_->thrown.check(status);
    else
      check(status);
  }
  void swap(cross_device &other) noexcept {
    std::swap(handle_, other.handle_);
    host_.swap(other.host_);
  }

  std::unique_ptr<detail::host<cross_device_functions>> host_;
  dist_cross_device *handle_ = nullptr;
};

}  // namespace dist

#endif  // DIST_TF_HPP
