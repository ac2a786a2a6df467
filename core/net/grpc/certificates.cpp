// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

#include "core/base/os/socket.hpp"
#include "core/base/text.hpp"

namespace dist::grpc_link {
namespace {

// Longer lists of names are truncated in messages.
constexpr std::size_t kMostNames = 4;
constexpr std::size_t kMostNameBytes = 280;

using Certificates = std::vector<OpensslRef<X509>>;

OpensslRef<BIO> read_from(std::string_view pem) {
  return OpensslRef<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Parses the certificates in a PEM text, up to the first one that cannot be read. Sets `damaged` if
// there is such a one, or if the text contains no certificate.
Certificates certificates_in(std::string_view pem, bool* damaged = nullptr) {
  const OpensslErrors errors;
  Certificates all;
  const OpensslRef<BIO> from = read_from(pem);
  while (from != nullptr) {
    OpensslRef<X509> next(PEM_read_bio_X509_AUX(from.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    all.push_back(std::move(next));
  }
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (damaged != nullptr) *damaged = all.empty() || !at_end;
  return all;
}

// OpenSSL asks for the passphrase of a key only if the key is encrypted. Its own function would ask on the
// terminal.
int note_encrypted(char*, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return -1;
}

OpensslRef<EVP_PKEY> key_in(std::string_view pem, bool* encrypted) {
  const OpensslErrors errors;
  *encrypted = false;
  const OpensslRef<BIO> from = read_from(pem);
  if (from == nullptr) return nullptr;
  return OpensslRef<EVP_PKEY>(PEM_read_bio_PrivateKey(from.get(), nullptr, note_encrypted, encrypted));
}

// "2026-11-01 12:30:00 UTC"
std::string time_text(const ASN1_TIME* time) {
  std::tm parts{};
  char text[40] = "";
  if (ASN1_TIME_to_tm(time, &parts) != 1 ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
    return "an unknown time";
  return text;
}

// Text from a certificate, made safe for messages.
std::string shown(const unsigned char* data, int size) {
  const std::string text(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  // The rest after an embedded NUL is not shown.
  return Shown(text.c_str()).c_str();
}

std::string ip_text(const ASN1_OCTET_STRING* address) {
  const unsigned char* const data = ASN1_STRING_get0_data(address);
  const int size = ASN1_STRING_length(address);
  std::string text;
  if (size == 4) {
    for (int i = 0; i < size; ++i) text += (i == 0 ? "" : ".") + std::to_string(data[i]);
  } else if (size == 16) {
    char group[8];
    for (int i = 0; i < size; i += 2) {
      std::snprintf(group, sizeof group, "%s%x", i == 0 ? "" : ":", data[i] << 8 | data[i + 1]);
      text += group;
    }
  }
  return text.empty() ? "an IP address of a wrong length" : text;
}

// "a.example, *.b.example and 2 more"
std::string names_in(X509* certificate) {
  std::string text;
  std::size_t found = 0;
  std::size_t listed = 0;
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const each = sk_GENERAL_NAME_value(names, i);
    std::string name;
    if (each->type == GEN_DNS) {
      name = shown(ASN1_STRING_get0_data(each->d.dNSName), ASN1_STRING_length(each->d.dNSName));
      if (is_ip_address(name)) name.insert(0, "the DNS name ");
    } else if (each->type == GEN_IPADD) {
      name = ip_text(each->d.iPAddress);
    } else {
      continue;
    }
    ++found;
    if (listed + 1 != found || listed == kMostNames || text.size() + name.size() > kMostNameBytes) continue;
    text += (text.empty() ? "" : ", ") + name;
    ++listed;
  }
  GENERAL_NAMES_free(names);
  if (found > listed) text += " and " + std::to_string(found - listed) + " more";
  return text;
}

// "(DIST_TLS_KEY)", or "(DIST_TLS_KEY: /etc/job/key.pem)"
std::string variable(const char* name, const std::string& file) {
  return std::string("(") + name + (file.empty() ? "" : ": " + std::string(Shown(file.c_str()).c_str())) +
         ")";
}

// Verifies a certificate against these authorities, with the flags that gRPC uses.
long verify(const Certificates& chain, const Certificates& trusted, int purpose) {
  const OpensslErrors errors;
  long result = X509_V_ERR_UNSPECIFIED;
  X509_STORE* const store = X509_STORE_new();
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  STACK_OF(X509)* const others = sk_X509_new_null();
  if (store != nullptr && context != nullptr && others != nullptr) {
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
    for (const auto& each : trusted) X509_STORE_add_cert(store, each.get());
    for (const auto& each : chain) sk_X509_push(others, each.get());
    if (X509_STORE_CTX_init(context, store, chain.front().get(), others) == 1) {
      X509_STORE_CTX_set_purpose(context, purpose);
      X509_verify_cert(context);
      result = X509_STORE_CTX_get_error(context);
    }
  }
  sk_X509_free(others);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return result;
}

constexpr int kBothPurposes[] = {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT};

// The beginning of the SHA-256 fingerprint, as `openssl x509 -fingerprint -sha256` prints it.
std::string fingerprint(X509* certificate) {
  constexpr unsigned kShownBytes = 8;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return "unknown";
  std::string text;
  char byte[4];
  for (unsigned i = 0; i < std::min(size, kShownBytes); ++i) {
    std::snprintf(byte, sizeof byte, "%s%02X", i == 0 ? "" : ":", digest[i]);
    text += byte;
  }
  return text;
}

// The certificate's issuer is not trusted, although there may be a trusted authority of the same name.
Fault unknown_authority(X509* certificate, std::string_view trusted, const Places& places) {
  const std::string remedy = "Set DIST_TLS_CA " + places.authorities +
                             " to the authority that issued it, or replace DIST_TLS_CERTIFICATE " +
                             places.certificate;
  for (const auto& each : certificates_in(trusted)) {
    if (X509_NAME_cmp(X509_get_subject_name(each.get()), X509_get_issuer_name(certificate)) != 0) continue;
    return {"was issued by an unknown authority: it has the same name as the trusted one (DIST_TLS_CA), " +
                issuer_of(certificate) +
                ", but another key; the SHA-256 fingerprint of the trusted one begins with " +
                fingerprint(each.get()),
            remedy};
  }
  return {"was issued by an unknown authority, " + issuer_of(certificate) +
              ", which is not among the trusted ones (DIST_TLS_CA)",
          remedy};
}

}  // namespace

OpensslErrors::OpensslErrors() noexcept { ERR_set_mark(); }
OpensslErrors::~OpensslErrors() { ERR_pop_to_mark(); }

std::string name_text(const X509_NAME* name) {
  OpensslRef<BIO> to(BIO_new(BIO_s_mem()));
  if (to == nullptr || X509_NAME_print_ex(to.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) < 0)
    return "an unknown name";
  char* data = nullptr;
  const long size = BIO_get_mem_data(to.get(), &data);
  if (size <= 0) return "an empty name";
  return shown(reinterpret_cast<const unsigned char*>(data), static_cast<int>(size));
}

std::string issuer_of(X509* certificate) {
  const X509_NAME* const issuer = X509_get_issuer_name(certificate);
  const bool self = X509_NAME_cmp(issuer, X509_get_subject_name(certificate)) == 0;
  return self ? "itself" : name_text(issuer);
}

std::string why_unusable(const Credentials& own) {
  const OpensslErrors errors;
  const std::string ca = variable("DIST_TLS_CA", own.ca_file);
  const std::string certificate = variable("DIST_TLS_CERTIFICATE", own.certificate_file);
  const std::string key_name = variable("DIST_TLS_KEY", own.key_file);
  bool damaged = false;
  (void)certificates_in(own.ca, &damaged);
  if (damaged) {
    return "the certificate of the authority " + ca +
           ", or one of several, cannot be read. Its PEM text is damaged.";
  }
  const Certificates chain = certificates_in(own.certificate, &damaged);
  if (damaged) {
    return "the certificate " + certificate +
           ", or one of its chain, cannot be read. Its PEM text is damaged.";
  }
  bool encrypted = false;
  const OpensslRef<EVP_PKEY> key = key_in(own.key, &encrypted);
  if (encrypted) {
    return "the private key " + key_name +
           " is encrypted, and libdist cannot ask for its passphrase. Decrypt it with \"openssl pkey -in "
           "FILE "
           "-out NEW_FILE\".";
  }
  if (key == nullptr) return "the private key " + key_name + " cannot be read. Its PEM text is damaged.";
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    return "the private key " + key_name + " does not belong to the certificate " + certificate +
           ", which was issued by " + issuer_of(chain.front().get()) +
           ". Set both to files that were made together.";
  }
  if (make_context(own) != nullptr) return "";
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return "OpenSSL does not accept the certificate " + certificate +
         " or its key: " + (reason != nullptr ? reason : "unknown error");
}

OpensslRef<SSL_CTX> make_context(const Credentials& own) {
  OpensslRef<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (own.ca.empty()) return context;
  X509_STORE* const store = SSL_CTX_get_cert_store(context.get());
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  for (const auto& each : certificates_in(own.ca)) X509_STORE_add_cert(store, each.get());
  const Certificates chain = certificates_in(own.certificate);
  bool encrypted = false;
  const OpensslRef<EVP_PKEY> key = key_in(own.key, &encrypted);
  if (chain.empty() || key == nullptr || SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1)
    return nullptr;
  for (std::size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context.get(), chain[i].get());
  return context;
}

Fault why_not_valid(X509* certificate, long result, std::string_view trusted, const Places& places) {
  const OpensslErrors errors;
  const auto is_over = [](const ASN1_TIME* time) { return X509_cmp_current_time(time) < 0; };
  char now[40] = "";
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  std::strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &parts));
  const std::string replace = "Replace DIST_TLS_CERTIFICATE " + places.certificate;
  switch (result) {
    case X509_V_OK: return {};
    case X509_V_ERR_CERT_HAS_EXPIRED:
      if (!is_over(X509_get0_notAfter(certificate)))
        return {"was issued by an authority whose certificate has expired: " + issuer_of(certificate),
                "Replace DIST_TLS_CA " + places.authorities};
      return {"expired on " + time_text(X509_get0_notAfter(certificate)), replace};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      if (is_over(X509_get0_notBefore(certificate)))
        return {"was issued by an authority whose certificate is not yet valid: " + issuer_of(certificate),
                "Correct the clocks, or replace DIST_TLS_CA " + places.authorities};
      return {"is not yet valid: it becomes valid on " + time_text(X509_get0_notBefore(certificate)) +
                  ", but this machine's clock shows " + now,
              "Correct the clocks, or replace DIST_TLS_CERTIFICATE " + places.certificate};
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return {"is self-signed, and is not among the trusted authorities (DIST_TLS_CA)", replace};
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: return unknown_authority(certificate, trusted, places);
    case X509_V_ERR_INVALID_PURPOSE:
      return {
          "may not be used for this purpose. It needs the extended key usages serverAuth and clientAuth, or "
          "none",
          replace};
    default: return {std::string("is not valid: ") + X509_verify_cert_error_string(result), replace};
  }
}

std::string why_not_for(X509* certificate, const std::string& host) {
  const OpensslErrors errors;
  // An absolute name ends with a dot, which certificates do not have.
  std::string name = host;
  if (!name.empty() && name.back() == '.') name.pop_back();
  bool matches = false;
  if (is_ip_address(name)) {
    matches = X509_check_ip_asc(certificate, name.c_str(), 0) == 1;
  } else if (!name.empty() && name.front() != '.') {
    constexpr unsigned kFlags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    matches = X509_check_host(certificate, name.data(), name.size(), kFlags, nullptr) == 1;
  }
  if (matches) return "";
  const std::string names = names_in(certificate);
  return "is not for " + host + "; " +
         (names.empty() ? "it has no DNS or IP name, and no other kind of name counts"
                        : "it is for " + names);
}

std::string why_not_for(std::string_view pem, const std::string& host) {
  const Certificates chain = certificates_in(pem);
  if (chain.empty()) return "cannot be read";
  return why_not_for(chain.front().get(), host);
}

Fault why_not_of_worker(std::string_view chain, std::string_view trusted, const std::string& host,
                        const Places& places) {
  const Certificates all = certificates_in(chain);
  if (all.empty()) return {"cannot be read", ""};
  if (std::string wrong = why_not_for(all.front().get(), host); !wrong.empty())
    return {std::move(wrong), "Set DIST_TLS_CERTIFICATE " + places.certificate + " to one for " + host};
  const Certificates authorities = certificates_in(trusted);
  for (const int purpose : kBothPurposes) {
    const long result = verify(all, authorities, purpose);
    if (Fault fault = why_not_valid(all.front().get(), result, trusted, places)) return fault;
  }
  return {};
}

Fault why_own_unfit(const Credentials& own, const std::string& host, const Places& places) {
  if (host.empty()) return {};
  const Certificates chain = certificates_in(own.certificate);
  if (chain.empty()) return {"cannot be read", ""};
  if (std::string wrong = why_not_for(chain.front().get(), host); !wrong.empty())
    return {std::move(wrong), "Set DIST_TLS_CERTIFICATE " + places.certificate + " to one for " + host};
  for (const int purpose : kBothPurposes) {
    if (X509_check_purpose(chain.front().get(), purpose, 0) != 1)
      return why_not_valid(chain.front().get(), X509_V_ERR_INVALID_PURPOSE, own.ca, places);
  }
  return {};
}

Fault why_own_rejected(const Credentials& own, const std::string& host, const Places& places) {
  const Certificates chain = certificates_in(own.certificate);
  if (chain.empty()) return {"cannot be read", ""};
  const Certificates authorities = certificates_in(own.ca);
  for (const int purpose : kBothPurposes) {
    // A process without an address never acts as a server.
    if (host.empty() && purpose == X509_PURPOSE_SSL_SERVER) continue;
    const long result = verify(chain, authorities, purpose);
    // If several authorities have the same name, OpenSSL compares only one of them. Another one has issued
    // this certificate.
    if (result == X509_V_ERR_CERT_SIGNATURE_FAILURE && !fingerprint_of_authority(own).empty()) continue;
    if (Fault fault = why_not_valid(chain.front().get(), result, own.ca, places)) return fault;
  }
  return why_own_unfit(own, host, places);
}

std::string fingerprint_of_authority(const Credentials& own) {
  const OpensslErrors errors;
  const Certificates chain = certificates_in(own.certificate);
  for (const auto& authority : certificates_in(own.ca)) {
    for (const auto& each : chain) {
      if (X509_check_issued(authority.get(), each.get()) == X509_V_OK &&
          X509_verify(each.get(), X509_get0_pubkey(authority.get())) == 1)
        return ", whose SHA-256 fingerprint begins with " + fingerprint(authority.get());
    }
  }
  return "";
}

}  // namespace dist::grpc_link
