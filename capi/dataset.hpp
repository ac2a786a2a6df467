// SPDX-License-Identifier: Apache-2.0
// Handle conversions for datasets and iterators, and reading and writing positions.
#pragma once

#include "capi/guard.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"

namespace dist::capi {

inline Dataset* unwrap_dataset(dist_dataset* handle) noexcept { return reinterpret_cast<Dataset*>(handle); }
inline Iterator* unwrap_iterator(dist_iterator* handle) noexcept {
  return reinterpret_cast<Iterator*>(handle);
}

// INVALID_ARGUMENT for NULL and for handles of other objects.
Status check_dataset(dist_dataset* dataset, const char* call) noexcept;

Status read_position(const dist_position* given, Position* out) noexcept;
// Writes as much as the caller's version of the struct has room for. Does not change its struct_size.
Status write_position(const Position& position, dist_position* out) noexcept;

}  // namespace dist::capi
