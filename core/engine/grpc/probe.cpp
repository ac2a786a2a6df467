// SPDX-License-Identifier: Apache-2.0
#include "core/engine/grpc/probe.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/dial.hpp"
#include "core/base/os/socket.hpp"
#include "core/base/os/thread.hpp"
#include "core/engine/grpc/config.hpp"
#include "core/engine/grpc/connect_token.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kConnectNs = 1'000'000'000;
constexpr int64_t kExchangeNs = 3'000'000'000;
constexpr char kAllOrNone[] =
    " Set DIST_TLS_CA, DIST_TLS_CERTIFICATE and DIST_TLS_KEY for all processes of the job, or for none";

// One TLS connection to a peer, whose certificate may be invalid.
class Look {
 public:
  enum class End { kDone, kClosed, kSilent, kNoTls, kFailed };

  Look(SSL_CTX* context, Dialled& connection) noexcept
      : connection_(connection), ssl_(SSL_new(context)), until_ns_(steady_now_ns() + kExchangeNs) {
    if (ssl_ == nullptr) return;
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);
    // gRPC ends connections that do not negotiate HTTP/2.
    constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_.get(), kHttp2, sizeof kHttp2);
    // The handshake goes on with an invalid certificate. SSL_get_verify_result() has the verdict.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);
  }

  SSL* ssl() const noexcept { return ssl_.get(); }
  Speaks speaks() const noexcept { return speaks_; }
  // The peer's alert, or another error of OpenSSL, after End::kFailed.
  const std::string& error() const noexcept { return error_; }

  End connect() noexcept {
    return drive([this] { return SSL_connect(ssl_.get()); });
  }
  // Waits for the first byte after the handshake. A gRPC server sends its settings when it has accepted a client.
  End await_data() noexcept {
    char byte;
    return drive([&] { return SSL_read(ssl_.get(), &byte, 1); });
  }

 private:
  template <class Step>
  End drive(Step&& step) noexcept {
    for (;;) {
      ERR_clear_error();
      const int done = step();
      const int state = SSL_get_error(ssl_.get(), done);
      if (!flush()) return End::kClosed;
      if (done > 0) return End::kDone;
      if (state == SSL_ERROR_ZERO_RETURN) return End::kClosed;
      if (state != SSL_ERROR_WANT_READ) {
        const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
        error_ = reason != nullptr ? reason : "an unknown error";
        return End::kFailed;
      }
      std::byte bytes[4096];
      const std::ptrdiff_t came = connection_.receive(bytes, until_ns_);
      if (came == 0) return End::kSilent;
      if (came < 0) return End::kClosed;
      const std::span<const std::byte> given(bytes, static_cast<std::size_t>(came));
      if (!std::exchange(heard_, true)) speaks_ = first_bytes_tell(given);
      if (speaks_ != Speaks::kTls) return End::kNoTls;
      BIO_write(in_, bytes, static_cast<int>(came));
    }
  }
  bool flush() noexcept {
    char* data = nullptr;
    const long size = BIO_get_mem_data(out_, &data);
    if (size <= 0) return true;
    const bool sent =
        connection_.send(std::as_bytes(std::span(data, static_cast<std::size_t>(size))), until_ns_);
    (void)BIO_reset(out_);
    return sent;
  }

  Dialled& connection_;
  const OpensslRef<SSL> ssl_;
  const int64_t until_ns_;
  BIO* in_ = nullptr;  // owned by ssl_, like the next one
  BIO* out_ = nullptr;
  bool heard_ = false;
  Speaks speaks_ = Speaks::kOther;
  std::string error_;
};

// Describes what is wrong with the peer's certificate. `calls_back`: the peer also connects to this process with it.
std::string fault_of_peer(const Look& look, const std::string& host, bool calls_back) {
  const OpensslRef<X509> certificate(SSL_get1_peer_certificate(look.ssl()));
  if (certificate == nullptr) return "";
  std::string why = why_not_valid(certificate.get(), SSL_get_verify_result(look.ssl()));
  if (why.empty()) why = why_not_for(certificate.get(), host);
  if (why.empty() && calls_back && X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_CLIENT, 0) != 1)
    why = why_not_valid(certificate.get(), X509_V_ERR_INVALID_PURPOSE);
  return why.empty() ? "" : "its certificate " + why;
}

