// SPDX-License-Identifier: Apache-2.0
#include "capi/options.hpp"

namespace dist::capi {

Status read_communication(const dist_communication_options* given, Communication* out) noexcept {
  dist_communication_options known;
  DIST_TRY(read_options(given, &known, "dist_communication_options"));
  DIST_TRY(require_zero(known.reserved, "dist_communication_options.reserved"));
  DIST_TRY(require_timeout(known.timeout_ns, "dist_communication_options.timeout_ns"));
  out->timeout_ns = known.timeout_ns;
  return read_size(known.bytes_per_pack, "dist_communication_options.bytes_per_pack", &out->bytes_per_pack);
}

Status write_text(const char* text, char* out, std::size_t size_bytes, const char* call) noexcept {
  const std::size_t bytes = std::strlen(text) + 1;
  if (bytes > size_bytes) {
    return invalid_argument("`%s()`: the text has %zu bytes, but `size_bytes` is only %zu", call, bytes,
                            size_bytes);
  }
  std::memcpy(out, text, bytes);
  return kOk;
}

}  // namespace dist::capi
