// SPDX-License-Identifier: Apache-2.0
// Communication options, which a program sets for a strategy and can override for a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

struct Communication {
  dist_communication implementation = DIST_COMMUNICATION_AUTO;
  int64_t bytes_per_pack = 0;  // 0: not set
  bool has_timeout = false;
  int64_t timeout_ns = 0;  // if set, <= 0 means no limit
};

Status check(const Communication& options) noexcept;

// Each option of `over` that is set, otherwise that of `base`, as in TensorFlow.
Communication merged(const Communication& base, const Communication& over) noexcept;

// "Options(bytes_per_pack=0,timeout_seconds=None, implementation=CommunicationImplementation.AUTO)", in
// TensorFlow's format, truncated to `size`.
void describe(const Communication& options, char* text, std::size_t size) noexcept;

}  // namespace dist
