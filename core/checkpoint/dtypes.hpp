// SPDX-License-Identifier: Apache-2.0
// The element types of safetensors files, by name. Files may contain types that libdist does not support;
// such tensors can be listed, and read and mapped as bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "dist/types.h"

namespace dist {

struct StoredDtype {
  const char* name;
  uint8_t bits;      // per element; F4 has half a byte
  dist_dtype dtype;  // 0: not supported by libdist
};

// Returns NULL if the format has no such name.
const StoredDtype* stored_dtype(std::string_view name) noexcept;
// The stored type of a libdist dtype. Sorting tensors by descending address of these objects places larger
// elements first, which aligns all data in the file.
const StoredDtype* stored_dtype(dist_dtype dtype) noexcept;

}  // namespace dist
