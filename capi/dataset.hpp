// SPDX-License-Identifier: Apache-2.0
// Datasets' and iterators' handles, and where a pass is.
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
// As much of it as the caller's version has room for; its struct_size stays.
Status write_position(const Position& position, dist_position* out) noexcept;

}  // namespace dist::capi
