// SPDX-License-Identifier: Apache-2.0
// Instantiates the group for the machine's atomics.
#include "core/comm/group-inl.hpp"

namespace dist {

template class BasicGroup<OsSync>;

}  // namespace dist
