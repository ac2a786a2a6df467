// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/names.hpp: the names of what dist/types.h numbers, and options of communication, of collective.h.
#ifndef DIST_HPP_NAMES_HPP
#define DIST_HPP_NAMES_HPP

#include <cstring>

#include "tensor.hpp"

namespace dist {

// NULL for a number that has no name.
inline const char *reduce_op_name(dist_reduce_op op) noexcept { return dist_reduce_op_name(op); }
inline const char *reduce_op_name(reduce_op op) noexcept {
  return dist_reduce_op_name(static_cast<int32_t>(op));
}
inline const char *communication_name(int32_t implementation) noexcept {
  return dist_communication_name(implementation);
}
inline const char *cross_device_name(int32_t kind) noexcept { return dist_cross_device_name(kind); }
inline const char *synchronization_name(int32_t synchronization) noexcept {
  return dist_synchronization_name(synchronization);
}
inline const char *aggregation_name(int32_t aggregation) noexcept {
  return dist_aggregation_name(aggregation);
}
inline const char *input_mode_name(int32_t mode) noexcept { return dist_input_mode_name(mode); }
inline const char *shard_policy_name(int32_t policy) noexcept { return dist_shard_policy_name(policy); }

namespace detail {
// The number that a function of the C API finds for what it is given.
template <class Given>
int32_t number_of(dist_status (*find)(Given, int32_t *), Given given) {
  int32_t number = 0;
  check(find(given, &number));
  return number;
}

// A text that a function of the C API writes into a buffer: call(buffer, its size).
template <class Call>
std::string text_in(std::size_t room, Call &&call) {
  std::string text(room, '\0');
  check(call(text.data(), text.size()));
  text.resize(std::strlen(text.c_str()));
  return text;
}
inline constexpr std::size_t name_room = 1024;
inline std::size_t room_for(const char *job) noexcept {
  return name_room + (job == nullptr ? 0 : std::strlen(job));
}
}  // namespace detail

inline reduce_op reduce_op_from_name(const char *name) {
  return static_cast<reduce_op>(detail::number_of(dist_reduce_op_from_name, name));
}
inline reduce_op reduce_op_from_aggregation(int32_t aggregation) {
  return static_cast<reduce_op>(detail::number_of(dist_reduce_op_from_aggregation, aggregation));
}
inline int32_t communication_from_name(const char *name) {
  return detail::number_of(dist_communication_from_name, name);
}
inline int32_t synchronization_from_name(const char *name) {
  return detail::number_of(dist_synchronization_from_name, name);
}
inline int32_t aggregation_from_name(const char *name) {
  return detail::number_of(dist_aggregation_from_name, name);
}
inline int32_t input_mode_from_name(const char *name) {
  return detail::number_of(dist_input_mode_from_name, name);
}
inline int32_t shard_policy_from_name(const char *name) {
  return detail::number_of(dist_shard_policy_from_name, name);
}

// A device's name in full.
inline std::string canonical_device(const char *name) {
  return detail::text_in(detail::name_room,
                         [&](char *out, std::size_t room) { return dist_canonical_device(name, out, room); });
}

// How a program asks its collectives to be done: C's options, with what they say of themselves.
struct communication_options : dist_communication_options {
  communication_options() noexcept : dist_communication_options(DIST_COMMUNICATION_OPTIONS_INIT) {}

  // What `over` gives, else what these do.
  communication_options merge(const communication_options &over) const {
    communication_options merged;
    check(dist_communication_options_merge(this, &over, &merged));
    return merged;
  }
  // As TensorFlow prints them.
  std::string describe() const {
    return detail::text_in(detail::name_room, [&](char *out, std::size_t room) {
      return dist_communication_options_describe(this, out, room);
    });
  }
};

}  // namespace dist
#endif  // DIST_HPP_NAMES_HPP
