// SPDX-License-Identifier: Apache-2.0
// Checks the TLS files of a job with the functions that libdist-grpc.so uses. Without OpenSSL, nothing is
// checked.
#pragma once

#include <string>

namespace dist {
class KeptSecurity;
}

namespace dist::info {

struct Certificates {
  bool is_checked = false;
  std::string why;            // why they cannot be used, and what to do; empty if they can
  bool fit_loopback = false;  // whether they can be used for 127.0.0.1, too
};

// `host`: that of the address at which the other workers expect this process; empty: none.
Certificates check_certificates(const KeptSecurity& security, const std::string& host);

}  // namespace dist::info