// The names of the authorities that the peer trusts, if the own certificate is issued by none of them.
std::string authorities_of_peer(const Look& look) {
  const STACK_OF(X509_NAME)* const names = SSL_get0_peer_CA_list(look.ssl());
  X509* const own = SSL_get_certificate(look.ssl());
  if (own == nullptr || sk_X509_NAME_num(names) <= 0) return "";
  STACK_OF(X509)* chain = nullptr;
  SSL_get0_chain_certs(look.ssl(), &chain);
  std::string text;
  for (int i = 0; i < sk_X509_NAME_num(names); ++i) {
    const X509_NAME* const each = sk_X509_NAME_value(names, i);
    if (X509_NAME_cmp(each, X509_get_issuer_name(own)) == 0) return "";
    for (int k = 0; k < sk_X509_num(chain); ++k) {
      if (X509_NAME_cmp(each, X509_get_issuer_name(sk_X509_value(chain, k))) == 0) return "";
    }
    if (i < 3) text += (i == 0 ? "" : ", ") + name_text(each);
  }
  return text;
}

// The peer has closed the connection after it has received the own certificate.
std::string fault_of_own(const Look& look, const Credentials& own, const std::string& own_host) {
  X509* const certificate = SSL_get_certificate(look.ssl());
  if (certificate == nullptr) return "";
  std::string text = "it rejects the certificate of this process, which ";
  const std::string why = why_own_rejected(own, own_host);
  const std::string accepted = authorities_of_peer(look);
  if (!why.empty()) return text + why;
  if (!accepted.empty())
    return text + "was issued by an unknown authority, " + issuer_of(certificate) + "; it accepts " +
           accepted;
  return text + "is valid here and was issued by " + issuer_of(certificate) +
         ". Compare DIST_TLS_CA and the clocks of both machines";
}

std::string join(const std::string& first, const std::string& second) {
  return first + (first.empty() || second.empty() ? "" : "; ") + second;
}

std::string examine(Look& look, const Credentials& own, const std::string& own_host,
                    const std::string& host) {
  const bool tls = !own.ca.empty();
  const Look::End end = look.connect();
  if (end == Look::End::kSilent) return "";
  if (end == Look::End::kNoTls) {
    if (!tls) return "";
    if (look.speaks() == Speaks::kPlainText)
      return std::string("it uses plain text, but this process uses TLS.") + kAllOrNone;
    return "the program at that address answers a TLS handshake with something else";
  }
  // A peer that answers with TLS.
  if (!tls && (look.speaks() == Speaks::kTls))
    return std::string("it uses TLS, but this process uses plain text.") + kAllOrNone;
  if (!tls) return "";
  const std::string peer = fault_of_peer(look, host, !own_host.empty());
  if (end == Look::End::kFailed && peer.empty()) return "the TLS handshake fails: " + look.error();
  if (end != Look::End::kDone) {
    // With TLS 1.2, the peer checks the own certificate before the handshake ends.
    return join(peer,
                SSL_get0_peer_certificate(look.ssl()) != nullptr ? fault_of_own(look, own, own_host) : "");
  }
  switch (look.await_data()) {
    case Look::End::kDone: {
      // It has accepted this process as a client, but has not checked the name yet.
      const std::string why = why_own_not_for(own, own_host);
      return join(peer, why.empty() ? "" : "the certificate of this process " + why);
    }
    case Look::End::kSilent: return peer;
    default: return join(peer, fault_of_own(look, own, own_host));
  }
}

// Returns whether the peer has accepted the token that begins every connection. Otherwise `why` receives the reason, as
// far as it is known.
bool present_token(const Self& self, Dialled& connection, std::string* why) {
  const int64_t until_ns = steady_now_ns() + kExchangeNs;
  const std::string request = connect_request(self.secret, self.number);
  if (!connection.send(std::as_bytes(std::span(request)), until_ns)) return false;
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  constexpr std::string_view kEnd = "\r\n\r\n";
  constexpr std::size_t kMostBytes = 256;
  // The next bytes of the peer, which follow at once in plain text, must stay.
  std::string response;
  while (!response.ends_with(kEnd)) {
    std::byte next{};
    const std::ptrdiff_t came = connection.receive({&next, 1}, until_ns);
    if (came == 0) return false;
    if (came > 0) response += static_cast<char>(next);
    const std::size_t begun = std::min(response.size(), kBegin.size());
    const bool fits = std::string_view(response).substr(0, begun) == kBegin.substr(0, begun);
    if (came < 0 && response.empty()) return false;
    if (came < 0 || !fits || response.size() > kMostBytes) {
      *why = why_refused("");
      return false;
    }
  }
  const std::string_view code = std::string_view(response).substr(kBegin.size(), 3);
  if (code != "200") *why = why_refused(code);
  return code == "200";
}

}  // namespace

