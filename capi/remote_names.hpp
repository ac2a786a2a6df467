// SPDX-License-Identifier: Apache-2.0
// Checks lists of names of variables on parameter servers.
#pragma once

#include "capi/guard.hpp"

namespace dist::capi {

// There must be at least one name, and none may be NULL.
inline Status check_names(const char* const* names, std::size_t n, const char* call) noexcept {
  DIST_TRY(check_list(names, n, call, "names"));
  if (n == 0) return invalid_argument("`%s()`: no variable is given. Name at least one.", call);
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == nullptr) return invalid_argument("`%s()`: `names[%zu]` is `NULL`", call, i);
  }
  return kOk;
}

}  // namespace dist::capi
