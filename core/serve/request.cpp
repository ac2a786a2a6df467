// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request.hpp"

#include "core/serve/instances.hpp"

namespace dist {

void Request::cancel() noexcept { home().withdrawals().cancel(*this); }

void Request::cancelled(const char* reason) noexcept { home().withdrawals().cancel_in_signal(*this, reason); }

void Request::recycle() noexcept { home().recycle(*this); }

}  // namespace dist
