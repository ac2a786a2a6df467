// SPDX-License-Identifier: Apache-2.0
// experimental/links.h: modules that move data between workers.
#include "dist/experimental/links.h"

#include "capi/guard.hpp"
#include "core/net/link_modules.hpp"

using namespace dist;
using namespace dist::capi;

dist_status dist_link_register(const dist_link_functions* functions, dist_transport* out_transport) {
  return guard([&]() -> Status {
    DIST_TRY(require(functions, "dist_link_register", "functions"));
    return register_link_module(*functions, out_transport);
  });
}
