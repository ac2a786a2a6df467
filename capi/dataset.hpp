// SPDX-License-Identifier: Apache-2.0
// Datasets' and iterators' handles.
#pragma once

#include "capi/guard.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"

namespace dist::capi {

inline Dataset* unwrap_dataset(dist_dataset* handle) noexcept { return reinterpret_cast<Dataset*>(handle); }
inline Iterator* unwrap_iterator(dist_iterator* handle) noexcept {
  return reinterpret_cast<Iterator*>(handle);
}

// Whether the handle, which may be NULL, is a dataset's.
bool is_dataset(dist_dataset* dataset) noexcept;
// INVALID_ARGUMENT for NULL and for handles of other objects.
Status check_dataset(dist_dataset* dataset, const char* call) noexcept;

}  // namespace dist::capi
