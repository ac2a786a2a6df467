// SPDX-License-Identifier: Apache-2.0
// Errors as C programs see them, without the marks around names.
#pragma once

#include "core/base/status.hpp"

namespace dist {

// Returns the message of this thread's latest error.
inline const char* last_message() {
  ErrorRecord& error = last_error();
  copy_plain(error.message, error.message);
  return error.message;
}

}  // namespace dist
