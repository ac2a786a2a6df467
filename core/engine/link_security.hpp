// SPDX-License-Identifier: Apache-2.0
// How links between processes are protected, by the job's secret and by TLS, and which of the two must be
// configured before anything is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/status.hpp"

namespace dist {

inline constexpr int64_t kDefaultLeaseNs = 10'000'000'000;
inline constexpr int64_t kLeastLeaseNs = 100'000'000;
inline constexpr int64_t kMostLeaseNs = int64_t{3600} * 1'000'000'000;

struct LinkSecurity {
  const char* secret = nullptr;  // of the job; NULL: none
  const char* ca = nullptr;      // PEM texts: all three, or none
  const char* certificate = nullptr;
  const char* key = nullptr;
  bool allow_plaintext = false;  // off loopback
  int64_t lease_ns = 0;          // how long one that says nothing lives; 0: kDefaultLeaseNs

  bool tls() const noexcept { return ca != nullptr || certificate != nullptr || key != nullptr; }
};

struct HostAndPort {
  std::string_view host;  // of the text that was given, without brackets
  long port = 0;

  // Of the forms that loopback is written in; 127.1.2.3, and no name that begins so.
  bool is_loopback() const noexcept;
};

// "host:port" or "[v6]:port", with a port of `least_port` to 65535. False: it is neither.
bool parse_address(const char* text, long least_port, HostAndPort* out) noexcept;

// The texts, and the lease.
Status check_security(const LinkSecurity& security) noexcept;
// Whether anything may be sent: `all_loopback` says whether all addresses are there, which `who` are the addresses of.
Status check_exposure(const LinkSecurity& security, bool all_loopback, const char* who) noexcept;

}  // namespace dist
