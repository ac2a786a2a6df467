// SPDX-License-Identifier: Apache-2.0
// The program's callbacks by type: their lines, and the names of their parameters.
#pragma once

#include <dist/dist.h>
#include <dist/tf.h>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "params.hpp"

namespace golden::transcript {

template <std::size_t N>
struct Kind {
  const char* name;
  std::array<const char*, N> keys;
};

// An argument that transcripts do not contain: the strategy is that of the call.
inline constexpr const char* kUnwritten = "";

template <class Fn>
inline constexpr int kKind = 0;  // not a callback
template <>
inline constexpr Kind<5> kKind<dist_values_fn>{"replica",
                                               {"replica", "args", "kwargs", "out_result", "user_data"}};
template <>
inline constexpr Kind<4> kKind<dist_merge_fn>{"merge", {"strategy", "args", "out_result", "user_data"}};
template <>
inline constexpr Kind<6> kKind<dist_update_fn>{
    "update", {kUnwritten, "place", "args", "kwargs", "out_result", "user_data"}};
template <>
inline constexpr Kind<4> kKind<dist_value_fn>{"value", {kUnwritten, "context", "out_value", "user_data"}};
template <>
inline constexpr Kind<3> kKind<dist_initial_fn>{"initial", {kUnwritten, "out_value", "user_data"}};
template <>
inline constexpr Kind<4> kKind<dist_source_fn>{"source", {kUnwritten, "index", "out_element", "user_data"}};
template <>
inline constexpr Kind<6> kKind<dist_file_source_fn>{
    "file", {kUnwritten, "file", "name", "index", "out_element", "user_data"}};
template <>
inline constexpr Kind<4> kKind<dist_dataset_fn>{"dataset",
                                                {kUnwritten, "context", "out_dataset", "user_data"}};
inline constexpr const char* kAccumulate = "accumulate";  // dist_reduce_fn

template <class T>
constexpr bool is_program = !std::is_same_v<const int, decltype(kKind<T>)>;
// A table, which libdist may read at any time.
template <class T>
constexpr bool is_table = std::is_same_v<T, dist_source_fn> || std::is_same_v<T, dist_file_source_fn>;

// Calls fn(key, argument) for each argument.
template <class Keys, class... A, class Fn>
void each(const Keys& keys, std::tuple<A...>& all, Fn&& fn) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (fn(keys[I], std::get<I>(all)), ...); }
  (std::index_sequence_for<A...>{});
}

// Returns the arguments of dist_reduce_fn as tensors.
inline dist_tensor flat(const void* data, const int64_t* count, dist_dtype dtype) noexcept {
  return {const_cast<void*>(data), dtype, 1, count, nullptr};
}

}  // namespace golden::transcript