Speaks first_bytes_tell(std::span<const std::byte> bytes) noexcept {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  // The type of a record and the major version of TLS.
  if (bytes.size() >= 2 && at(0) >= 20 && at(0) <= 23 && at(1) == 3) return Speaks::kTls;
  constexpr char kPreface[] = "PRI * HTTP/2";
  if (bytes.size() >= sizeof kPreface - 1 && std::memcmp(bytes.data(), kPreface, sizeof kPreface - 1) == 0)
    return Speaks::kPlainText;
  // A frame of HTTP/2: 3 bytes of length, its type (SETTINGS or GOAWAY), flags, and stream 0.
  if (bytes.size() >= 9 && at(0) == 0 && (at(3) == 4 || at(3) == 7) && at(4) == 0 &&
      std::all_of(bytes.begin() + 5, bytes.begin() + 9, [](std::byte each) { return each == std::byte{0}; }))
    return Speaks::kPlainText;
  return Speaks::kOther;
}

std::string probe(const Self& self, const std::string& host, Dialled& connection) {
  if (std::string why; !present_token(self, connection, &why)) return why;
  const OpensslErrors errors;
  const OpensslRef<SSL_CTX> context = make_context(self.credentials);
  if (context == nullptr) return "";
  Look look(context.get(), connection);
  if (look.ssl() == nullptr) return "";
  if (!is_ip_address(host)) SSL_set_tlsext_host_name(look.ssl(), host.c_str());
  return examine(look, self.credentials, self.host, host);
}

Prober::Prober(Self self, Tell tell) : shared_(std::make_shared<Shared>()) {
  shared_->self = std::move(self);
  shared_->tell = std::move(tell);
}

Prober::~Prober() { stop(); }

void Prober::ask(uint64_t peer, const std::string& address) noexcept {
  Shared& shared = *shared_;
  try {
    const std::scoped_lock lock(shared.mutex);
    if (shared.stopped) return;
    const bool waits = std::any_of(shared.waiting.begin(), shared.waiting.end(),
                                   [&](const auto& each) { return each.first == peer; });
    if (!waits) shared.waiting.emplace_back(peer, address);
    if (shared.has_thread) return;
    const AsyncSignalsBlocked blocked;
    std::thread([kept = shared_] {
      name_this_thread("dist-probe");
      work(kept);
    }).detach();
    shared.has_thread = true;
  } catch (const std::exception&) {
    // The next call tries again.
  }
}

// Returns false if there is no connection; `cause` then receives the reason, if it is the name.
bool Prober::connect(Shared& shared, const std::string& address, Dialled& connection, std::string* cause) {
  const std::string host = host_of(address);
  const std::string port = address.substr(address.rfind(':') + 1);
  const auto set_looks_up = [&](bool looks_up) {
    const std::scoped_lock lock(shared.mutex);
    shared.looks_up = looks_up;
    shared.changed.notify_all();
  };
  set_looks_up(true);
  const std::string why = connection.look_up(host, port);
  set_looks_up(false);
  if (!why.empty()) *cause = "its host name does not resolve: " + why;
  return why.empty() && !shared.stopped && connection.connect(steady_now_ns() + kConnectNs);
}

void Prober::work(const std::shared_ptr<Shared>& shared) noexcept {
  for (;;) {
    std::pair<uint64_t, std::string> next;
    {
      const std::scoped_lock lock(shared->mutex);
      if (shared->stopped || shared->waiting.empty()) {
        shared->has_thread = false;
        return shared->changed.notify_all();
      }
      next = shared->waiting.front();
    }
    std::string cause;
    try {
      Dialled connection(shared->stopped);
      if (connect(*shared, next.second, connection, &cause))
        cause = probe(shared->self, host_of(next.second), connection);
    } catch (const std::exception&) {
    }
    {
      const std::scoped_lock lock(shared->mutex);
      shared->waiting.pop_front();
    }
    if (!shared->stopped) shared->tell(next.first, cause);
  }
}

void Prober::stop() noexcept {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  shared.stopped = true;
  shared.changed.wait(lock, [&] { return !shared.has_thread || shared.looks_up; });
}

}  // namespace dist::grpc_link
