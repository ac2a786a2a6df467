// SPDX-License-Identifier: Apache-2.0
// Explains in words why a certificate or a key is not accepted. gRPC verifies the certificates of a
// connection, but does not report why it rejects one. The functions here find the reason, for messages; they
// never admit a peer that gRPC would reject. why_not_for() is also a separate check, which every peer must
// pass on both sides.
//
// OpenSSL does all verification here, as it does in gRPC.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

namespace dist::grpc_link {

struct OpensslDeleter {
  void operator()(X509* each) const noexcept { X509_free(each); }
  void operator()(EVP_PKEY* each) const noexcept { EVP_PKEY_free(each); }
  void operator()(BIO* each) const noexcept { BIO_free(each); }
  void operator()(SSL* each) const noexcept { SSL_free(each); }
  void operator()(SSL_CTX* each) const noexcept { SSL_CTX_free(each); }
};
template <class Object>
using OpensslRef = std::unique_ptr<Object, OpensslDeleter>;

// As PEM texts.
struct Credentials {
  std::string ca, certificate, key;
  // The files that the texts were read from, for messages; empty if not known.
  std::string ca_file{}, certificate_file{}, key_file{};
};

// Discards the errors that OpenSSL records on this thread during its lifetime, so that the host does not see
// them.
class OpensslErrors {
 public:
  OpensslErrors() noexcept;
  ~OpensslErrors();
  OpensslErrors(const OpensslErrors&) = delete;
  OpensslErrors& operator=(const OpensslErrors&) = delete;
};

// Why this process cannot use its own files at all: one of them cannot be read, or the key is encrypted or
// belongs to another certificate. Empty if it can use them.
std::string why_unusable(const Credentials& own);

// Creates a context for a connection to a peer, which presents the own certificate and trusts the own
// authorities. Returns NULL if the credentials are unusable. A context with empty credentials presents and
// trusts nothing.
OpensslRef<SSL_CTX> make_context(const Credentials& own);

// A reason to reject a certificate; converts to false if there is none.
struct Fault {
  std::string why;     // continues "its certificate", for example with "expired on 2026-11-01"
  std::string remedy;  // a sentence without its period
  explicit operator bool() const noexcept { return !why.empty(); }
  std::string text() const { return remedy.empty() ? why : why + ". " + remedy; }
};

// Where the certificate and the authorities were configured that are compared, for remedies: "on worker 1",
// "here".
struct Places {
  std::string certificate;
  std::string authorities;
};

// Why peers at other addresses may reject this process's own certificate, as far as this process can tell.
// `host` is the host of the address at which peers expect this process. It is empty if the process only
// connects to others.
Fault why_own_rejected(const Credentials& own, const std::string& host, const Places& places);
// The same, but only for faults that every peer would find, independently of its clock and its authorities.
Fault why_own_unfit(const Credentials& own, const std::string& host, const Places& places);

// Why the certificate that a peer has presented is not accepted. `result` is the result of
// X509_verify_cert(). `trusted`: the PEM text of the authorities.
Fault why_not_valid(X509* certificate, long result, std::string_view trusted, const Places& places);

// Why a worker's certificate cannot be used for connections in both directions, or does not match the host.
// TLS checks only the direction of the connection that is being made. `chain`: PEM; the worker's certificate
// is the first one.
Fault why_not_of_worker(std::string_view chain, std::string_view trusted, const std::string& host,
                        const Places& places);

// The beginning of the SHA-256 fingerprint of the authority in `own.ca` that issued this process's
// certificate: ", whose SHA-256 fingerprint begins with 8A:0B:...". Empty if there is none.
std::string fingerprint_of_authority(const Credentials& own);

// Why a certificate is not for this host, with the names that it has. The text continues "its certificate";
// empty if it is for the host. A host that is an IP address needs an IP name; any other host needs a DNS
// name, in which "*" may be the whole first label and stands for exactly one label (RFC 6125). Common names,
// URIs and email addresses do not count.
std::string why_not_for(X509* certificate, const std::string& host);
// The same for a certificate in PEM.
std::string why_not_for(std::string_view pem, const std::string& host);

// The last part of a distinguished name, as text for messages.
std::string name_text(const X509_NAME* name);
std::string issuer_of(X509* certificate);

}  // namespace dist::grpc_link
