// SPDX-License-Identifier: Apache-2.0
// Communication options, which a program sets for a strategy and can override for a call.
#pragma once

#include <cstdint>

namespace dist {

struct Communication {
  int64_t bytes_per_pack = 0;  // 0: not set
  int64_t timeout_ns = 0;      // 0: not set; DIST_NO_TIMEOUT: no limit
};

// Takes each option from `over` if it is set there, otherwise from `base`, as in TensorFlow.
constexpr Communication merged(const Communication& base, const Communication& over) noexcept {
  return {over.bytes_per_pack != 0 ? over.bytes_per_pack : base.bytes_per_pack,
          over.timeout_ns != 0 ? over.timeout_ns : base.timeout_ns};
}

}  // namespace dist
