// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/cross_replica.hpp: reductions, gathering and updates from outside replicas and inside merge functions
// (cross_replica.h). Also cross-device operations, and your own functions that replace libdist's in them and in
// strategies.
//
//     const dist::value losses = strategy.run_values(step, batch);                    // one loss per replica
//     const dist::value mean = strategy.reduce(dist::reduce_op::mean, losses);        // one tensor
#ifndef DIST_HPP_CROSS_REPLICA_HPP
#define DIST_HPP_CROSS_REPLICA_HPP

#include "variable.hpp"

namespace dist {

// The destination of a result: the places of a variable or of a value, a device name, or (default) every replica.
class destination {
 public:
  destination() noexcept = default;
  destination(const variable_ref &variable) noexcept : where_{variable.get(), nullptr, nullptr} {}  // NOLINT
  destination(const value &components) noexcept : where_{nullptr, components.get(), nullptr} {}     // NOLINT
  destination(const char *device) noexcept : where_{nullptr, nullptr, device} {}                    // NOLINT
  // A number, such as 0, is not a device name, although 0 converts to a pointer.
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  destination(Number number) = delete;

  bool everywhere() const noexcept {
    return where_.variable == nullptr && where_.value == nullptr && where_.device == nullptr;
  }
  [[nodiscard]] const dist_destination *get() const noexcept { return everywhere() ? nullptr : &where_; }

 private:
  dist_destination where_{};
};

namespace detail {

// Values and their destinations in the form of the C API, and the results.
struct reduction_batch {
  explicit reduction_batch(const std::vector<std::pair<value, destination>> &pairs) : results(pairs.size()) {
    taken.reserve(pairs.size());
    for (const auto &pair : pairs) {
      values.push_back(pair.first.get());
      const dist_destination *where = pair.second.get();
      places.push_back(where == nullptr ? dist_destination{} : *where);
      somewhere = somewhere || where != nullptr;
    }
  }
  const dist_destination *where() const noexcept { return somewhere ? places.data() : nullptr; }
  std::vector<value> take() noexcept {
    for (dist_value *each : results) taken.push_back(value::adopt(each));  // capacity has been reserved
    return std::move(taken);
  }

