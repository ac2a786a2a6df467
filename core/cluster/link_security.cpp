// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/link_security.hpp"

#include <strings.h>

#include <cstdio>
#include <cstring>

#include "core/base/os/socket.hpp"
#include "core/base/text.hpp"

namespace dist {
namespace {

constexpr std::size_t kMostAddressBytes = 255;
constexpr std::size_t kMostSecretBytes = 4096;
constexpr std::size_t kMostPemBytes = std::size_t{1} << 20;

Status check_text(const char* text, const char* name, std::size_t most) noexcept {
  if (text == nullptr) return kOk;
  if (*text == '\0') return invalid_argument("%s is empty. Set it, or leave it out.", name);
  if (strnlen(text, most + 1) > most) {
    return invalid_argument("%s is longer than %zu bytes", name, most);
  }
  return kOk;
}

// Checks that the text looks like PEM. gRPC detects other errors in the text, but reports them only as a
// failed connection. `name` is used in messages if the text's file is not known.
Status check_pem(const char* text, const char* name, const char* kind, const char* variable,
                 const char* file) noexcept {
  char place[256];
  if (file != nullptr) {
    std::snprintf(place, sizeof place, "%s: the file %s", variable, Shown(file).c_str());
    name = place;
  }
  DIST_TRY(check_text(text, name, kMostPemBytes));
  if (text == nullptr) return kOk;
  const char* const begin = std::strstr(text, "-----BEGIN ");
  const char* const found = begin != nullptr ? std::strstr(begin, kind) : nullptr;
  if (found != nullptr) return kOk;
  return invalid_argument("%s has no \"-----BEGIN ... %s\" line, so it is not a PEM file of that kind", name,
                          kind);
}

}  // namespace

bool HostAndPort::is_loopback() const noexcept {
  constexpr std::string_view kLocal = "localhost";
  if (host == "::1") return true;
  if (host.size() == kLocal.size() && strncasecmp(host.data(), kLocal.data(), kLocal.size()) == 0)
    return true;
  return host.substr(0, 4) == "127." && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool HostAndPort::is_number() const noexcept { return is_ip_address(host); }

bool parse_address(const char* text, long least_port, HostAndPort* out) noexcept {
  const std::string_view whole(text);
  const std::size_t colon = whole.rfind(':');
  if (colon == std::string_view::npos || whole.size() > kMostAddressBytes || !is_line(text)) return false;
  std::string_view host = whole.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return false;
  // These characters would begin another scheme or path for gRPC's resolver.
  if (host.find_first_of("/%? \t\\,[]") != std::string_view::npos) return false;
  const std::string_view port = whole.substr(colon + 1);
  if (port.empty() || port.size() > 5) return false;
  long number = 0;
  for (const char each : port) {
    if (each < '0' || each > '9') return false;
    number = number * 10 + (each - '0');
  }
  *out = {host, number};
  return number >= least_port && number <= 65535;
}

std::pmr::string default_bind_address(Memory& memory, const char* address) {
  HostAndPort parsed;
  const bool valid = parse_address(address, 0, &parsed);
  if (!valid || parsed.is_loopback()) return {address, &memory};
  std::pmr::string text("[::]", &memory);
  return text += std::strrchr(address, ':');
}

KeptSecurity::KeptSecurity(Memory& memory, const LinkSecurity& given) : KeptSecurity(memory) {
  const auto keep = [](const char* text, std::pmr::string* out) {
    if (text != nullptr) *out = text;
  };
  keep(given.secret, &secret);
  keep(given.ca, &ca);
  keep(given.certificate, &certificate);
  keep(given.key, &key);
  keep(given.files.ca, &ca_file);
  keep(given.files.certificate, &certificate_file);
  keep(given.files.key, &key_file);
  allow_plaintext = given.allow_plaintext;
  lease_ns = given.lease_ns == 0 ? kDefaultLeaseNs : given.lease_ns;
}

KeptSecurity::~KeptSecurity() {
  for (std::pmr::string* const text : {&secret, &key}) {
    volatile char* const at = text->data();
    for (std::size_t i = 0; i < text->size(); ++i) at[i] = '\0';
  }
}

LinkSecurity KeptSecurity::view() const noexcept {
  const auto given = [](const std::pmr::string& text) { return text.empty() ? nullptr : text.c_str(); };
  return {given(secret),
          given(ca),
          given(certificate),
          given(key),
          {given(ca_file), given(certificate_file), given(key_file)},
          allow_plaintext,
          lease_ns};
}

Status check_security(const LinkSecurity& security) noexcept {
  if (security.lease_ns != 0 && (security.lease_ns < kLeastLeaseNs || security.lease_ns > kMostLeaseNs)) {
    return invalid_argument("the lease is %lld ns, but must be 100 ms to 1 h, or 0 for 10 s",
                            static_cast<long long>(security.lease_ns));
  }
  DIST_TRY(check_text(security.secret, "the secret", kMostSecretBytes));
  DIST_TRY(check_pem(security.ca, "the certificate of the authority", "CERTIFICATE-----", "DIST_TLS_CA",
                     security.files.ca));
  DIST_TRY(check_pem(security.certificate, "the certificate", "CERTIFICATE-----", "DIST_TLS_CERTIFICATE",
                     security.files.certificate));
  DIST_TRY(check_pem(security.key, "the key", "PRIVATE KEY-----", "DIST_TLS_KEY", security.files.key));
  const int given = (security.ca != nullptr) + (security.certificate != nullptr) + (security.key != nullptr);
  if (given == 0 || given == 3) return kOk;
  char missing[64] = "";
  const auto add = [&](const char* text, const char* variable) {
    const std::size_t used = std::strlen(missing);
    if (text == nullptr)
      std::snprintf(missing + used, sizeof missing - used, "%s%s", used == 0 ? "" : " and ", variable);
  };
  add(security.ca, "DIST_TLS_CA");
  add(security.certificate, "DIST_TLS_CERTIFICATE");
  add(security.key, "DIST_TLS_KEY");
  return invalid_argument(
      "TLS needs the certificate of the authority, the certificate of this process and its key, but only %d "
      "of the three %s set. Set %s too.",
      given, given == 1 ? "is" : "are", missing);
}

void Exposed::add(const char* name, const char* address) noexcept {
  HostAndPort parsed;
  if (any() || (parse_address(address, 0, &parsed) && parsed.is_loopback())) return;
  std::snprintf(text_, sizeof text_, "%s is \"%s\", which is not a loopback address", name,
                Shown(address).c_str());
}

Status check_exposure(const LinkSecurity& security, const Exposed& exposed, const char* who) noexcept {
  if (security.tls() || !exposed.any()) return kOk;
  if (!security.allow_plaintext) {
    return failed_precondition(
        "%s, so connections need TLS. Set DIST_TLS_CA, DIST_TLS_CERTIFICATE and DIST_TLS_KEY, or "
        "DIST_PLAINTEXT=1 to "
        "use plain text.",
        exposed.c_str());
  }
  if (security.secret != nullptr) return kOk;
  return failed_precondition(
      "%s, so plain text needs a secret. Set DIST_JOB_SECRET to the same value for all %s.", exposed.c_str(),
      who);
}

}  // namespace dist
