// SPDX-License-Identifier: Apache-2.0
// The link modules of this process (dist/experimental/links.h): those that the host has registered, and those
// that are loaded from a library, like Gloo's.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "dist/experimental/links.h"

namespace dist {

// Registered modules have transports with this number and the following ones.
inline constexpr int32_t kFirstLinkTransport = DIST_TRANSPORT_AUTO + 64;

Status register_link_module(const dist_link_functions& functions, dist_transport* out_transport) noexcept;
// Returns NULL if no module is registered for this transport.
const dist_link_functions* registered_link_module(int32_t transport) noexcept;

// Whether a module may have this name.
bool is_link_module_name(const char* name) noexcept;
// Finds the registered module of this name, or the one in libdist-NAME.so. `name` must be valid. `folder`:
// the value of DIST_MODULE_FOLDER; NULL: not set. Fails with UNAVAILABLE if there is no such module or it
// cannot be used.
Status find_link_module(const char* name, const char* folder, const dist_link_functions** out) noexcept;

// Finds the link module of a transport; stores NULL if the transport needs none. `name` is the value of
// DIST_TRANSPORT if the environment selects the transport and libdist has no transport of that name. If
// `name` is NULL, `transport` selects the module. Fails with INVALID_ARGUMENT if no module has this name.
Status find_links(int32_t transport, const char* name, const char* folder,
                  const dist_link_functions** out) noexcept;

// Whether the module provides a meeting of the workers (dist_link_functions.meet).
bool has_meet(const dist_link_functions& functions) noexcept;

}  // namespace dist