  std::vector<dist_value *> values;
  std::vector<dist_destination> places;
  std::vector<dist_value *> results;
  std::vector<value> taken;
  bool somewhere = false;
};

}  // namespace detail

inline value strategy_ref::reduce(reduce_op op, const value &given) const { return reduce(op, given, {}); }
inline value strategy_ref::reduce(reduce_op op, const value &given,
                                  std::initializer_list<int32_t> axes) const {
  dist_value *reduced = nullptr;
  check_call(dist_reduce(handle_, static_cast<dist_reduce_op>(op), given.get(),
                         axes.size() == 0 ? nullptr : axes.begin(), axes.size(), &reduced));
  return value::adopt(reduced);
}
inline value strategy_ref::reduce_to(reduce_op op, const value &given, const destination &where,
                                     const dist_communication_options &options) const {
  dist_value *reduced = nullptr;
  check_call(
      dist_reduce_to(handle_, static_cast<dist_reduce_op>(op), given.get(), where.get(), &options, &reduced));
  return value::adopt(reduced);
}
inline value strategy_ref::reduce_to(reduce_op op, const value &given, const destination &where) const {
  return reduce_to(op, given, where, communication_options());
}
inline std::vector<value> strategy_ref::batch_reduce_to(
    reduce_op op, const std::vector<std::pair<value, destination>> &pairs,
    const dist_communication_options &options) const {
  detail::reduction_batch batch(pairs);
  check_call(dist_batch_reduce_to(handle_, static_cast<dist_reduce_op>(op), batch.values.data(),
                                  batch.where(), pairs.size(), &options, batch.results.data()));
  return batch.take();
}
inline std::vector<value> strategy_ref::batch_reduce_to(
    reduce_op op, const std::vector<std::pair<value, destination>> &pairs) const {
  return batch_reduce_to(op, pairs, communication_options());
}
inline value strategy_ref::gather(const value &given, int32_t axis) const {
  dist_value *joined = nullptr;
  check_call(dist_gather(handle_, given.get(), axis, &joined));
  return value::adopt(joined);
}
inline value strategy_ref::local_results(const value &given) const {
  return value::made(
      [&](dist_value **out) { return dist_strategy_local_results(handle_, given.get(), out); });
}

// The same as owner.reduce(op, given).
inline value reduce(const strategy_ref &owner, reduce_op op, const value &given) {
  return owner.reduce(op, given);
}

// ---- Updates ---------------------------------------------------------------------------------------------

namespace detail {

// Whether an update function takes the copy instead of the place.
template <class Fn>
inline constexpr bool takes_copy = std::is_invocable_v<Fn &, const tensor &, const value &>;
// An update function in the form of the C API.
template <class Fn>
dist_status update_call(dist_strategy *, const dist_update_place *place, dist_value *args, dist_value *kwargs,
                        dist_value **out, void *user_data) {
  auto &self = callback<Fn>::of(user_data);
  const borrowed positional(args), named(kwargs);
  return shielded(self.thrown, -1, [&] {
    if constexpr (takes_copy<Fn>) {
      (*self.fn)(tensor(*place->copy), *positional);
    } else {
      hand_over(out, [&] { return call_with(*self.fn, *place, *positional, *named); });
    }
  });
}
inline dist_update_options update_options(bool ungrouped, bool parallel = false) noexcept {
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.ungrouped = ungrouped;
  options.parallel = parallel;
  return options;
}

}  // namespace detail

template <class Fn>
value strategy_ref::update(const variable_ref &variable, Fn &&fn, const value &args, const value &kwargs,
                           bool ungrouped) const {
  using plain = std::remove_reference_t<Fn>;
  detail::callback<plain> each(fn);
  const dist_update_options options = detail::update_options(ungrouped, detail::takes_copy<plain>);
  dist_value *result = nullptr;
  each.thrown.check(dist_update(handle_, variable.get(), detail::update_call<plain>, &each, args.get(),
                                kwargs.get(), &options, &result));
  return value::adopt(result);
}
template <class Fn>
value strategy_ref::update(const variable_ref &variable, Fn &&fn, const value &args) const {
  return update(variable, fn, args, value());
}
template <class Fn>
value replica::update(const variable_ref &variable, Fn &&fn, const value &args, const value &kwargs,
                      bool ungrouped) const {
  detail::callback<std::remove_reference_t<Fn>> each(fn);
  const dist_update_options options = detail::update_options(ungrouped);
  dist_value *result = nullptr;
  each.thrown.check(dist_replica_update(handle_, variable.get(),
                                        detail::update_call<std::remove_reference_t<Fn>>, &each, args.get(),
                                        kwargs.get(), &options, &result));
  return value::adopt(result);
}

// Empty functions are replaced by libdist's own. Their exceptions are rethrown by the reduction. A const dist_tensor is
// read-only: use const_tensor(components[0]) and tensor(out).
struct cross_device_functions {
  // out = components[0] op ... op components[n-1]
  std::function<void(reduce_op op, const dist_tensor *components, std::size_t n, dist_tensor &out)> reduce;
  // copies[r] = value, for r in 0 .. n-1
  std::function<void(const dist_tensor &value, dist_tensor *copies, std::size_t n)> broadcast;
  // out = the components one after another along the axis
  std::function<void(const dist_tensor *components, std::size_t n, int32_t axis, dist_tensor &out)> gather;
};

// The functions of a strategy of your own: dist_strategy_functions, and a log.
struct strategy_functions : cross_device_functions {
  // Called once, when the strategy is created: the copy of a variable that a replica uses, and the name of its device.
  std::function<int32_t(int32_t replica_id, int32_t num_replicas)> copy_of_replica;
  std::function<const char *(int32_t replica_id)> device_of_replica;
  // Receives log lines (DIST_LOG_...), on any thread. Its exceptions are discarded because nobody could catch them.
  std::function<void(dist_log_level level, const char *message)> log;
};

namespace detail {

// Your functions and their exceptions, alive as long as libdist may call the functions.
template <class Functions>
struct host {
  Functions functions;
  failures thrown;

