// SPDX-License-Identifier: Apache-2.0
// How links between processes are protected, by the job's secret and by TLS, and which of these must be
// configured before anything may be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

inline constexpr int64_t kDefaultLeaseNs = 10'000'000'000;
inline constexpr int64_t kLeastLeaseNs = 100'000'000;
inline constexpr int64_t kMostLeaseNs = int64_t{3600} * 1'000'000'000;

// The files that the PEM texts were read from, for messages. NULL if not known.
struct PemFiles {
  const char* ca = nullptr;
  const char* certificate = nullptr;
  const char* key = nullptr;
};

struct LinkSecurity {
  const char* secret = nullptr;  // the job's; NULL: none
  const char* ca = nullptr;      // PEM texts; either all three or none
  const char* certificate = nullptr;
  const char* key = nullptr;
  PemFiles files;
  bool allow_plaintext = false;  // on non-loopback addresses
  int64_t lease_ns = 0;          // how long a peer that sends nothing is considered alive; 0: kDefaultLeaseNs

  bool tls() const noexcept { return ca != nullptr || certificate != nullptr || key != nullptr; }
};

// Owns the texts of a LinkSecurity. Its destructor overwrites the secret and the key, so that they cannot be
// found in reused memory.
class KeptSecurity {
 public:
  explicit KeptSecurity(Memory& memory)
      : secret(&memory),
        ca(&memory),
        certificate(&memory),
        key(&memory),
        ca_file(&memory),
        certificate_file(&memory),
        key_file(&memory) {}
  KeptSecurity(Memory& memory, const LinkSecurity& given);
  ~KeptSecurity();
  KeptSecurity(const KeptSecurity&) = delete;
  KeptSecurity& operator=(const KeptSecurity&) = delete;

  // Returns pointers to the texts. Empty texts become NULL.
  LinkSecurity view() const noexcept;

  std::pmr::string secret;
  std::pmr::string ca, certificate, key;
  std::pmr::string ca_file, certificate_file, key_file;
  bool allow_plaintext = false;
  int64_t lease_ns = 0;
};

struct HostAndPort {
  std::string_view host;  // points into the parsed text, without brackets
  long port = 0;

  // Whether the host is written as a loopback address, such as 127.1.2.3. A name that only begins like one is
  // not.
  bool is_loopback() const noexcept;
  // Whether the host is an IP address and not a name.
  bool is_number() const noexcept;
};

// Parses "host:port" or "[v6]:port" with a port from `least_port` to 65535. Returns false if the text is
// neither.
bool parse_address(const char* text, long least_port, HostAndPort* out) noexcept;

// The address on which the owner of a valid "host:port" listens by default: the address itself if it is a
// loopback address, otherwise that port on all interfaces. The address may belong to a gateway, and its name
// may not resolve yet. check_exposure() must have accepted the address.
std::pmr::string default_bind_address(Memory& memory, const char* address);

// The form of addresses to listen on and to connect to, for messages.
inline constexpr char kAddressForm[] = "host:port or [v6]:port, with a port of 1 to 65535";

// Records the first address that is not a loopback address, for messages.
class Exposed {
 public:
  // `name`: where the address was specified, for example "DIST_BIND_ADDRESS".
  void add(const char* name, const char* address) noexcept;
  bool any() const noexcept { return text_[0] != '\0'; }
  // For example: DIST_BIND_ADDRESS is "10.0.0.7:5000", which is not a loopback address
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[256] = "";
};

// Validates the texts and the lease.
Status check_security(const LinkSecurity& security) noexcept;
// Checks whether anything may be sent to these addresses. `who` names their owners in messages.
Status check_exposure(const LinkSecurity& security, const Exposed& exposed, const char* who) noexcept;

}  // namespace dist
