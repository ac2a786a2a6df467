// SPDX-License-Identifier: Apache-2.0
// Which replica this thread runs now: what tells the two contexts apart.
#pragma once

#include "core/base/status.hpp"

namespace dist {

class Replica;

struct Current {
  Replica* replica = nullptr;  // NULL: the cross-replica context
  bool merging = false;        // inside a merge function: cross-replica again, on replica 0's thread
};

Current& current() noexcept;

// OK outside replica functions and inside merge functions. `call` is the function's name, `instead` what to
// call.
Status check_cross_replica_context(const char* call, const char* instead) noexcept;

}  // namespace dist
