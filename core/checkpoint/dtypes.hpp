// SPDX-License-Identifier: Apache-2.0
// The element types of safetensors files, by their names there. Files may hold types that libdist has no
// arithmetic for: such tensors can be listed, not loaded.
#pragma once

#include <cstdint>
#include <string_view>

#include "dist/types.h"

namespace dist {

struct StoredDtype {
  const char* name;
  uint8_t bits;      // of an element: F4 has half a byte
  dist_dtype dtype;  // 0: none of libdist's
};

// NULL where the format has no such name.
const StoredDtype* stored_dtype(std::string_view name) noexcept;
// The type of one of libdist's dtypes. Types with greater addresses come first among a file's data, so that
// all data are aligned.
const StoredDtype* stored_dtype(dist_dtype dtype) noexcept;

}  // namespace dist