  static host &of(void *user_data) noexcept { return *static_cast<host *>(user_data); }
  // Sets the three functions that strategies and cross-device operations have in common.
  template <class Table>
  void fill(Table &table) const {
    if (functions.reduce)
      table.reduce = [](dist_reduce_op op, const dist_tensor *components, size_t n, dist_tensor *out,
                        void *user_data) {
        host &self = of(user_data);
        return shielded(self.thrown, -1,
                        [&] { self.functions.reduce(static_cast<reduce_op>(op), components, n, *out); });
      };
    if (functions.broadcast)
      table.broadcast = [](const dist_tensor *value, dist_tensor *copies, size_t n, void *user_data) {
        host &self = of(user_data);
        return shielded(self.thrown, -1, [&] { self.functions.broadcast(*value, copies, n); });
      };
    if (functions.gather)
      table.gather = [](const dist_tensor *components, size_t n, int32_t axis, dist_tensor *out,
                        void *user_data) {
        host &self = of(user_data);
        return shielded(self.thrown, -1, [&] { self.functions.gather(components, n, axis, *out); });
      };
  }
};

struct strategy_host : host<strategy_functions> {};

}  // namespace detail

inline strategy::strategy(dist_strategy_options options, strategy_functions functions) {
  dist_host_options options_host = DIST_HOST_OPTIONS_INIT;
  if (options.host != nullptr) options_host = *options.host;
  options.host = &options_host;
  using host = detail::strategy_host;
  host_ = {new host{{std::move(functions), {}}}, [](host *ended) { delete ended; }};
  failures_ = &host_->thrown;
  dist_strategy_functions table = DIST_STRATEGY_FUNCTIONS_INIT;
  host_->fill(table);
  const strategy_functions &given = host_->functions;
  if (given.copy_of_replica)
    table.copy_of_replica = [](int32_t replica_id, int32_t num_replicas, void *user_data) {
      auto &self = *static_cast<host *>(user_data);
      int32_t copy = -1;  // invalid, so that an exception makes the creation fail
      (void)detail::shielded(self.thrown, 0,
                             [&] { copy = self.functions.copy_of_replica(replica_id, num_replicas); });
      return copy;
    };
  if (given.device_of_replica)
    table.device_of_replica = [](int32_t replica_id, void *user_data) {
      auto &self = *static_cast<host *>(user_data);
      const char *name = nullptr;
      (void)detail::shielded(self.thrown, 0, [&] { name = self.functions.device_of_replica(replica_id); });
      return name;
    };
  if (given.log) {
    options_host.log = [](dist_log_level level, const char *message, void *user_data) {
      try {
        static_cast<host *>(user_data)->functions.log(level, message);
      } catch (const std::exception &) {  // see strategy_functions
      }
    };
    options_host.log_user_data = host_.get();
  }
  if (given.reduce || given.broadcast || given.gather || given.copy_of_replica || given.device_of_replica) {
    options.functions = &table;
    options.functions_user_data = host_.get();
  }
  const dist_status status = dist_strategy_create(&options, &handle_);
  if (status == DIST_OK) return;
  const error report(status);
  host_->thrown.raise_of(0, report);
}

inline value strategy_ref::broadcast_to(const value &given, const destination &where) const {
  dist_value *copies = nullptr;
  check_call(dist_broadcast_to(handle_, given.get(), where.get(), &copies));
  return value::adopt(copies);
}
inline std::string strategy_ref::destination_device(const destination &where) const {
  return detail::text_in(detail::name_room, [&](char *out, std::size_t room) {
    return dist_destination_device(handle_, where.get(), out, room);
  });
}

// ---- Updates ---------------------------------------------------------------------------------------------

template <class Fn>
value strategy_ref::update_non_slot(Fn &&fn, const value &args, const value &kwargs, bool ungrouped) const {
  detail::callback<std::remove_reference_t<Fn>> each(fn);
  const dist_update_options options = detail::update_options(ungrouped);
  dist_value *result = nullptr;
  each.thrown.check(dist_update_non_slot(handle_, detail::update_call<std::remove_reference_t<Fn>>, &each,
                                         args.get(), kwargs.get(), &options, &result));
  return value::adopt(result);
}

}  // namespace dist

#endif  // DIST_HPP_CROSS_REPLICA_HPP
