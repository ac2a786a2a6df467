// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/names.hpp: names of the constants in dist/types.h, and the communication options of collective.h.
//
//     const dist_shard_policy policy = dist::shard_policy_from_name("data");          // DIST_SHARD_DATA
//     const char *name = dist::enum_name(DIST_ENUM_DTYPE, DIST_BF16);                 // "bf16"
#ifndef DIST_HPP_NAMES_HPP
#define DIST_HPP_NAMES_HPP

#include <cstring>

#include "tensor.hpp"

namespace dist {

namespace detail {
// A text that a C function writes into a buffer: call(buffer, its size).
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

// Communication options for collectives: the C struct, with a method.
struct communication_options : dist_communication_options {
  communication_options() noexcept : dist_communication_options(DIST_COMMUNICATION_OPTIONS_INIT) {}

  // The fields that `over` sets, and these for the rest.
  communication_options merge(const communication_options &over) const {
    communication_options merged;
    check(dist_communication_options_merge(this, &over, &merged));
    return merged;
  }
};

// The name of an enum's value, and the value of a name in any case; `domain` is a DIST_ENUM_.... NULL if the number has
// no name.
inline const char *enum_name(dist_enum_domain domain, int32_t value) noexcept {
  return dist_enum_name(domain, value);
}
inline int32_t enum_from_name(dist_enum_domain domain, const char *name) {
  int32_t value = 0;
  check(dist_enum_from_name(domain, name, &value));
  return value;
}

// The same, enum by enum.
inline const char *reduce_op_name(dist_reduce_op op) noexcept { return enum_name(DIST_ENUM_REDUCE_OP, op); }
inline const char *reduce_op_name(reduce_op op) noexcept {
  return reduce_op_name(static_cast<dist_reduce_op>(op));
}
inline const char *cross_device_name(dist_cross_device_kind kind) noexcept {
  return enum_name(DIST_ENUM_CROSS_DEVICE, kind);
}
inline const char *synchronization_name(dist_synchronization synchronization) noexcept {
  return enum_name(DIST_ENUM_SYNCHRONIZATION, synchronization);
}
inline const char *aggregation_name(dist_aggregation aggregation) noexcept {
  return enum_name(DIST_ENUM_AGGREGATION, aggregation);
}
inline const char *input_mode_name(dist_input_mode mode) noexcept {
  return enum_name(DIST_ENUM_INPUT_MODE, mode);
}
inline const char *shard_policy_name(dist_shard_policy policy) noexcept {
  return enum_name(DIST_ENUM_SHARD_POLICY, policy);
}

// SUM or MEAN: values outside runs cannot be reduced with other operators.
inline reduce_op reduce_op_from_name(const char *name) {
  return static_cast<reduce_op>(enum_from_name(DIST_ENUM_VALUE_REDUCTION, name));
}
inline reduce_op reduce_op_from_aggregation(dist_aggregation aggregation) {
  dist_reduce_op op{};
  check(dist_reduce_op_from_aggregation(aggregation, &op));
  return static_cast<reduce_op>(op);
}
inline dist_cross_device_kind cross_device_from_name(const char *name) {
  return static_cast<dist_cross_device_kind>(enum_from_name(DIST_ENUM_CROSS_DEVICE, name));
}
inline dist_synchronization synchronization_from_name(const char *name) {
  return static_cast<dist_synchronization>(enum_from_name(DIST_ENUM_SYNCHRONIZATION, name));
}
inline dist_aggregation aggregation_from_name(const char *name) {
  return static_cast<dist_aggregation>(enum_from_name(DIST_ENUM_AGGREGATION, name));
}
inline dist_input_mode input_mode_from_name(const char *name) {
  return static_cast<dist_input_mode>(enum_from_name(DIST_ENUM_INPUT_MODE, name));
}
inline dist_shard_policy shard_policy_from_name(const char *name) {
  return static_cast<dist_shard_policy>(enum_from_name(DIST_ENUM_SHARD_POLICY, name));
}

// The full name of a device.
inline std::string canonical_device(const char *name) {
  return detail::text_in(detail::name_room,
                         [&](char *out, std::size_t room) { return dist_canonical_device(name, out, room); });
}

}  // namespace dist

#endif  // DIST_HPP_NAMES_HPP
