// SPDX-License-Identifier: Apache-2.0
// The group on the machine's own atomics.
#include "core/comm/group-inl.hpp"

namespace dist {

template class BasicGroup<OsSync>;

}  // namespace dist
