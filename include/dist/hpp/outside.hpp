// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/outside.hpp: cross_replica.h for C++: reductions, gathering and updates from outside replicas and inside
// merge functions.
#ifndef DIST_HPP_OUTSIDE_HPP
#define DIST_HPP_OUTSIDE_HPP

#include "variable.hpp"

namespace dist {

// Where a result is wanted: with a variable, with a value, on a device by its name, or (none of them) on every replica.
class destination {
 public:
  destination() noexcept = default;
  destination(const variable_ref &variable) noexcept : where_{variable.get(), nullptr, nullptr} {}  // NOLINT
  destination(const value &components) noexcept : where_{nullptr, components.get(), nullptr} {}     // NOLINT
  destination(const char *device) noexcept : where_{nullptr, nullptr, device} {}                    // NOLINT
  // 0 is no name of a device, though a pointer may be made of it.
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  destination(Number number) = delete;

  bool everywhere() const noexcept {
    return where_.variable == nullptr && where_.value == nullptr && where_.device == nullptr;
  }
  const dist_destination *get() const noexcept { return everywhere() ? nullptr : &where_; }

 private:
  dist_destination where_{};
};

namespace detail {

// Values and where they go, as the C API takes them; and what it makes of them.
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
    for (dist_value *each : results) taken.push_back(value::adopt(each));  // there is room
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
  check_call(dist_reduce(handle_, static_cast<int32_t>(op), given.get(),
                         axes.size() == 0 ? nullptr : axes.begin(), axes.size(), &reduced));
  return value::adopt(reduced);
}
inline value strategy_ref::reduce_to(reduce_op op, const value &given, const destination &where,
                                     const dist_communication_options &options) const {
  dist_value *reduced = nullptr;
  check_call(dist_reduce_to(handle_, static_cast<int32_t>(op), given.get(), where.get(), &options, &reduced));
  return value::adopt(reduced);
}
inline value strategy_ref::reduce_to(reduce_op op, const value &given, const destination &where) const {
  return reduce_to(op, given, where, communication_options());
}
inline std::vector<value> strategy_ref::batch_reduce_to(
    reduce_op op, const std::vector<std::pair<value, destination>> &pairs,
    const dist_communication_options &options) const {
  detail::reduction_batch batch(pairs);
  check_call(dist_batch_reduce_to(handle_, static_cast<int32_t>(op), batch.values.data(), batch.where(),
                                  pairs.size(), &options, batch.results.data()));
  return batch.take();
}
inline std::vector<value> strategy_ref::batch_reduce_to(
    reduce_op op, const std::vector<std::pair<value, destination>> &pairs) const {
  return batch_reduce_to(op, pairs, communication_options());
}
inline value strategy_ref::broadcast_to(const value &given, const destination &where) const {
  dist_value *copies = nullptr;
  check_call(dist_broadcast_to(handle_, given.get(), where.get(), &copies));
  return value::adopt(copies);
}
inline value strategy_ref::gather(const value &given, int32_t axis) const {
  dist_value *joined = nullptr;
  check_call(dist_gather(handle_, given.get(), axis, &joined));
  return value::adopt(joined);
}
inline std::string strategy_ref::destination_device(const destination &where) const {
  return detail::text_in(detail::name_room, [&](char *out, std::size_t room) {
    return dist_destination_device(handle_, where.get(), out, room);
  });
}
inline value strategy_ref::local_results(const value &given) const {
  return value::made([&](dist_value **out) { return dist_local_results(handle_, given.get(), out); });
}

inline value reduce(const strategy_ref &owner, reduce_op op, const value &given) {
  return owner.reduce(op, given);
}

// ---- Updates ---------------------------------------------------------------------------------------------

namespace detail {

// A function of updates with values, as C calls it.
template <class Fn>
dist_status update_values_call(const dist_update_place *place, dist_value *args, dist_value *kwargs,
                               dist_value **out, void *user_data) {
  auto &self = callback<Fn>::of(user_data);
  const borrowed positional(args), named(kwargs);
  return shielded(self.thrown, -1,
                  [&] { hand_over(out, [&] { return call_with(*self.fn, *place, *positional, *named); }); });
}
inline dist_update_options update_options(bool ungrouped) noexcept {
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.ungrouped = ungrouped;
  return options;
}

}  // namespace detail

template <class Fn>
void strategy_ref::update(const variable_ref &variable, Fn &&fn, const value &args) const {
  using call = detail::callback<std::remove_reference_t<Fn>>;
  call each(fn);
  each.thrown.check(dist_update(
      handle_, variable.get(),
      [](dist_tensor *copy, dist_value *components, void *user_data) {
        auto &self = call::of(user_data);
        const detail::borrowed items(components);
        return detail::shielded(self.thrown, -1, [&] { (*self.fn)(tensor(*copy), *items); });
      },
      &each, args.get()));
}
template <class Fn>
value strategy_ref::update_values(const variable_ref &variable, Fn &&fn, const value &args,
                                  const value &kwargs, bool ungrouped) const {
  detail::callback<std::remove_reference_t<Fn>> each(fn);
  const dist_update_options options = detail::update_options(ungrouped);
  dist_value *result = nullptr;
  each.thrown.check(dist_update_values(handle_, variable.get(),
                                       detail::update_values_call<std::remove_reference_t<Fn>>, &each,
                                       args.get(), kwargs.get(), &options, &result));
  return value::adopt(result);
}
template <class Fn>
value strategy_ref::update_non_slot(Fn &&fn, const value &args, const value &kwargs, bool ungrouped) const {
  detail::callback<std::remove_reference_t<Fn>> each(fn);
  const dist_update_options options = detail::update_options(ungrouped);
  dist_value *result = nullptr;
  each.thrown.check(dist_update_non_slot(handle_, detail::update_values_call<std::remove_reference_t<Fn>>,
                                         &each, args.get(), kwargs.get(), &options, &result));
  return value::adopt(result);
}
template <class Fn>
value replica::update(const variable_ref &variable, Fn &&fn, const value &args, const value &kwargs,
                      bool ungrouped) const {
  detail::callback<std::remove_reference_t<Fn>> each(fn);
  const dist_update_options options = detail::update_options(ungrouped);
  dist_value *result = nullptr;
  each.thrown.check(dist_replica_update(handle_, variable.get(),
                                        detail::update_values_call<std::remove_reference_t<Fn>>, &each,
                                        args.get(), kwargs.get(), &options, &result));
  return value::adopt(result);
}

}  // namespace dist
#endif  // DIST_HPP_OUTSIDE_HPP
